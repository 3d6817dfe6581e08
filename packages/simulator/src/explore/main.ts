/**
 * Explores small scopes to their end: node packages/simulator/dist/src/explore/main.js lease [scope ...]. Exits with 1 when a rule is
 * broken. The clock here only shows and bounds how long it takes.
 */
import { reportLease } from "./lease/report.js";

const statesMax = 8_000_000;
/** Of each scope. */
const msMax = 600_000;

const [subject, ...names] = process.argv.slice(2);
if (subject === "lease") {
  const print = (line: string): void => console.log(line);
  const isWell = reportLease({ names, statesMax, msMax }, { print, nowMs: () => performance.now() });
  if (!isWell) process.exitCode = 1;
} else {
  console.error("say what to explore: lease [scope ...]");
  process.exitCode = 64;
}
