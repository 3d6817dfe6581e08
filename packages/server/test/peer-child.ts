/** A process with formed peer links, to be killed, stopped or asked to leave: argv is id, own port, peer id, peer's port, boot. */
import { allFormed, noPromises, recordedLinks } from "./peer-harness.js";

const [id = "", port, peer = "", peerPort, boot] = process.argv.slice(2);
const { links } = recordedLinks({ id, port: Number(port), peers: { [peer]: Number(peerPort) }, boot: Number(boot) });
await links.start();
links.becomeFormed(allFormed, noPromises);
process.on("message", (message) => {
  if (message === "leave") void links.close().then(() => process.exit(0));
});
process.send?.("ready");
