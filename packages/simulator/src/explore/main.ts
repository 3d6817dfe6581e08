/** The command line: npm run explore -- --help. Exits with 1 when a rule is broken. The clock only shows and bounds how long it takes. */
import { usageExitCode } from "../words.js";
import { closingLine, readCommand, usage } from "./command-line.js";
import type { Exploration, Outcome } from "./command-line.js";
import { reportLease } from "./lease/report.js";
import { exploreRaft } from "./raft/explore-raft.js";

const read = readCommand(process.argv.slice(2));
if ("problems" in read) {
  for (const problem of read.problems) console.error(`explore: ${problem}`);
  console.error(usage);
  process.exitCode = usageExitCode;
} else if (read.command.kind === "help") console.log(usage);
else {
  const { scopes } = read.command;
  if (scopes.raft.length > 0 && !(await isRaftSound(read.command))) process.exitCode = 1;
  if (scopes.lease.length > 0 && !isLeaseSound(read.command)) process.exitCode = 1;
}

async function isRaftSound({ scopes, statesMax, msMax, isBreadth }: Exploration): Promise<boolean> {
  const outcomes: Outcome[] = [];
  for (const name of scopes.raft) {
    const startMs = performance.now();
    const isOver = (): boolean => performance.now() - startMs > msMax;
    const report = await exploreRaft(name, { statesMax, isOver }, isBreadth ? "breadth" : "merging");
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
    console.log(`raft ${name}: ${report.lines.join("\n")} (${seconds} s)`);
    outcomes.push({ ...report, name: `raft ${name}` });
  }
  console.log(closingLine(outcomes));
  return outcomes.every(({ isSound }) => isSound);
}

function isLeaseSound({ scopes, statesMax, msMax }: Exploration): boolean {
  const print = (line: string): void => console.log(line);
  return reportLease({ names: scopes.lease, statesMax, msMax }, { print, nowMs: () => performance.now() });
}
