/** Run by netns.test.ts outside of any namespace: starts itself anew inside one. */
import { entrance, notAlone, startAnew } from "../../../src/network/netns/enter.js";

const [word = "with the same words"] = process.argv.slice(2);
if ((await notAlone()) === null) {
  if (word === "end") process.exit(7);
  process.stdout.write(`${process.pid} ${word}\n`);
  setInterval(() => {}, 1_000);
} else {
  const { command, missing } = await entrance();
  if (command === null) throw new Error(missing);
  process.exit(await startAnew(command));
}
