/** The process: bin/holdfast.js imports it. */
import { processIo } from "./io.js";
import { runCli } from "./program.js";

const exitCode = await runCli(process.argv.slice(2), processIo());
// Whatever still keeps the loop alive (a pipe to a parent, an idle socket) has no say; what was written is flushed first.
process.stdout.write("", () => process.stderr.write("", () => process.exit(exitCode)));
