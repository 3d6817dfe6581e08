/**
 * P6 and invariant 22: the session of a holder who has fallen silent ends within 2 TTL + 3 election timeouts, even with a leader change every
 * TTL/2. Stalls of the serving leaders come on top. Promised while a majority is up, for a TTL of at least 30 election timeouts, and for
 * clocks within the bound: the first stretch of time after the silence began in which all of that holds for long enough is judged.
 */
import type { LedgerHold, LedgerSession } from "../ledger.js";
import type { Run } from "../run.js";
import type { Findings } from "../verdict.js";

const electionTimeoutsMin = 30;

interface Stretch {
  readonly from: number;
  readonly deadline: number;
}

export function checkDeadHolders(run: Run, findings: Findings): void {
  const { electionTimeoutMs } = run.history;
  if (electionTimeoutMs === null || !run.isLedgerWhole) return;
  const holds = new Map<number, LedgerHold[]>();
  for (const hold of run.ledger.holds) {
    const own = holds.get(hold.session);
    if (own === undefined) holds.set(hold.session, [hold]);
    else own.push(hold);
  }
  const changes = leaderChanges(run);
  for (const session of run.ledger.sessions.values()) {
    const own = holds.get(session.session) ?? [];
    const silentAt = silenceBegan(run, session);
    const held = own.filter((hold) => isHeldAfter(run, hold, silentAt));
    if (held.length === 0) continue;
    const stretch = firstStretch(run, session.ttlMs, electionTimeoutMs, silentAt, changes);
    if (stretch === null) {
      if (session.end === null || session.end.reason === "expired") findings.excluded("dead-holder");
      continue;
    }
    const isInTime = held.every((hold) => !isHeldAfter(run, hold, stretch.deadline));
    // A session that its client closed, or that gave everything back, was not dead.
    if (!isInTime || session.end?.reason === "expired") findings.judged("dead-holder");
    if (isInTime) continue;
    const late = (stretch.deadline - stretch.from).toFixed(0);
    const problem = `session ${session.session} holds on, ${late} ms after it fell silent or a majority came back`;
    const positions = held.map((hold) => run.commitPosition(hold.index));
    findings.violation("dead-holder", problem, positions);
  }
}

/** When the service last heard of it; as far as is known, when its client last spoke. */
function silenceBegan(run: Run, { session }: LedgerSession): number {
  const lease = run.leases.leases.get(session);
  const heardAt = run.leases.hasReceipts ? lease?.lastReceiptAt : lease?.lastSentAt;
  return Math.max(run.commitAt(session), heardAt ?? 0);
}

function isHeldAfter(run: Run, { end }: LedgerHold, at: number): boolean {
  return end === null || run.commitAt(end.index) > at;
}

function firstStretch(
  run: Run,
  ttlMs: number,
  electionTimeoutMs: number,
  silentAt: number,
  changes: readonly number[],
): Stretch | null {
  if (ttlMs < electionTimeoutsMin * electionTimeoutMs) return null;
  const boundMs = 2 * ttlMs + 3 * electionTimeoutMs;
  const historyEnd = run.cluster.endAt;
  for (const quorum of run.cluster.quorums) {
    const from = Math.max(silentAt, quorum.from);
    const deadline = withStalls(run, from, from + boundMs);
    if (deadline > Math.min(quorum.to, historyEnd)) continue;
    const isCalm = areApart(changes, from, deadline, ttlMs / 2);
    const isSlow = run.cluster.leaderRate(from, deadline).slowest < 1 / (1 + run.rho);
    if (isCalm && !isSlow) return { from, deadline };
  }
  return null;
}

function withStalls(run: Run, from: number, until: number): number {
  let deadline = until;
  for (const { at, ms } of run.cluster.stalls) if (at >= from && at - ms <= deadline) deadline += ms;
  return deadline;
}

/** When leaderships ended: by the word of the leader, or because another was elected. */
function leaderChanges(run: Run): readonly number[] {
  const { leaderships } = run.cluster;
  const ends = leaderships.map(({ endAt }, at) => Math.min(endAt, leaderships[at + 1]?.electedAt ?? endAt));
  return ends.filter((end) => end !== Number.POSITIVE_INFINITY).sort((a, b) => a - b);
}

function areApart(changes: readonly number[], from: number, to: number, leastMs: number): boolean {
  const inside = changes.filter((at) => at >= from && at <= to);
  return inside.every((at, index) => index === 0 || at - (inside[index - 1] ?? 0) >= leastMs);
}
