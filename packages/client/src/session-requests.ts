/** What the answers of the cluster mean for a session's requests: acquires on their way to a grant and to its end. */
import type { Grant, Outcome, Rejection, RequestNumber, ResumeView } from "@holdfast/lock";
import type { NodeAddress, Refusal } from "@holdfast/wire";
import type { Acquire } from "./acquire.js";
import { assertNever, errorFor, lossReasonFrom, refusalOf } from "./errors.js";
import type { HoldfastError, LockLossReason } from "./errors.js";
import type { LockHandle } from "./lock-handle.js";
import type { Clock, Random } from "./ports.js";
import { RequestSender } from "./request-sender.js";
import type { OpenEnding, SenderHost } from "./request-sender.js";

export interface RequestsHost extends SenderHost {
  newLock(acquire: Acquire, grants: readonly Grant[], maxHoldMs: number): LockHandle;
  /** The cluster has ended the session, or never knew it. */
  onGone(reason: LockLossReason): void;
  onNotLeader(leader: NodeAddress | null): void;
  /** The node doesn't take this connection for the session's. */
  onNotResumed(): void;
}

/**
 * What became of a session's holds at its end: released by its closing, lost by the cluster's word, or lost by this client's clock,
 * while the cluster may have seen it otherwise.
 */
export type SessionFate = "released" | "lost" | "unknown";

export class SessionRequests {
  private readonly host: RequestsHost;
  private readonly sender: RequestSender;

  constructor(parts: { clock: Clock; random: Random }, host: RequestsHost) {
    this.host = host;
    this.sender = new RequestSender(parts, host);
  }

  /** Somebody waits for an acquire's answer. */
  get isWaiting(): boolean {
    if (this.sender.queue.size > 0) return true;
    for (const acquire of this.sender.acquires.values()) if (!acquire.isSettled) return true;
    return false;
  }

  get isEmpty(): boolean {
    return this.sender.isEmpty;
  }

  get isFull(): boolean {
    return this.sender.isFull;
  }

  /** Locks that their holders still have, or whose release is not confirmed. */
  heldLocks(): readonly LockHandle[] {
    const locks: LockHandle[] = [];
    for (const { stage, lock } of this.sender.acquires.values()) {
      if (lock !== null && (stage === "releasing" || (stage === "held" && lock.state !== "lost"))) locks.push(lock);
    }
    return locks;
  }

  lookHeldLong(nowMs: number): void {
    for (const { lock } of this.sender.acquires.values()) lock?.lookHeldLong(nowMs);
  }

  acquire(acquire: Acquire): void {
    this.sender.acquire(acquire);
  }

  /** Its caller has given up: nothing may stay behind in the cluster's queues, nor a grant that crossed this. */
  abandon(acquire: Acquire): void {
    if (this.sender.queue.delete(acquire)) {
      acquire.stage = "over";
      this.host.onRequestEnded();
    } else if (acquire.stage === "asked" || acquire.stage === "waiting") {
      acquire.stage = "leaving";
      this.sender.end("cancel", acquire, 0);
    }
  }

  release(lock: LockHandle, afterMs: number): void {
    const acquire = this.sender.acquires.get(lock.request);
    if (acquire === undefined || acquire.lock !== lock) {
      lock.endRelease("already-lost");
      return;
    }
    acquire.stage = "releasing";
    this.sendRelease(acquire, afterMs);
  }

  close(): void {
    this.sender.end("closeSession", null, 0);
  }

  sendUnanswered(): void {
    this.sender.sendUnanswered();
  }

  pump(): void {
    this.sender.pump();
  }

  /** For the error at the end of a wait. */
  noteOpenRefused(wasOverloaded: boolean): void {
    for (const acquire of this.sender.queue) acquire.wasOverloaded = wasOverloaded;
  }

  /** The session can't be opened. */
  failQueued(error: HoldfastError): void {
    for (const acquire of this.sender.queue) {
      this.sender.queue.delete(acquire);
      acquire.stage = "over";
      acquire.fail(error);
    }
  }

  onOutcome(number: RequestNumber, outcome: Outcome): void {
    const acquire = this.sender.acquires.get(number);
    if (acquire !== undefined) {
      this.onAcquireOutcome(acquire, outcome);
      return;
    }
    const ending = this.sender.endings.get(number);
    if (ending !== undefined) this.onEndingOutcome(number, ending, outcome);
  }

  onRejected(number: RequestNumber, rejection: Rejection): void {
    switch (rejection.kind) {
      case "sessionGone":
        this.host.onGone(rejection.reason ?? "session_gone");
        return;
      case "tooManyRequests":
        this.sender.retryLater(number);
        return;
      case "settled":
        this.onForgotten(number);
        return;
      default:
        assertNever(rejection);
    }
  }

  onRefused(number: RequestNumber, refusal: Refusal): void {
    switch (refusal.code) {
      case "not_leader":
        this.host.onNotLeader(refusal.leader);
        return;
      case "session_gone":
        this.host.onGone(lossReasonFrom(refusal.reason));
        return;
      case "no_quorum":
      case "overloaded":
      case "unknown_outcome": {
        const acquire = this.sender.acquires.get(number);
        if (acquire !== undefined) acquire.wasOverloaded = refusal.code === "overloaded";
        this.sender.retryLater(number);
        return;
      }
      case "invalid_argument":
        if (refusal.argument === "session") this.host.onNotResumed();
        else this.onInvalid(number, errorFor(refusal));
        return;
      case "incompatible":
      case "unauthorized":
      case "change_refused":
        this.onInvalid(number, errorFor(refusal));
        return;
      default:
        assertNever(refusal);
    }
  }

  /**
   * The first answer on a resumed connection says all that the cluster knows. A lock believed to be held and not listed is lost;
   * what was granted, or ended, while no connection was there is learnt here.
   */
  reconcile(view: ResumeView): void {
    const listed = new Set(view.waiting);
    for (const { request, grants, maxHoldMs } of view.holds) {
      listed.add(request);
      this.onOutcome(request, { kind: "granted", grants, maxHoldMs });
    }
    for (const { request, outcome } of view.outcomes) {
      listed.add(request);
      this.onOutcome(request, outcome);
    }
    const unlisted = [...this.sender.acquires.values()].filter((acquire) => !listed.has(acquire.number));
    for (const acquire of unlisted) {
      if (acquire.stage === "held") {
        this.sender.finish(acquire);
        acquire.lock?.lose("session_gone");
      } else if (acquire.stage === "waiting") {
        this.sender.askAgain(acquire);
      }
    }
  }

  /** The session is over: forgets everything. Returns the acquires whose callers still wait, and the locks whose loss is to be announced. */
  end(reason: LockLossReason, fate: SessionFate): { orphans: readonly Acquire[]; locks: readonly LockHandle[] } {
    const acquires = [...this.sender.acquires.values()];
    const orphans = [...acquires.filter((acquire) => !acquire.isSettled), ...this.sender.queue];
    // A hold may be known to be over while its release is unanswered.
    const released = [...this.sender.endings.values()].flatMap(({ of }) => (of === null ? [] : [of]));
    this.sender.clear();
    for (const acquire of acquires) acquire.stage = "over";
    for (const orphan of orphans) orphan.requeue();
    const locks = [...new Set([...acquires, ...released])].flatMap(({ lock }) => (lock === null ? [] : [lock]));
    for (const lock of locks) {
      if (fate === "released") lock.endRelease("released");
      else if (fate === "lost") lock.markLost(reason);
      // Of a release under way nobody knows whether it came in time.
      lock.endRelease("already-lost", reason);
      lock.markLost(reason);
    }
    return { orphans, locks };
  }

  private sendRelease(acquire: Acquire, afterMs: number): void {
    if (acquire.isReleaseSent) return;
    acquire.isReleaseSent = true;
    this.sender.end("release", acquire, afterMs);
  }

  private onAcquireOutcome(acquire: Acquire, outcome: Outcome): void {
    // A cancel that came without its acquire is no answer to it.
    if (outcome.kind !== "cancelled") this.sender.onAnswered(acquire.number);
    acquire.payload = null;
    switch (outcome.kind) {
      case "waiting":
        if (acquire.stage === "asked") acquire.stage = "waiting";
        acquire.ahead = outcome.ahead;
        acquire.holder = outcome.holder;
        return;
      case "granted":
        this.onGranted(acquire, outcome.grants, outcome.maxHoldMs);
        return;
      case "lost":
        this.onEnded(acquire, outcome.reason);
        return;
      case "released":
      case "cancelled":
        this.onEnded(acquire, "session_gone");
        return;
      case "lockHeld":
      case "lockDelayed":
      case "slotsDiffer":
        this.sender.finish(acquire);
        if (acquire.isTry && outcome.kind !== "slotsDiffer") acquire.refuse();
        else acquire.fail(refusalOf(outcome));
        return;
      case "alreadyGranted":
      case "notHeld":
      case "infoSet":
      case "sessionClosed":
        // Of other commands; an acquire's number never has them.
        return;
      default:
        assertNever(outcome);
    }
  }

  private onGranted(acquire: Acquire, grants: readonly Grant[], maxHoldMs: number): void {
    if (acquire.stage === "leaving") {
      this.sendRelease(acquire, 0);
      return;
    }
    // Told before: an ordinary duplicate, from a retry or a resume.
    if (acquire.stage !== "asked" && acquire.stage !== "waiting") return;
    acquire.stage = "held";
    const lock = this.host.newLock(acquire, grants, maxHoldMs);
    acquire.lock = lock;
    acquire.grant(lock);
  }

  /** Its hold is over, or it left the queue. */
  private onEnded(acquire: Acquire, reason: LockLossReason): void {
    const { stage } = acquire;
    this.sender.finish(acquire);
    if (stage === "asked" || stage === "waiting") {
      // Granted and lost before its caller heard of it: the caller still wants the lock.
      acquire.requeue();
      this.sender.acquire(acquire);
    } else if (stage === "held" || (stage === "releasing" && reason !== "session_gone")) {
      acquire.lock?.lose(reason);
    }
  }

  private onEndingOutcome(number: RequestNumber, { kind, of }: OpenEnding, outcome: Outcome): void {
    this.sender.onAnswered(number);
    this.sender.finishEnding(number);
    if (kind === "closeSession") {
      this.host.onGone("closed");
      return;
    }
    if (of === null) return;
    if (outcome.kind === "alreadyGranted") {
      this.sendRelease(of, 0);
      return;
    }
    const isReleased = outcome.kind === "released";
    this.sender.finish(of);
    if (kind !== "release") return;
    if (!isReleased) of.lock?.markLost("session_gone");
    of.lock?.endRelease(isReleased ? "released" : "already-lost");
    of.lock?.announceLoss();
  }

  /** The cluster says that we have seen the end of this number. It keeps nothing more of it, so neither do we. */
  private onForgotten(number: RequestNumber): void {
    const acquire = this.sender.acquires.get(number);
    if (acquire !== undefined) this.onEnded(acquire, "session_gone");
    const ending = this.sender.endings.get(number);
    if (ending !== undefined) this.onEndingOutcome(number, ending, { kind: "notHeld", holders: [] });
  }

  /** Refused for good before it came into the log. */
  private onInvalid(number: RequestNumber, error: HoldfastError): void {
    const acquire = this.sender.acquires.get(number);
    const ending = this.sender.endings.get(number);
    if (acquire?.stage === "held" || acquire?.stage === "releasing") return;
    this.sender.onUnanswered(number);
    if (acquire !== undefined) {
      this.sender.finish(acquire);
      acquire.fail(error);
    }
    if (ending === undefined) return;
    this.sender.finishEnding(number);
    const { kind, of } = ending;
    if (kind !== "release" || of === null || of.stage === "over") return;
    of.isReleaseSent = false;
    if (of.stage === "releasing") of.stage = "held";
    of.lock?.refuseRelease(error);
  }
}
