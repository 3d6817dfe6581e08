/**
 * The committed log, replayed by the checker's own lock machine, against what the nodes' machines said (invariants 11, 12, 18, 19 and 20).
 * The first entry of which a machine said something wrong gets the name of the promise that is broken (misdeeds.ts); what comes after it
 * rests on it and isn't judged: the ledger ends there.
 */
import type { Committed } from "../books/log.js";
import { LockModel } from "../model/lock-model.js";
import { Reported } from "../model/reported.js";
import type { Run } from "../run.js";
import { effectText } from "../texts.js";
import type { Findings } from "../verdict.js";
import { countJudged, misdeedOf } from "./misdeeds.js";
import type { Difference } from "./misdeeds.js";

/** Differences told in one message. */
const toldMax = 3;

export function checkLogOrder(run: Run, findings: Findings): void {
  const model = new LockModel(run.ledger);
  for (const committed of run.log.entries) {
    checkProposal(committed, findings);
    if (!checkEntry(run, model, committed, findings)) return;
    run.ledger.lastIndex = committed.event.index;
  }
}

/** A timed end is decided by one leader in its own term; the core drops it in any other. */
function checkProposal({ event, position }: Committed, findings: Findings): void {
  const { decidedInTerm, term, index } = event;
  if (decidedInTerm === null) return;
  findings.judged("stale-proposal");
  if (decidedInTerm === term) return;
  const problem = `entry ${index} of term ${term} was decided by the clock of a leader of term ${decidedInTerm}`;
  findings.violation("stale-proposal", problem, [position]);
}

/** False: what a machine said of it is wrong. */
function checkEntry(run: Run, model: LockModel, committed: Committed, findings: Findings): boolean {
  const { index, entry } = committed.event;
  const report = run.log.reportOf(index);
  const reported = new Reported(report?.event.effects ?? null);
  const command = entry.kind === "command" ? entry.command : null;
  const wasExecuted = command !== null && "request" in command && model.wasExecuted(command);
  const effects = command === null ? [] : model.apply(index, command, reported);
  if (report === null) return true;
  countJudged(command, effects, wasExecuted, findings);
  const expected = new Reported(effects);
  const differences: Difference[] = [];
  for (const subject of reported.doubled) differences.push({ subject, said: null, due: null });
  for (const [subject, due] of expected.bySubject) {
    const said = reported.bySubject.get(subject) ?? null;
    if (said === null || effectText(said) !== effectText(due)) differences.push({ subject, said, due });
  }
  for (const [subject, said] of reported.bySubject) {
    if (!expected.bySubject.has(subject)) differences.push({ subject, said, due: null });
  }
  if (differences.length === 0) return true;
  const rule = misdeedOf({ model, command, wasExecuted, differences });
  findings.judged(rule);
  const shown = differences.slice(0, toldMax).map(differenceText).join("; ");
  const more = differences.length > toldMax ? ` (and ${differences.length - toldMax} more)` : "";
  const problem = `entry ${index}, ${command?.kind ?? entry.kind}, on ${report.event.node}: ${shown}${more}`;
  findings.violation(rule, problem, [committed.position, report.position]);
  return false;
}

function differenceText({ subject, said, due }: Difference): string {
  if (said === null && due === null) return `${subject} is told twice`;
  return `${subject} is "${said === null ? "" : effectText(said)}", due is "${due === null ? "" : effectText(due)}"`;
}
