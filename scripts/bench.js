/**
 * Measures this lock service and those of etcd, ZooKeeper and Redis at the same work: `npm run bench:peers -- --help`. Results go to
 * stdout, progress to stderr.
 */
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { CannotRun } from "./bench/cannot-run.js";
import { goalLines } from "./bench/goals.js";
import { readOptions, usage } from "./bench/options.js";
import { machine, writeResults } from "./bench/report.js";
import { tableOf } from "./bench/table.js";
import { installManifest } from "./own-manifest.js";

/** Called wrongly (EX_USAGE of sysexits.h). */
const usageExitCode = 64;

const top = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const say = (/** @type {string} */ text) => console.error(`bench: ${text}`);
const { options, problems } = readOptions(process.argv.slice(2), { dir: os.tmpdir() });

if (options.isHelp) console.log(usage);
else if (problems.length > 0) {
  for (const problem of problems) say(problem);
  console.error(usage);
  process.exitCode = usageExitCode;
} else {
  // What was started may keep this process alive, a connection that nobody closes for example.
  process.exit((await isMeasured()) ? 0 : 1);
}

async function isMeasured() {
  if (!installManifest(top, "scripts/bench", (text) => say(`clients of the others: ${text}`))) return false;
  // Loads those clients.
  const { run } = await import("./bench/run.js");
  /** @type {Record<string, import("./bench/results.js").Result>} */
  const results = {};
  let isWell = true;
  try {
    await run(options, say, (name, result) => {
      results[name] = result;
      if (!options.isJson) console.log(tableOf(result));
    });
  } catch (error) {
    if (error instanceof CannotRun) say(error.message);
    else console.error(error);
    isWell = false;
  }
  // What was measured before is not lost.
  const report = { machine: machine(options), parts: results };
  console.log(options.isJson ? JSON.stringify(report, null, 2) : goalLines(results).join("\n"));
  if (options.isWritten) for (const file of writeResults(top, report)) say(`wrote ${file}`);
  return isWell;
}
