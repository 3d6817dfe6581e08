/**
 * Explores small scopes exhaustively: `node main.js raft [--scope NAME] [--states N] [--minutes M] [--breadth]`. Without a scope it goes through all.
 * Ends with 1 when a rule was broken, and prints how.
 */
import { performance } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { exploreRaft, raftScopeNames } from "./raft/explore-raft.js";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    scope: { type: "string", multiple: true },
    states: { type: "string", default: "1000000" },
    breadth: { type: "boolean", default: false },
    minutes: { type: "string", default: "2" },
  },
});

const subject = positionals[0] ?? "raft";
if (subject !== "raft") throw new Error(`nothing to explore is called ${subject}`);
const statesMax = Number(values.states);
const patienceMs = Number(values.minutes) * 60_000;
for (const name of values.scope ?? raftScopeNames) {
  const startMs = performance.now();
  const isOver = (): boolean => performance.now() - startMs > patienceMs;
  const { isSound, lines } = await exploreRaft(name, { statesMax, isOver }, values.breadth ? "breadth" : "covering");
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  console.log(`raft ${name}: ${lines.join("\n")} (${seconds} s)`);
  if (!isSound) process.exitCode = 1;
}
