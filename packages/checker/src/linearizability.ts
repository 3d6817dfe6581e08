/**
 * A second opinion that takes nothing from the log but what became of unanswered calls: for each lock a search for one order of what clients
 * saw of it (docs: Herlihy and Wing; Wing and Gong; Lowe). A history is linearizable exactly if each lock's part of it is.
 */
import { lockRegister } from "./linearizability/lock-register.js";
import { operationsByLock } from "./linearizability/operations.js";
import { searchOrder } from "./linearizability/search.js";
import type { Run } from "./run.js";
import type { Findings } from "./verdict.js";

/** `stepsMax`: for each lock. A search that needs more says nothing, and that fails the run. */
export function checkLinearizability(run: Run, findings: Findings, stepsMax: number): void {
  for (const [name, operations] of operationsByLock(run)) {
    if (operations.length === 0) continue;
    findings.judged("linearizability");
    findings.judged("linearizability-unknown");
    findings.locks += 1;
    findings.operations += operations.length;
    const result = searchOrder(operations, lockRegister, stepsMax);
    findings.steps += result.steps;
    if (result.kind === "unknown") {
      const problem = `${name}: no answer after ${stepsMax} steps over ${operations.length} operations`;
      findings.violation("linearizability-unknown", problem, []);
    } else if (result.kind === "impossible") {
      const { call, kind, callPosition, returnPosition } = result.stuck;
      const problem = `${name}: no order of its ${operations.length} operations fits; none gets past the ${kind} of call ${call}`;
      const positions = returnPosition === Number.POSITIVE_INFINITY ? [callPosition] : [callPosition, returnPosition];
      findings.violation("linearizability", problem, positions);
    }
  }
}
