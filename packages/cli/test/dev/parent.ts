/** Starts fake nodes and waits; prints their pids. Tests kill it: `parent.js FOLDER PORT...` */
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Supervisor } from "../../src/dev/supervisor.js";

const [, , folder = "", ...ports] = process.argv;
const program = fileURLToPath(new URL("./fake-node.js", import.meta.url));
const nodes = ports.map((port, index) => {
  const id = `n${index + 1}`;
  return { id, folder: path.join(folder, id), words: [process.execPath, program, port] as const };
});
const supervisor = new Supervisor(nodes, { onEnded: () => undefined });
console.log(JSON.stringify(supervisor.nodes.map((node) => node.pid)));
await supervisor.allEnded;
