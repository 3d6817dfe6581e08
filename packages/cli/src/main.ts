/** The process: bin/holdfast.js imports it. */
import { exitCodes } from "./exit-codes.js";
import { processIo } from "./io.js";
import { runCli } from "./program.js";

const { io, flush } = processIo();
let exitCode = await runCli(process.argv.slice(2), io, process);
// Whatever still keeps the loop alive (a pipe to a parent, an idle socket) has no say; what was written is flushed first.
const problem = await flush();
if (problem !== null) {
  if (exitCode === exitCodes.ok) exitCode = exitCodes.error;
  // Who reads no further (head, a pager) knows that.
  if (problem.code !== "EPIPE") io.err(`holdfast: the result can't be written: ${problem.message}\n`);
  await flush();
}
process.exit(exitCode);
