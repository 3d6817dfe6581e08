/** One session: opened at need, resumed at every new leader, renewed, closed; and the hand that routes its messages. */
import type { Grant, Outcome, Rejection, RequestNumber, ResumeView, SessionId } from "@holdfast/lock";
import { encodeCommand } from "@holdfast/wire";
import type { ClientMessage, NodeAddress, Query, Refusal } from "@holdfast/wire";
import type { Acquire } from "./acquire.js";
import { Backoff } from "./backoff.js";
import { errorFor, lossReasonFrom } from "./errors.js";
import type { LockLossReason } from "./errors.js";
import { Keepalive } from "./keepalive.js";
import type { KeepaliveEvents } from "./keepalive.js";
import type { LeaderLink } from "./leader-link.js";
import { elapsedMs, instantNow, laterOf, usableMs } from "./lease.js";
import type { Instant } from "./lease.js";
import { LockHandle } from "./lock-handle.js";
import type { LockOwner } from "./lock-handle.js";
import type { Observation } from "./observation.js";
import type { LockContext } from "./platform.js";
import type { Clock, Logger, Random, Timer } from "./ports.js";
import type { ProcessHold } from "./process-hold.js";
import { SessionRequests } from "./session-requests.js";
import type { RequestsHost, SessionFate } from "./session-requests.js";
import { SessionSigns } from "./session-signs.js";
import type { SharedTimer } from "./shared-timer.js";

const retryOptions = { firstMs: 50, maxMs: 1_000 };
/** An openSession that is unanswered for so long is sent again; doubles up to the second. */
const openAnswerMs = 1_000;
const openAnswerMsMax = 8_000;

export interface SessionOptions {
  readonly ttlMs: number;
  /** Renewed by lock.renew() alone, once its acquire is granted; closed when its lock is released. */
  readonly isManual: boolean;
  /** Stays when nothing is held; others are closed then. */
  readonly isLasting: boolean;
  readonly info: string;
  /** By the monotonic clock: a successor of one that ended at once isn't opened at once. */
  readonly openFromMs: number;
}

export type SequencerQuery = Extract<Query, { readonly kind: "sequencer" }>;

export interface SessionParts {
  readonly clock: Clock;
  readonly random: Random;
  /** Of all sessions of a client. */
  readonly timer: SharedTimer;
  readonly link: LeaderLink;
  readonly hold: ProcessHold;
  readonly logger: Logger;
  readonly sequencer: (query: SequencerQuery) => Promise<string | null>;
  readonly observation: Observation;
  readonly context: LockContext;
}

export interface SessionEvents {
  /** Over, with the acquires whose callers still wait. No event comes after it. */
  onEnded(session: Session, reason: LockLossReason, orphans: readonly Acquire[]): void;
  /** A request has ended: the session may hold less now. */
  onRequestEnded(): void;
}

export class Session implements LockOwner, RequestsHost {
  readonly options: SessionOptions;
  /** Made anew when an opening takes longer than its lease. */
  key: string;
  private id: SessionId = 0;
  private stage: "new" | "opening" | "open" | "ended" = "new";
  private readonly parts: SessionParts;
  private readonly events: SessionEvents;
  private readonly requests: SessionRequests;
  private readonly signs: SessionSigns;
  private readonly backoff: Backoff;
  private keepalive: Keepalive | null = null;
  private firstSentAt: Instant | null = null;
  private openedAtMs = 0;
  /** This connection has told all that happened before it. */
  private isResumed = false;
  /** The lease's start when this connection was made: see newLock. */
  private leaseBefore: Instant | null = null;
  private retryTimer: Timer | null = null;
  private openAnswerMs = openAnswerMs;
  private isClosing = false;

  constructor(options: SessionOptions, parts: SessionParts, events: SessionEvents) {
    this.options = options;
    this.parts = parts;
    this.events = events;
    this.key = parts.random.key();
    this.backoff = new Backoff(retryOptions, parts.random);
    this.requests = new SessionRequests(parts, this);
    this.signs = new SessionSigns(options.ttlMs, parts.observation);
  }

  /** 0 until it is open. */
  get session(): SessionId {
    return this.id;
  }

  /** As it was granted; until then as it was asked for. */
  get ttlMs(): number {
    return this.keepalive?.lease.ttlMs ?? this.options.ttlMs;
  }

  get isEnded(): boolean {
    return this.stage === "ended";
  }

  get isInJeopardy(): boolean {
    return this.keepalive?.isInJeopardy ?? false;
  }

  /** How long it has been open. */
  get ageMs(): number {
    return this.openedAtMs === 0 ? 0 : this.parts.clock.monotonicMs() - this.openedAtMs;
  }

  look(): void {
    this.keepalive?.look();
  }

  remainingMs(): number {
    return this.keepalive?.lease.remainingMs() ?? 0;
  }

  heldLocks(): readonly LockHandle[] {
    return this.requests.heldLocks();
  }

  /** False: an acquire needs another session. */
  get takesAcquires(): boolean {
    return !this.isClosing && this.stage !== "ended";
  }

  get isFull(): boolean {
    return this.requests.isFull;
  }

  acquire(acquire: Acquire): void {
    acquire.home = this;
    this.requests.acquire(acquire);
    if (this.stage === "new") this.open();
  }

  abandon(acquire: Acquire): void {
    this.requests.abandon(acquire);
  }

  release(lock: LockHandle, afterMs: number): void {
    this.requests.release(lock, afterMs);
  }

  renew(done: (reason: LockLossReason | null) => void): void {
    if (this.keepalive === null) done("closed");
    else this.keepalive.renew(done);
  }

  sequencer(lock: LockHandle, name: string): Promise<string | null> {
    return this.parts.sequencer({ kind: "sequencer", session: this.id, key: this.key, of: lock.request, name });
  }

  onLost(): void {
    this.events.onRequestEnded();
  }

  /** Releases all that it holds, in one command. Ends when that is answered, or with the lease, which is renewed no more. */
  close(): void {
    if (this.isClosing || this.stage === "ended") return;
    this.isClosing = true;
    // One that is being opened holds nothing; if its opening takes effect, it lasts for one TTL.
    if (this.stage === "open") this.requests.close();
    else this.end("closed");
  }

  /** Ends it here; the cluster is not asked. */
  end(reason: LockLossReason, fate: SessionFate = "unknown"): void {
    if (this.stage === "ended") return;
    this.stage = "ended";
    this.keepalive?.stop();
    this.endRetry();
    const { orphans, locks } = this.requests.end(reason, fate);
    this.signs.tell(this.id, "ended", reason);
    const facts = { session: this.id, ttlMs: this.options.ttlMs, reason };
    if (reason === "closed") this.parts.logger.info(facts, "session closed");
    else this.parts.logger.warn(facts, "session lost");
    this.events.onEnded(this, reason, orphans);
    for (const lock of locks) lock.announceLoss();
  }

  /** There is a leader, a new one or the same on a new footing: what it doesn't know is said again. */
  onLeader(): void {
    this.endRetry();
    if (this.stage === "open") this.resume();
    else if (this.stage === "opening" || (this.stage === "new" && !this.requests.isEmpty)) this.open();
  }

  onOpened(session: SessionId, ttlMs: number): void {
    if (this.stage !== "opening" || this.firstSentAt === null) return;
    this.stage = "open";
    this.id = session;
    this.openedAtMs = this.parts.clock.monotonicMs();
    this.isResumed = true;
    this.endRetry();
    this.keepalive = new Keepalive({ ttlMs, openedAt: this.firstSentAt }, this.parts, this.keepaliveEvents());
    this.signs.tell(this.id, "open");
    this.parts.logger.info({ session, ttlMs }, "session opened");
    this.keepalive.start();
    if (this.isEnded) return;
    this.requests.pump();
    this.closeIfIdle();
  }

  onResumed(view: ResumeView): void {
    if (this.stage !== "open" || this.isResumed || this.keepalive?.look() !== true) return;
    this.backoff.reset();
    // First what happened before this connection: see newLock.
    this.requests.reconcile(view);
    this.isResumed = true;
  }

  onAcknowledged(number: number): void {
    this.keepalive?.onAcknowledged(number);
  }

  onOutcome(request: RequestNumber, outcome: Outcome): void {
    // After a stall a grant may be read before any timer fires: a lock whose lease is over is not handed out.
    if (outcome.kind === "granted" && this.keepalive?.look() !== true) return;
    this.requests.onOutcome(request, outcome);
  }

  onRejected(request: RequestNumber, rejection: Rejection): void {
    this.requests.onRejected(request, rejection);
  }

  /** `request` null: a resume or keepalive, or this session's openSession. */
  onRefused(request: RequestNumber | null, refusal: Refusal): void {
    if (request !== null) this.requests.onRefused(request, refusal);
    else if (refusal.code === "not_leader") this.parts.link.onNotLeader(refusal.leader);
    else if (refusal.code === "session_gone") this.onEnded(lossReasonFrom(refusal.reason));
    else if (this.stage === "opening") this.onOpenRefused(refusal);
    else if (refusal.code === "invalid_argument") this.parts.link.drop(`refused a resume: ${refusal.problem}`);
    else {
      if (!this.isResumed) this.retryLater(() => this.resume());
      this.keepalive?.onRefused();
    }
  }

  /** The cluster says so. */
  onEnded(reason: LockLossReason): void {
    this.end(reason, this.isClosing && reason === "closed" ? "released" : "lost");
  }

  onSuperseded(): void {
    if (this.stage === "open") this.parts.link.drop("another connection took this session over");
  }

  // What its requests ask of it.

  get canSend(): boolean {
    return this.stage === "open" && this.parts.link.isReady;
  }

  send(message: ClientMessage): void {
    this.parts.link.send(message);
  }

  onAcquireSent(): void {
    if (this.keepalive?.isDue === true && this.isAutomatic) this.keepalive.sendNow();
  }

  /**
   * maxHoldMs is counted from the sending of the last keepalive acknowledged before the grant, which is earlier than the grant. That
   * holds for one connection's order only: a grant told after a reconnect may be older than what this connection has acknowledged.
   */
  newLock(acquire: Acquire, grants: readonly Grant[], maxHoldMs: number): LockHandle {
    const { keepalive, leaseBefore, parts } = this;
    if (keepalive === null) throw new Error("only an open session has grants");
    const { start } = keepalive.lease;
    const renewedAt = this.isResumed ? start : (leaseBefore ?? start);
    const heldFrom = acquire.sentAt === null ? renewedAt : laterOf(renewedAt, acquire.sentAt);
    const { mode, stopOn, heldLongMs } = acquire.request;
    const { number: request, span } = acquire;
    // From now on only its holder renews it: it begins with a whole lease.
    if (this.options.isManual && keepalive.lease.ageMs > keepalive.lease.ttlMs / 10) keepalive.sendNow();
    return new LockHandle({ request, mode, grants, stopOn, maxHoldMs, heldFrom, heldLongMs, span }, this, parts);
  }

  onRequestEnded(): void {
    this.events.onRequestEnded();
    this.closeIfIdle();
  }

  onGone(reason: LockLossReason): void {
    this.onEnded(reason);
  }

  onNotLeader(leader: NodeAddress | null): void {
    this.parts.link.onNotLeader(leader);
  }

  onNotResumed(): void {
    this.parts.link.drop("the node takes this connection for a stranger's");
  }

  private get isAutomatic(): boolean {
    return !this.isClosing && (!this.options.isManual || this.requests.isWaiting);
  }

  private open(): void {
    if (this.stage === "new") this.signs.tell(this.id, "opening");
    this.stage = "opening";
    const { clock, link, random } = this.parts;
    if (!link.isReady || this.retryTimer !== null) return;
    const { ttlMs, info, openFromMs } = this.options;
    const delayMs = openFromMs - clock.monotonicMs();
    if (delayMs > 0) return this.retryAfter(delayMs, () => this.open());
    // Opened under the first key, it would be over as soon as it is known.
    if (this.firstSentAt !== null && elapsedMs(clock, this.firstSentAt) >= usableMs(ttlMs)) {
      this.key = random.key();
      this.firstSentAt = null;
    }
    this.firstSentAt ??= instantNow(clock);
    link.send({ kind: "command", payload: encodeCommand({ kind: "openSession", key: this.key, ttlMs, info }) });
    // No keepalive tells yet that this node leads only by its own word.
    this.retryAfter(this.openAnswerMs, () => {
      this.openAnswerMs = Math.min(2 * this.openAnswerMs, openAnswerMsMax);
      link.suspect();
      this.open();
    });
  }

  private onOpenRefused(refusal: Refusal): void {
    switch (refusal.code) {
      case "overloaded":
      case "no_quorum":
      case "unknown_outcome":
        this.requests.noteOpenRefused(refusal.code === "overloaded");
        this.endRetry();
        this.retryLater(() => this.open());
        return;
      default:
        this.requests.failQueued(errorFor(refusal));
        this.end("closed");
    }
  }

  private resume(): void {
    const { keepalive } = this;
    if (keepalive === null || !keepalive.look() || !this.parts.link.isReady) return;
    this.isResumed = false;
    this.leaseBefore = keepalive.lease.start;
    this.parts.link.send({ kind: "resume", session: this.id, key: this.key });
    if (keepalive.isActing) keepalive.sendNow();
    this.requests.sendUnanswered();
  }

  private retryLater(run: () => void): void {
    if (this.retryTimer === null) this.retryAfter(this.backoff.nextMs(), run);
  }

  private retryAfter(delayMs: number, run: () => void): void {
    this.retryTimer = this.parts.clock.setTimer(delayMs, () => {
      this.retryTimer = null;
      if (this.stage !== "ended") run();
    });
  }

  private endRetry(): void {
    this.retryTimer?.cancel();
    this.retryTimer = null;
  }

  private closeIfIdle(): void {
    if (this.options.isManual && this.requests.isEmpty) this.close();
  }

  private keepaliveEvents(): KeepaliveEvents {
    return {
      isAutomatic: () => this.isAutomatic,
      onDue: () => {
        if (this.options.isLasting || this.options.isManual || !this.requests.isEmpty) return true;
        this.close();
        return false;
      },
      send: (number) => {
        if (!this.canSend) return false;
        this.parts.link.send({ kind: "keepalive", session: this.id, number });
        return true;
      },
      onLook: () => this.requests.lookHeldLong(this.parts.clock.monotonicMs()),
      onRenewed: (marginMs) => this.parts.observation.renewed(marginMs),
      onFailed: (cause) => {
        this.parts.observation.renewalFailed(cause);
        this.parts.link.suspect();
      },
      onJeopardy: (isFirst) => {
        if (isFirst) {
          this.signs.tell(this.id, "jeopardy");
          this.parts.logger.warn({ session: this.id, remainingMs: this.remainingMs() }, "session in jeopardy");
        }
        for (const lock of this.heldLocks()) lock.onJeopardy();
      },
      onRecovered: () => {
        this.signs.tell(this.id, "recovered");
        this.parts.logger.info({ session: this.id }, "session renewed again");
      },
      onLost: (reason) => this.end(reason),
    };
  }
}
