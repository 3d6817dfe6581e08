/**
 * The time that a library says is left counts from when the keepalive was sent that was acknowledged last, at first from when openSession was
 * (P5, invariant 16): never from an answer, or from what was sent later. That of a maxHold counts from no later than the acquire's own sending,
 * or that of the last keepalive acknowledged before the grant. Judged by the client's own clock.
 */
import type { Remaining } from "../books/leases.js";
import type { Run } from "../run.js";
import type { Findings } from "../verdict.js";

/** Rates are told a moment after they have changed. */
const roundingMs = 1;

export function checkDeadlines(run: Run, findings: Findings): void {
  // What the first word on a lock said of its lease was so at its grant.
  const grantedAfter = new Map<number, number>();
  for (const remaining of run.leases.remaining) {
    const { event } = remaining;
    const opening = run.calls.openingOf(event.session);
    const sentAt = remaining.sentAt ?? (opening === null ? null : run.leases.firstOpeningOf(opening.key));
    if (opening === null || sentAt === null || !run.leases.hasWords) {
      findings.excluded("late-deadline");
      continue;
    }
    findings.judged("late-deadline");
    if (!grantedAfter.has(event.call)) grantedAfter.set(event.call, sentAt);
    const what = remaining.sentAt === null ? "it was opened" : "the keepalive was sent that was acknowledged last";
    checkLength(run, findings, remaining, { sentAt, lastsMs: opening.ttlMs, what: `a TTL since ${what}` });
    const call = run.calls.calls.get(event.call);
    const maxHoldMs = call?.op.kind === "acquire" ? call.op.maxHoldMs : 0;
    if (call === undefined || maxHoldMs === 0) continue;
    const heldFrom = Math.max(call.lastSentAt ?? call.at, grantedAfter.get(event.call) ?? sentAt);
    checkLength(run, findings, remaining, {
      sentAt: heldFrom,
      lastsMs: maxHoldMs,
      what: "its maxHold since it was asked for",
    });
  }
}

function checkLength(
  run: Run,
  findings: Findings,
  { event, position }: Remaining,
  bound: { readonly sentAt: number; readonly lastsMs: number; readonly what: string },
): void {
  const { client, call, ms, at } = event;
  const passedMs = (at - bound.sentAt) * run.cluster.rateOf(client, bound.sentAt, at).slowest;
  const lateMs = ms - (bound.lastsMs - passedMs);
  if (lateMs <= roundingMs) return;
  const problem = `${client} takes the lock of call ${call} for its own ${lateMs.toFixed(3)} ms longer than ${bound.what}`;
  findings.violation("late-deadline", problem, [position]);
}
