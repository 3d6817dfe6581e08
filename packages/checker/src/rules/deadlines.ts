/**
 * The time that a library says is left counts from when the keepalive was sent that was acknowledged last, at first from when openSession was
 * (P5, invariant 16): never from an answer, or from what was sent later. Judged by the client's own clock.
 */
import type { Remaining } from "../books/leases.js";
import type { Run } from "../run.js";
import type { Findings } from "../verdict.js";

/** Rates are told a moment after they have changed. */
const roundingMs = 1;

export function checkDeadlines(run: Run, findings: Findings): void {
  for (const remaining of run.leases.remaining) checkRemaining(run, findings, remaining);
}

function checkRemaining(run: Run, findings: Findings, { event, position, sentAt: renewedAt }: Remaining): void {
  const { client, session, ms, at } = event;
  const opening = run.calls.openingOf(session);
  const sentAt = renewedAt ?? (opening === null ? null : run.leases.firstOpeningOf(opening.key));
  if (opening === null || sentAt === null || !run.leases.hasWords) {
    findings.excluded("late-deadline");
    return;
  }
  findings.judged("late-deadline");
  const passedMs = (at - sentAt) * run.cluster.rateOf(client, sentAt, at).slowest;
  const lateMs = ms - (opening.ttlMs - passedMs);
  if (lateMs <= roundingMs) return;
  const what = renewedAt === null ? "it was opened" : "the keepalive was sent that was acknowledged last";
  const problem = `${client} takes session ${session} for its own ${lateMs.toFixed(3)} ms longer than a TTL since ${what}`;
  findings.violation("late-deadline", problem, [position]);
}
