/**
 * Explores small scopes to their end: `node main.js raft|lease [scope ...] [--states N] [--minutes M] [--breadth]`. Without a subject both,
 * without a scope all. Exits with 1 when a rule is broken. The clock here only shows and bounds how long it takes.
 */
import { parseArgs } from "node:util";
import { reportLease } from "./lease/report.js";
import { exploreRaft, raftScopeNames } from "./raft/explore-raft.js";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    states: { type: "string", default: "8000000" },
    minutes: { type: "string", default: "10" },
    breadth: { type: "boolean", default: false },
  },
});
const statesMax = Number(values.states);
/** Of each scope. */
const msMax = Number(values.minutes) * 60_000;

const [subject, ...names] = positionals;
if (subject !== undefined && subject !== "raft" && subject !== "lease") {
  console.error("say what to explore: raft or lease [scope ...]");
  process.exitCode = 64;
} else {
  if (subject !== "lease" && !(await isRaftSound())) process.exitCode = 1;
  if (subject !== "raft" && !isLeaseSound()) process.exitCode = 1;
}

async function isRaftSound(): Promise<boolean> {
  let isSound = true;
  for (const name of names.length > 0 ? names : raftScopeNames) {
    const startMs = performance.now();
    const isOver = (): boolean => performance.now() - startMs > msMax;
    const report = await exploreRaft(name, { statesMax, isOver }, values.breadth ? "breadth" : "merging");
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
    console.log(`raft ${name}: ${report.lines.join("\n")} (${seconds} s)`);
    isSound &&= report.isSound;
  }
  return isSound;
}

function isLeaseSound(): boolean {
  const print = (line: string): void => console.log(line);
  return reportLease({ names, statesMax, msMax }, { print, nowMs: () => performance.now() });
}
