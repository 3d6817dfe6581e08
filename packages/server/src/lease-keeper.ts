/**
 * The leader's clocks: keepalives, silence, expiry, maxHold and lock-delays (docs/architecture.md, "Time").
 *
 * Keepalives are not logged. What is logged is silence, in eighths of the TTL, so that a new leader goes on counting where the old one
 * stopped. The rules that keep a live holder safe:
 * - a keepalive is acknowledged only after a quorum round that began after it was read, and never between the proposal of a
 *   suspectSessions that names its session and the application of a later renewSuspects, nor while an expiry of it is undecided;
 * - silence is counted only as heard out on this leader's own lease clock, each eighth once;
 * - an expiry is proposed only when the log says eight eighths, and after a quorum round that began after the deadline.
 */
import type { Command, Effect, SessionId } from "@holdfast/lock";
import { DeadlineHeap } from "./deadline-heap.js";
import { clockRateMargin, idOf, Lease, needsRenewal, removeProposed } from "./lease.js";
import type { Proposed } from "./lease.js";

/** What the keeper asks of the host. Proposals are reserved ones, bound to the current term. */
export interface LeaseKeeperHost {
  /** `onRefused` runs in the same turn if the entry did not enter the log. */
  propose(command: Command, onRefused: () => void): void;
  /** One of the two runs after a quorum round that begins now or later, and after its index is applied. */
  gather(onReady: () => void, onFailed: () => void): void;
  /** The same, after all that was read in time and may hold a keepalive has been seen to. */
  gatherExpiry(onReady: () => void, onFailed: () => void): void;
  acknowledge(session: SessionId, number: number): void;
}

/** What a new leader takes its clocks from: the lock machine as of its own no-op. */
export interface LeaseSource {
  sessions(): Iterable<{ readonly id: SessionId; readonly ttlMs: number; readonly silence: number }>;
  delays(): Iterable<{ readonly name: string; readonly index: number; readonly delayMs: number }>;
  timedHolds(): Iterable<{
    readonly session: SessionId;
    readonly of: number;
    readonly token: number;
    readonly maxHoldMs: number;
  }>;
  /** Whether this one goes on. */
  hasHold(session: SessionId, of: number, token: number): boolean;
  /** How much ends with a session; null when it has ended. */
  sessionView(session: SessionId): { readonly holds: number; readonly waits: number } | null;
}

/** Ids in one entry: bounds the time of one apply. */
const idsPerEntryMax = 1_000;
/** Holds and waits that one expiry ends, but for those of its last session (at most 1,000): some 5 ms of an apply, on every node. */
const endedPerEntryMax = 1_000;
/** A refused timed proposal is tried again after this long. */
const retryMs = 100;
/** Fewer deadlines than this aren't worth a look for those of no use. */
const deadlinesMin = 4_096;

type Deadline = Lease | { readonly kind: "delay"; readonly name: string; readonly index: number } | HoldDeadline;

interface HoldDeadline {
  readonly kind: "hold";
  readonly session: SessionId;
  readonly of: number;
  readonly token: number;
}

export class LeaseKeeper {
  private readonly leases = new Map<SessionId, Lease>();
  private readonly heap = new DeadlineHeap<Deadline>();
  private readonly host: LeaseKeeperHost;
  private stalledMs = 0;
  private isServing = false;
  /** Keepalives read since the last round began: all of them share the next. */
  private gathering = new Map<Lease, number>();
  private readonly toRenew = new Set<Lease>();
  private awaitingRound: Lease[] = [];
  private readonly readyToExpire: Lease[] = [];
  private expiriesInFlight = 0;
  private source: LeaseSource | null = null;
  /** At this size deadlines that are of no use any more are dropped. */
  private compactsAt = deadlinesMin;

  constructor(host: LeaseKeeperHost) {
    this.host = host;
  }

  /** The loop was stuck for so long: all deadlines move by it, for nobody could be heard. */
  noteStall(lateMs: number): void {
    this.stalledMs += lateMs;
  }

  /** The leader's own no-op is applied: its clocks begin, for every session anew. */
  start(machine: LeaseSource, nowMs: number): void {
    this.stop();
    this.isServing = true;
    this.source = machine;
    const now = this.leaseTime(nowMs);
    for (const session of machine.sessions()) {
      const lease = new Lease(session.id, session.ttlMs, now, false, session.silence);
      this.leases.set(session.id, lease);
      this.arm(lease);
    }
    // Lower bounds both: what the last leader had waited is not known here.
    for (const delay of machine.delays()) this.armDelay(delay.name, delay.index, delay.delayMs, now);
    for (const hold of machine.timedHolds()) this.armHold(hold.session, hold.of, hold.token, hold.maxHoldMs, now);
  }

  stop(): void {
    this.isServing = false;
    for (const lease of this.leases.values()) lease.isGone = true;
    this.leases.clear();
    this.heap.clear();
    this.source = null;
    this.compactsAt = deadlinesMin;
    this.gathering = new Map();
    this.toRenew.clear();
    this.awaitingRound = [];
    this.readyToExpire.length = 0;
    this.expiriesInFlight = 0;
  }

  /**
   * A keepalive that was read. False: this leader knows no such session; the caller answers after a round.
   * It counts as heard at once, whether or not it will be acknowledged.
   */
  onKeepalive(session: SessionId, number: number, nowMs: number): boolean {
    const lease = this.leases.get(session);
    if (lease === undefined) return false;
    lease.heardAt = this.leaseTime(nowMs);
    lease.isHeard = true;
    lease.credited = 0;
    if (lease.expiry === "awaitsRound" || lease.expiry === "ready") lease.expiry = "none";
    this.gathering.set(lease, Math.max(number, this.gathering.get(lease) ?? -1));
    if (lease.logged > 0 && lease.expiry === "none") this.toRenew.add(lease);
    this.arm(lease);
    return true;
  }

  /** Effects of applied entries, in order. */
  onEffects(effects: readonly Effect[], nowMs: number): void {
    if (!this.isServing) return;
    for (const effect of effects) this.onEffect(effect, nowMs);
  }

  /** After the turn's messages: renewals are proposed, and the keepalives read get their round. */
  flush(): void {
    if (!this.isServing) return;
    if (this.toRenew.size > 0) this.proposeRenewals();
    if (this.gathering.size === 0) return;
    const heard = this.gathering;
    this.gathering = new Map();
    this.host.gather(
      () => this.onConfirmed(heard),
      () => {},
    );
  }

  /**
   * Decides what is due. The caller has read all sockets once since the timer fired, and holds no unread keepalive.
   */
  decide(nowMs: number): void {
    if (!this.isServing) return;
    const now = this.leaseTime(nowMs);
    const suspects = new Map<number, Lease[]>();
    for (let due = this.heap.popDue(now); due !== undefined; due = this.heap.popDue(now)) {
      if (due instanceof Lease) this.onLeaseDue(due, now, suspects);
      else if (due.kind === "delay") this.endDelay(due.name, due.index, now);
      // Given back long before, most of them: no entry for nothing.
      else if (this.source?.hasHold(due.session, due.of, due.token)) this.endHold(due, now);
    }
    for (const [eighths, leases] of suspects) this.proposeSuspects(leases, eighths, now);
    this.askRoundForExpiries(now);
    this.proposeExpiries(now);
  }

  /** The next time at which `decide` has work, on the monotonic clock; Infinity for none. */
  nextDeadlineMs(): number {
    if (!this.isServing) return Number.POSITIVE_INFINITY;
    if (this.readyToExpire.length > 0 && this.expiriesInFlight === 0) return 0;
    return this.heap.earliest + this.stalledMs;
  }

  /** For metrics and checks: how many deadlines are kept. */
  get deadlineCount(): number {
    return this.heap.size;
  }

  private leaseTime(monotonicMs: number): number {
    return monotonicMs - this.stalledMs;
  }

  private arm(lease: Lease): void {
    if (lease.isArmed || lease.isGone) return;
    lease.isArmed = true;
    this.schedule(lease.nextDueAt, lease);
  }

  private schedule(at: number, deadline: Deadline): void {
    this.heap.push(at, deadline);
    if (this.heap.size >= this.compactsAt) this.compact();
  }

  /** Holds are given back and sessions are closed long before their time: a maxHold of a week must not keep each of them for a week. */
  private compact(): void {
    const holds = new Set<string>();
    for (const { session, of, token } of this.source?.timedHolds() ?? []) holds.add(holdKey(session, of, token));
    this.heap.retain((deadline) => {
      if (deadline instanceof Lease) return !deadline.isGone;
      return deadline.kind === "delay" || holds.has(holdKey(deadline.session, deadline.of, deadline.token));
    });
    this.compactsAt = Math.max(deadlinesMin, 2 * this.heap.size);
  }

  private armDelay(name: string, index: number, delayMs: number, now: number): void {
    this.schedule(now + delayMs * clockRateMargin, { kind: "delay", name, index });
  }

  private armHold(session: SessionId, of: number, token: number, maxHoldMs: number, now: number): void {
    this.schedule(now + maxHoldMs * clockRateMargin, { kind: "hold", session, of, token });
  }

  private onEffect(effect: Effect, nowMs: number): void {
    const now = this.leaseTime(nowMs);
    switch (effect.kind) {
      case "sessionOpened": {
        if (!effect.isNew) return;
        const lease = new Lease(effect.session, effect.ttlMs, now, true, 0);
        this.leases.set(effect.session, lease);
        this.arm(lease);
        return;
      }
      case "sessionEnded": {
        const lease = this.leases.get(effect.session);
        if (lease === undefined) return;
        this.settleExpiry(lease);
        lease.isGone = true;
        this.leases.delete(effect.session);
        this.gathering.delete(lease);
        this.toRenew.delete(lease);
        return;
      }
      case "silence": {
        const lease = this.leases.get(effect.session);
        if (lease === undefined) return;
        // Every entry about silence since this leader's no-op is its own, and they apply in the order of their proposals.
        lease.outstanding.shift();
        lease.applied = effect.count;
        this.maybeAcknowledge(lease);
        return;
      }
      case "expiryRefused": {
        const lease = this.leases.get(effect.session);
        if (lease === undefined) return;
        this.settleExpiry(lease);
        this.maybeAcknowledge(lease);
        this.arm(lease);
        return;
      }
      case "holdBegan":
        if (effect.maxHoldMs > 0) this.armHold(effect.session, effect.of, effect.token, effect.maxHoldMs, now);
        return;
      case "lockDelayBegan":
        this.armDelay(effect.name, effect.index, effect.delayMs, now);
        return;
      default:
        return;
    }
  }

  private onConfirmed(heard: ReadonlyMap<Lease, number>): void {
    for (const [lease, number] of heard) {
      if (lease.isGone) continue;
      lease.confirmed = Math.max(lease.confirmed, number);
      this.maybeAcknowledge(lease);
    }
  }

  /** Between the proposal of a suspicion and the application of a later renewal, silence may be counted on elsewhere: no word then. */
  private maybeAcknowledge(lease: Lease): void {
    if (lease.confirmed <= lease.acknowledged) return;
    if (lease.applied > 0 || lease.outstanding.length > 0 || lease.expiry === "proposed") {
      if (lease.logged > 0 && lease.expiry !== "proposed") this.toRenew.add(lease);
      return;
    }
    lease.acknowledged = lease.confirmed;
    this.host.acknowledge(lease.session, lease.confirmed);
  }

  private onLeaseDue(lease: Lease, now: number, suspects: Map<number, Lease[]>): void {
    lease.isArmed = false;
    if (lease.isGone || lease.expiry !== "none") return;
    if (lease.nextDueAt > now) {
      this.arm(lease);
      return;
    }
    // What is due is heard out, whatever the division's last bit says: else it would be due for ever.
    const heardOut = Math.max(lease.nextEighths, Math.floor((now - lease.heardAt) / lease.unitMs));
    const eighths = Math.min(8 - lease.logged, heardOut - lease.credited);
    if (eighths > 0) {
      const others = suspects.get(eighths);
      if (others === undefined) suspects.set(eighths, [lease]);
      else others.push(lease);
    }
    lease.credited = heardOut;
    if (lease.logged + Math.max(0, eighths) >= 8) {
      lease.expiry = "awaitsRound";
      this.awaitingRound.push(lease);
    } else {
      this.arm(lease);
    }
  }

  private proposeSuspects(leases: readonly Lease[], eighths: number, now: number): void {
    for (let from = 0; from < leases.length; from += idsPerEntryMax) {
      const part = leases.slice(from, from + idsPerEntryMax);
      const mark: Proposed = { eighths };
      for (const lease of part) lease.outstanding.push(mark);
      this.host.propose({ kind: "suspectSessions", ids: part.map(idOf), eighths }, () => {
        for (const lease of part) {
          removeProposed(lease, mark);
          lease.credited -= eighths;
          if (lease.expiry !== "none") lease.expiry = "none";
          this.retryLater(lease, now);
        }
      });
    }
  }

  private proposeRenewals(): void {
    const leases = [...this.toRenew].filter(needsRenewal);
    this.toRenew.clear();
    for (let from = 0; from < leases.length; from += idsPerEntryMax) {
      const part = leases.slice(from, from + idsPerEntryMax);
      for (const lease of part) lease.outstanding.push("renew");
      this.host.propose({ kind: "renewSuspects", ids: part.map(idOf) }, () => {
        // The client's next keepalive asks again.
        for (const lease of part) removeProposed(lease, "renew");
      });
    }
  }

  /** The deadline has passed; only a leader that still is one after it may end a session. */
  private askRoundForExpiries(now: number): void {
    if (this.awaitingRound.length === 0) return;
    const leases = this.awaitingRound;
    this.awaitingRound = [];
    this.host.gatherExpiry(
      () => {
        for (const lease of leases) {
          if (lease.isGone || lease.expiry !== "awaitsRound") continue;
          lease.expiry = "ready";
          this.readyToExpire.push(lease);
        }
      },
      () => {
        // A leadership transfer was on, and may come to nothing: ask again.
        for (const lease of leases) {
          if (lease.isGone || lease.expiry !== "awaitsRound") continue;
          lease.expiry = "none";
          this.retryLater(lease, now);
        }
      },
    );
  }

  /** One entry in flight at a time: between two of them keepalives and heartbeats have their turns. */
  private proposeExpiries(now: number): void {
    if (this.expiriesInFlight > 0) return;
    const part = this.takeReady();
    if (part.length === 0) return;
    this.expiriesInFlight = part.length;
    this.host.propose({ kind: "expireSessions", ids: part.map(idOf) }, () => {
      this.expiriesInFlight = 0;
      for (const lease of part) {
        if (lease.isGone || lease.expiry !== "proposed") continue;
        lease.expiry = "none";
        this.retryLater(lease, now);
      }
    });
  }

  private takeReady(): Lease[] {
    const part: Lease[] = [];
    let ended = 0;
    let taken = 0;
    for (const lease of this.readyToExpire) {
      if (part.length === idsPerEntryMax || ended >= endedPerEntryMax) break;
      taken += 1;
      // One that was renewed meanwhile is passed over; one that became ready again stands here twice, and counts once.
      if (lease.isGone || lease.expiry !== "ready") continue;
      lease.expiry = "proposed";
      part.push(lease);
      const view = this.source?.sessionView(lease.session);
      ended += (view?.holds ?? 0) + (view?.waits ?? 0);
    }
    this.readyToExpire.splice(0, taken);
    return part;
  }

  private settleExpiry(lease: Lease): void {
    if (lease.expiry === "proposed") this.expiriesInFlight -= 1;
    lease.expiry = "none";
  }

  private endDelay(name: string, index: number, now: number): void {
    this.host.propose({ kind: "endLockDelay", name, index }, () => {
      this.heap.push(now + retryMs, { kind: "delay", name, index });
    });
  }

  private endHold(hold: HoldDeadline, now: number): void {
    const { session, of, token } = hold;
    this.host.propose({ kind: "endHold", session, of, token }, () => this.heap.push(now + retryMs, hold));
  }

  private retryLater(lease: Lease, now: number): void {
    if (lease.isArmed || lease.isGone) return;
    lease.isArmed = true;
    this.heap.push(now + retryMs, lease);
  }
}

function holdKey(session: SessionId, of: number, token: number): string {
  return `${session}/${of}/${token}`;
}
