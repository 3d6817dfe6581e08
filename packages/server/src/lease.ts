/** One session as this leader sees it: when it was heard, and what the log says, or will say, of its silence. */
import type { SessionId } from "@holdfast/lock";

/** The leader waits 1 % longer than was promised: clock rates may differ by as much. */
export const clockRateMargin = 1.01;

/** A suspicion of so many eighths, or a renewal. */
export type Proposed = { readonly eighths: number } | "renew";

/** Times are on the lease clock. */
export class Lease {
  readonly session: SessionId;
  /** An eighth of the TTL, with the margin. */
  readonly unitMs: number;
  heardAt: number;
  /** Heard in this leader's term. */
  isHeard: boolean;
  /** Eighths of the present silence that were proposed. */
  credited = 0;
  /** The silence count as applied. */
  applied: number;
  /** Entries about its silence that are proposed and not yet applied, in log order. */
  readonly outstanding: Proposed[] = [];
  /** Highest keepalive that a quorum round has confirmed, and highest acknowledged. */
  confirmed = -1;
  acknowledged = -1;
  expiry: "none" | "awaitsRound" | "ready" | "proposed" = "none";
  isGone = false;
  isArmed = false;

  constructor(session: SessionId, ttlMs: number, heardAt: number, isHeard: boolean, applied: number) {
    this.session = session;
    this.unitMs = (ttlMs * clockRateMargin) / 8;
    this.heardAt = heardAt;
    this.isHeard = isHeard;
    this.applied = applied;
  }

  /** The silence count that the log will show once all of it is applied. */
  get logged(): number {
    let count = this.applied;
    for (const item of this.outstanding) count = item === "renew" ? 0 : Math.min(8, count + item.eighths);
    return count;
  }

  /**
   * How many eighths of silence are waited for next. The first wait is longer for a session that was heard: live ones are hardly ever
   * counted. With all eighths in the log nothing more is waited for, unless a keepalive came since.
   */
  get nextEighths(): number {
    const isCounted = this.logged >= 8;
    const eighths = isCounted ? this.credited : this.credited + 1;
    return Math.max(this.isHeard ? 4 : 1 - Number(isCounted), eighths);
  }

  get nextDueAt(): number {
    return this.heardAt + this.nextEighths * this.unitMs;
  }
}

export function idOf(lease: Lease): SessionId {
  return lease.session;
}

export function needsRenewal(lease: Lease): boolean {
  return !lease.isGone && lease.logged > 0 && lease.expiry !== "proposed";
}

export function removeProposed(lease: Lease, item: Proposed): void {
  const at = lease.outstanding.lastIndexOf(item);
  if (at >= 0) lease.outstanding.splice(at, 1);
}
