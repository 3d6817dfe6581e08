/** Histories in, verdicts out. */
import type { History } from "./history.js";
import { checkLinearizability } from "./linearizability.js";
import { checkAgreement, checkConvergence } from "./rules/agreement.js";
import { checkDeadHolders } from "./rules/dead-holder.js";
import { checkDeadlines } from "./rules/deadlines.js";
import { checkExpiries, checkTimedEnds } from "./rules/expiry.js";
import { checkGuard } from "./rules/guard.js";
import { checkHolds } from "./rules/holds.js";
import { checkKeepalives } from "./rules/keepalives.js";
import { checkLogOrder } from "./rules/log-order.js";
import { checkTokenOrder } from "./rules/token-order.js";
import { checkTold } from "./rules/told.js";
import { checkWellFormed } from "./rules/well-formed.js";
import { Run } from "./run.js";
import { countUnknowns } from "./unknowns.js";
import { Findings } from "./verdict.js";
import type { Verdict } from "./verdict.js";

export interface CheckOptions {
  /** By how much clock rates may differ; 0.01 when left out. */
  readonly rho?: number;
  /** Of the linearizability search, for each lock; 1,000,000 when left out. 0: no search. */
  readonly stepsMax?: number;
  /** Whether to search where another rule is broken; true when left out. Where there is no order the search takes long. */
  readonly searchesBroken?: boolean;
}

/** Judges a history by all rules that it has evidence for. Never throws for what the history says. */
export function check(history: History, options: CheckOptions = {}): Verdict {
  const findings = new Findings();
  checkWellFormed(history, findings);
  if (findings.violations.length > 0) return findings.verdict(history.events.length);
  const run = new Run(history, options.rho ?? 0.01);
  checkAgreement(run, findings);
  checkLogOrder(run, findings);
  checkTold(run, findings);
  checkTokenOrder(run, findings);
  checkExpiries(run, findings);
  checkTimedEnds(run, findings);
  checkHolds(run, findings);
  checkDeadlines(run, findings);
  checkKeepalives(run, findings);
  checkGuard(run, findings);
  checkDeadHolders(run, findings);
  checkConvergence(run, findings);
  countUnknowns(run, findings);
  const { stepsMax = 1_000_000, searchesBroken = true } = options;
  if (stepsMax > 0 && (searchesBroken || findings.violations.length === 0))
    checkLinearizability(run, findings, stepsMax);
  return findings.verdict(history.events.length);
}
