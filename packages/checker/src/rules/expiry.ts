/** Nothing ends before its time (P4, invariant 15; maxHold and lock-delays likewise). Times are those of the commits, in true time. */
import type { Acknowledgement } from "../books/leases.js";
import type { LedgerSession } from "../ledger.js";
import type { Run } from "../run.js";
import type { Findings } from "../verdict.js";

/** Sums of fractions are not exact. */
const roundingMs = 1e-6;

interface Bound {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly position: number;
  readonly why: string;
}

export function checkExpiries(run: Run, findings: Findings): void {
  for (const session of run.ledger.sessions.values()) {
    if (session.end?.reason === "expired") checkExpiry(run, findings, session, session.end.index);
  }
}

function checkExpiry(run: Run, findings: Findings, session: LedgerSession, index: number): void {
  const at = run.commitAt(index);
  const broken = boundsOf(run, session, index).filter(({ untilMs }) => at < untilMs - roundingMs);
  // The leader counts by its own clock: one that runs faster than the bound may end a session early.
  const counted = broken.filter(({ fromMs }) => isInBound(run, fromMs, at));
  const surely = counted.sort((a, b) => b.untilMs - a.untilMs)[0];
  if (surely === undefined && broken.length > 0) {
    findings.excluded("early-expiry");
    return;
  }
  findings.judged("early-expiry");
  if (surely === undefined) return;
  const early = (surely.untilMs - at).toFixed(3);
  const problem = `session ${session.session} ends at entry ${index}, ${early} ms early: ${surely.why}`;
  findings.violation("early-expiry", problem, [surely.position, run.commitPosition(index)]);
}

/** `index`: the entry that ends it. */
function boundsOf(run: Run, { session, ttlMs }: LedgerSession, index: number): Bound[] {
  const leastMs = ttlMs * (1 - run.rho);
  const openedAt = run.commitAt(session);
  const position = run.commitPosition(session);
  const bounds: Bound[] = [{ fromMs: openedAt, untilMs: openedAt + leastMs, position, why: "it was opened" }];
  const lease = run.leases.leases.get(session);
  for (const acknowledgement of lease?.acknowledgements ?? []) {
    const { number, position: vouchedAt } = acknowledgement;
    const readAt = lease?.receiptOf(acknowledgement)?.at ?? null;
    const sentAt = lease?.keepalives.get(number)?.sent?.at ?? null;
    const common = { position: vouchedAt, why: `keepalive ${number} was acknowledged` };
    if (readAt !== null) {
      const deafMs = deafFor(run, acknowledgement, readAt, index);
      const why = deafMs > 0 ? `${common.why}, and its leader heard nobody for ${deafMs} ms of the time` : common.why;
      bounds.push({ ...common, why, fromMs: readAt, untilMs: readAt + leastMs + deafMs });
    }
    if (sentAt !== null) bounds.push({ ...common, fromMs: sentAt, untilMs: sentAt + ttlMs });
  }
  return bounds;
}

/** The leader that vouched for a keepalive and ended the session can have heard nobody while its loop was stuck: that is no silence. */
function deafFor(run: Run, { node, term }: Acknowledgement, readAt: number, index: number): number {
  if (node === null || run.log.entryAt(index)?.event.term !== term) return 0;
  // Times of stalls are whole milliseconds, by the node's own clock.
  return Math.max(0, Math.floor(run.cluster.stalledMs(node, readAt, run.commitAt(index)) * (1 - run.rho) - 2));
}

/** A maxHold and a lock-delay are counted from the apply of the entry that began them. */
export function checkTimedEnds(run: Run, findings: Findings): void {
  for (const { session, request, index, maxHoldMs, end } of run.ledger.holds) {
    if (end?.how !== "max_hold") continue;
    const what = `hold s${session}#${request}, begun at entry ${index} with a maxHold of ${maxHoldMs} ms`;
    checkTimedEnd(
      run,
      findings,
      { index, lastsMs: maxHoldMs === 0 ? Number.POSITIVE_INFINITY : maxHoldMs },
      end.index,
      what,
    );
  }
  for (const { name, index, delayMs, endIndex } of run.ledger.delays) {
    if (endIndex === null) continue;
    const what = `the lock-delay of ${name}, begun at entry ${index} for ${delayMs} ms`;
    checkTimedEnd(run, findings, { index, lastsMs: delayMs }, endIndex, what);
  }
}

function checkTimedEnd(
  run: Run,
  findings: Findings,
  { index, lastsMs }: { readonly index: number; readonly lastsMs: number },
  endIndex: number,
  what: string,
): void {
  const from = run.commitAt(index);
  const to = run.commitAt(endIndex);
  const isEarly = to - from < lastsMs * (1 - run.rho) - roundingMs;
  if (isEarly && lastsMs !== Number.POSITIVE_INFINITY && !isInBound(run, from, to)) {
    findings.excluded("early-end");
    return;
  }
  findings.judged("early-end");
  if (!isEarly) return;
  const problem = `${what}, ends at entry ${endIndex} after ${(to - from).toFixed(3)} ms`;
  findings.violation("early-end", problem, [run.commitPosition(index), run.commitPosition(endIndex)]);
}

function isInBound(run: Run, from: number, to: number): boolean {
  return run.cluster.leaderRate(from, to).fastest <= 1 + run.rho;
}
