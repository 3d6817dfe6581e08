/**
 * Keeps one session's lease (docs/guarantees.md, P4 and P5): sends keepalives, takes their acknowledgements, and says "jeopardy" when
 * a renewal has failed and "lost" when the lease is over. A timer only reminds; what counts is the clock, read again at every look.
 */
import type { LockLossReason } from "./errors.js";
import { instantNow, Lease, restTimerMsMin, usableMs } from "./lease.js";
import type { Instant } from "./lease.js";
import type { Clock, Timer } from "./ports.js";
import type { SharedTimer } from "./shared-timer.js";

/** After a failed renewal; doubles up to TTL/10. */
const retryMsFirst = 50;
/** A suspend shows at the first look at the clocks after it: look this often at least. */
const lookMsMax = 1_000;
/** A timer later than this says that this process was stuck. */
const stallMs = 100;

export interface KeepaliveOptions {
  readonly ttlMs: number;
  /** When openSession was first sent. */
  readonly openedAt: Instant;
}

export interface KeepaliveParts {
  readonly clock: Clock;
  readonly timer: SharedTimer;
}

export interface KeepaliveEvents {
  /** Whether it renews by itself; else only while renew() is under way. */
  isAutomatic(): boolean;
  /** A keepalive is due by time. False: the session has no more use for its lease. */
  onDue(): boolean;
  /** False: no leader is known now. */
  send(number: number): boolean;
  /** At each timer, which comes at least once a second: the lease still runs. */
  onLook(): void;
  /** Acknowledged; so much of the lease was left. */
  onRenewed(marginMs: number): void;
  /** No acknowledgement came in time, or it was refused. */
  onFailed(cause: "unanswered" | "refused"): void;
  /** At each failure; `isFirst`: it was well until now. */
  onJeopardy(isFirst: boolean): void;
  onRecovered(): void;
  /** Over by the clock. Nothing is sent or called after it. */
  onLost(reason: LockLossReason): void;
}

export class Keepalive {
  readonly lease: Lease;
  private readonly clock: Clock;
  private readonly shared: SharedTimer;
  private readonly events: KeepaliveEvents;
  private isOver = false;
  private jeopardy = false;
  private lastNumber = 0;
  /** Sent and not acknowledged, oldest first. */
  private sent: { readonly number: number; readonly at: Instant }[] = [];
  private failures = 0;
  private nextAttemptMs: number;
  /** While an attempt is under way: when it has failed. */
  private attemptEndsMs: number | null = null;
  private waiters: { readonly number: number; readonly done: (reason: LockLossReason | null) => void }[] = [];
  private timer: Timer | null = null;
  private timerDueMs: number;
  /** By how much timers were late since the last acknowledgement. */
  private stalledMs = 0;

  constructor(options: KeepaliveOptions, parts: KeepaliveParts, events: KeepaliveEvents) {
    this.clock = parts.clock;
    this.shared = parts.timer;
    this.events = events;
    this.lease = new Lease(options.ttlMs, options.openedAt, parts.clock);
    this.nextAttemptMs = this.thirdFrom(options.openedAt);
    this.timerDueMs = this.clock.monotonicMs();
  }

  start(): void {
    this.look();
    this.onTimer();
  }

  stop(): void {
    this.isOver = true;
    this.timer?.cancel();
    this.timer = null;
    const waiters = this.waiters;
    this.waiters = [];
    for (const { done } of waiters) done("closed");
  }

  get isInJeopardy(): boolean {
    return this.jeopardy;
  }

  /** Looks at both clocks. False: the lease is over, and its owner has been told. */
  look(): boolean {
    if (this.isOver) return false;
    if (this.lease.remainingMs() > 0) return true;
    this.onOver();
    return false;
  }

  /** A third of the TTL has passed since the lease was last renewed, and no keepalive is on its way. */
  get isDue(): boolean {
    return (
      this.attemptEndsMs === null && this.clock.monotonicMs() >= this.lease.start.monotonicMs + this.lease.ttlMs / 3
    );
  }

  /** Renews by itself, or was asked to. */
  get isActing(): boolean {
    return this.attemptEndsMs !== null || this.waiters.length > 0 || this.events.isAutomatic();
  }

  sendNow(): void {
    if (!this.look()) return;
    this.attempt();
    this.arm();
  }

  /** Sends a keepalive; `done` hears when it, or a later one, is acknowledged (null), or why the lease ended first. */
  renew(done: (reason: LockLossReason | null) => void): void {
    if (!this.look()) {
      done("expired");
      return;
    }
    this.attempt();
    this.waiters.push({ number: this.lastNumber, done });
    this.arm();
  }

  /** All keepalives up to `number` have renewed the session. */
  onAcknowledged(number: number): void {
    // Too late: the loss stands, although the cluster says "still yours".
    if (!this.look()) return;
    let renewedAt: Instant | null = null;
    while (this.sent[0] !== undefined && this.sent[0].number <= number) {
      renewedAt = this.sent[0].at;
      this.sent.shift();
    }
    if (renewedAt === null) return;
    this.events.onRenewed(Math.max(this.lease.remainingMs(), 0));
    this.lease.renew(renewedAt);
    this.stalledMs = 0;
    this.failures = 0;
    if (this.sent.length === 0) this.attemptEndsMs = null;
    this.nextAttemptMs = this.thirdFrom(this.lease.start);
    this.arm();
    if (this.jeopardy) {
      this.jeopardy = false;
      this.events.onRecovered();
    }
    const isRenewed = (one: { readonly number: number }): boolean => one.number <= number;
    const renewed = this.waiters.filter(isRenewed);
    if (renewed.length === 0) return;
    this.waiters = this.waiters.filter((one) => !isRenewed(one));
    for (const { done } of renewed) done(null);
  }

  /** The leader refused a keepalive, or the resume before it, for now: the attempt under way has failed, if there is one. */
  onRefused(): void {
    if (!this.look() || this.attemptEndsMs === null) return;
    this.fail("refused");
    this.arm();
  }

  private onTimer(): void {
    if (this.isOver) return;
    const now = this.clock.monotonicMs();
    const isAlong = now < this.timerDueMs;
    const wasStuck = this.noteStall();
    if (!this.look()) return;
    this.events.onLook();
    if (this.attemptEndsMs !== null && now >= this.attemptEndsMs) {
      // If this process was stuck, the answer may be waiting to be read: that is no failed renewal yet.
      if (wasStuck) this.attempt();
      else this.fail("unanswered");
    }
    if (this.attemptEndsMs === null && this.isActing && now >= this.nextAttemptMs - (isAlong ? this.earlyMs : 0)) {
      if (this.events.onDue()) this.attempt();
      else this.nextAttemptMs = now + this.lease.ttlMs / 3;
    }
    this.arm();
  }

  private attempt(): void {
    this.lastNumber += 1;
    const at = instantNow(this.clock);
    if (this.events.send(this.lastNumber)) this.sent.push({ number: this.lastNumber, at });
    this.attemptEndsMs = at.monotonicMs + Math.min(this.lease.ttlMs / 6, 1_000);
  }

  private fail(cause: "unanswered" | "refused"): void {
    this.attemptEndsMs = null;
    const delayMs = Math.min(retryMsFirst * 2 ** Math.min(this.failures, 20), this.lease.ttlMs / 10);
    this.nextAttemptMs = this.clock.monotonicMs() + delayMs;
    this.failures += 1;
    this.events.onFailed(cause);
    if (this.isOver) return;
    const isFirst = !this.jeopardy;
    this.jeopardy = true;
    this.events.onJeopardy(isFirst);
  }

  private onOver(): void {
    this.noteStall();
    const reason = this.lossReason();
    const waiters = this.waiters;
    this.waiters = [];
    this.stop();
    for (const { done } of waiters) done(reason);
    this.events.onLost(reason);
  }

  private lossReason(): LockLossReason {
    if (this.lease.wasSuspendedAway) return "clock_jump";
    return this.stalledMs >= usableMs(this.lease.ttlMs) / 4 ? "loop_stall" : "expired";
  }

  /** A keepalive may come so much before its time to share a frame with another session's: a tenth of its interval; not one tried again. */
  private get earlyMs(): number {
    return this.failures > 0 ? 0 : this.lease.ttlMs / 30;
  }

  private noteStall(): boolean {
    const lateMs = this.clock.monotonicMs() - this.timerDueMs;
    this.timerDueMs = Number.POSITIVE_INFINITY;
    if (lateMs <= stallMs) return false;
    this.stalledMs += lateMs;
    return true;
  }

  private arm(): void {
    this.timer?.cancel();
    this.timer = null;
    if (this.isOver) return;
    const now = this.clock.monotonicMs();
    const lookMs = Math.min(this.lease.ttlMs / 6, lookMsMax, Math.max(this.lease.remainingMs(), restTimerMsMin));
    const actMs = (this.attemptEndsMs ?? Math.max(this.nextAttemptMs, now)) - now;
    const isToAct = this.isActing && actMs <= lookMs;
    const delayMs = Math.max(isToAct ? actMs : lookMs, 0);
    this.timerDueMs = now + delayMs;
    const isForNext = isToAct && this.attemptEndsMs === null;
    const earlyMs = isForNext ? this.earlyMs : delayMs / 4;
    this.timer = this.shared.set(delayMs, earlyMs, () => this.onTimer());
  }

  /** Never later than a third; earlier by up to 10 %, so that the clients of one moment spread. */
  private thirdFrom(start: Instant): number {
    return start.monotonicMs + (this.lease.ttlMs / 3) * (0.9 + 0.1 * this.shared.fraction);
  }
}
