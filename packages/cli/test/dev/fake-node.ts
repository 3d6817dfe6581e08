/**
 * Stands for a node in tests of the supervisor: `fake-node.js PORT [exit CODE | silent CODE | stack CODE | deaf]`. Listens on PORT; ends when its parent does,
 * and at SIGTERM unless it is deaf.
 */
import { createServer } from "node:net";
import { endWithParent } from "../../src/dev/parent-pipe.js";

const [, , port, mode, code] = process.argv;

if (mode === "exit") {
  console.log(JSON.stringify({ level: "error", msg: "the data directory is damaged" }));
  console.log(JSON.stringify({ level: "info", msg: "ending" }));
  process.exit(Number(code));
}
if (mode === "silent") process.exit(Number(code));
if (mode === "stack") {
  console.log(JSON.stringify({ level: "error", msg: "it was wiped", err: { stack: "Error: x\n    at y".repeat(20) } }));
  console.error("Error: x\n    at y");
  console.log(`{"level":"error","msg":"cut`);
  process.exit(Number(code));
}
process.on("SIGTERM", () => {
  if (mode !== "deaf") process.exit(0);
});
endWithParent(process.stdin, () => process.kill(process.pid, "SIGTERM"));
createServer().listen(Number(port), "127.0.0.1", () =>
  console.log(JSON.stringify({ level: "info", msg: "listening" })),
);
