import { acquiredBy } from "../books/calls.js";
import type { AcquireOperation, Call } from "../books/calls.js";
import type { Run } from "../run.js";

/** From when on holds may end without a call: by expiry, maxHold, closing, or a force of which nobody knows. */
export class EarliestEnds {
  private readonly run: Run;
  private readonly isInBound: boolean;
  private readonly sessions: Map<number, number> = new Map();
  private readonly closings: Map<string, number> = new Map();
  /** Calls of forceRelease, by lock and token; and those without a known outcome. */
  private readonly forces: Map<string, number> = new Map();
  private readonly unknownForces: Map<string, number> = new Map();

  constructor(run: Run) {
    this.run = run;
    this.isInBound = run.cluster.leaderRate(0, Number.POSITIVE_INFINITY).fastest <= 1 + run.rho;
    for (const { client, op, at, end } of run.calls.calls.values()) {
      if (op.kind === "close") lower(this.closings, client, at);
      if (op.kind !== "forceRelease") continue;
      lower(this.forces, `${op.name}@${op.token}`, at);
      if (end === null || end.result.kind === "unknown") lower(this.unknownForces, `${op.name}@${op.token}`, at);
    }
    for (const { event } of run.calls.ended) {
      if (event.reason === "closed") lower(this.sessions, event.session, event.at);
    }
    for (const { event } of run.calls.opened) {
      lower(this.sessions, event.session, this.expiryOf(event.session, event.key, event.ttlMs));
    }
  }

  endOf(call: Call, { maxHoldMs }: AcquireOperation, session: number | null): number {
    const ofSession = session === null ? undefined : this.sessions.get(session);
    // A release whose confirmation never came may have taken effect all the same.
    const unconfirmed = call.releases.filter(
      ({ end }) => end?.result.kind !== "released" || end.result.how !== "released",
    );
    const grants = acquiredBy(call)?.grants ?? [];
    // Forced at one of its names, a hold ends at the others too, where nobody called.
    const forces = grants.length > 1 ? this.forces : this.unknownForces;
    return Math.min(
      ofSession ?? call.at,
      maxHoldMs === 0 ? Number.POSITIVE_INFINITY : call.at + maxHoldMs * (1 - this.run.rho),
      this.closings.get(call.client) ?? Number.POSITIVE_INFINITY,
      this.endInLog(call),
      ...unconfirmed.map(({ at }) => at),
      ...grants.map(({ name, token }) => forces.get(`${name}@${token}`) ?? Number.POSITIVE_INFINITY),
    );
  }

  /** Somebody may have forced it, or closed its session, whose call isn't told. */
  private endInLog(call: Call): number {
    const { session, request } = acquiredBy(call) ?? { session: null, request: null };
    const hold = session === null || request === null ? null : this.run.ledger.requestFor(session, request)?.hold;
    const end = hold?.end ?? null;
    const isCalled = end !== null && (end.how === "forced" || end.how === "closed");
    return isCalled ? this.run.commitAt(end.index) : Number.POSITIVE_INFINITY;
  }

  private expiryOf(session: number, key: string, ttlMs: number): number {
    if (!this.isInBound) return Number.NEGATIVE_INFINITY;
    const lease = this.run.leases.leases.get(session);
    let renewedAt = this.run.leases.firstOpeningOf(key) ?? 0;
    for (const acknowledgement of lease?.acknowledgements ?? []) {
      const sentAt = lease?.keepalives.get(acknowledgement.number)?.sent?.at;
      renewedAt = Math.max(renewedAt, lease?.receiptOf(acknowledgement)?.at ?? sentAt ?? 0);
    }
    return renewedAt + ttlMs * (1 - this.run.rho);
  }
}

function lower<Key>(times: Map<Key, number>, key: Key, at: number): void {
  times.set(key, Math.min(times.get(key) ?? Number.POSITIVE_INFINITY, at));
}
