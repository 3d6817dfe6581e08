/** The state of one held lock: held or in jeopardy, then lost or released, once. */
import type { Grant, Mode, Token } from "@holdfast/lock";
import { limits } from "@holdfast/wire";
import { HoldfastError, InvalidArgumentError, LockLostError } from "./errors.js";
import type { LockLossReason } from "./errors.js";
import { elapsedMs, restTimerMsMin, usableMs } from "./lease.js";
import type { Instant } from "./lease.js";
import type { Fence, Lock, LockState, ReleaseResult } from "./lock.js";
import type { Observation, ObservedHold } from "./observation.js";
import { traceparentOf } from "./open-telemetry.js";
import type { OpenTelemetrySpan } from "./open-telemetry.js";
import { checkDuration, checkOptionNames, checkWhole } from "./options.js";
import type { ReleaseOptions } from "./options.js";
import type { LockContext } from "./platform.js";
import type { Clock, Timer } from "./ports.js";
import type { ProcessHold } from "./process-hold.js";

/** What a handle asks of its session. */
export interface LockOwner {
  readonly session: number;
  readonly ttlMs: number;
  readonly isInJeopardy: boolean;
  /** Looks at the clocks; what is over is told to the handles before it returns. */
  look(): void;
  remainingMs(): number;
  /** Answers with endRelease. */
  release(handle: LockHandle, afterMs: number): void;
  renew(done: (reason: LockLossReason | null) => void): void;
  /** Null: the cluster knows no such hold. */
  sequencer(handle: LockHandle, name: string): Promise<string | null>;
  /** Found by the handle itself: maxHoldMs is over. */
  onLost(handle: LockHandle): void;
}

export interface LockFacts {
  readonly request: number;
  readonly mode: Mode;
  readonly grants: readonly Grant[];
  readonly stopOn: "lost" | "jeopardy";
  /** 0: no limit. */
  readonly maxHoldMs: number;
  /** From when maxHoldMs is counted. */
  readonly heldFrom: Instant;
  /** 0: however long it is held, nobody is told. */
  readonly heldLongMs: number;
  /** Of its acquire, while somebody traces. */
  readonly span: OpenTelemetrySpan | null;
}

export interface LockParts {
  readonly clock: Clock;
  readonly hold: ProcessHold;
  readonly observation: Observation;
  readonly context: LockContext;
}

interface Release {
  readonly span: OpenTelemetrySpan | null;
  readonly result: Promise<ReleaseResult>;
  readonly resolve: (result: ReleaseResult) => void;
  readonly reject: (error: HoldfastError) => void;
}

export class LockHandle implements Lock, ObservedHold {
  readonly request: number;
  readonly names: readonly string[];
  readonly mode: Mode;
  readonly grants: readonly Grant[];
  readonly grantedMs: number;
  private readonly facts: LockFacts;
  private readonly owner: LockOwner;
  private readonly clock: Clock;
  private readonly hold: ProcessHold;
  private readonly observation: Observation;
  private readonly context: LockContext;
  private phase: "held" | "releasing" | "released" | "lost" = "held";
  private loss: LockLossReason | null = null;
  private wasLost = false;
  private isAnnounced = false;
  private stop: HoldfastError | null = null;
  private controller: AbortController | null = null;
  private pending: Release | null = null;
  private timer: Timer | null = null;
  private wasLong = false;

  constructor(facts: LockFacts, owner: LockOwner, parts: LockParts) {
    this.request = facts.request;
    this.names = facts.grants.map((grant) => grant.name);
    this.mode = facts.mode;
    this.grants = facts.grants;
    this.facts = facts;
    this.owner = owner;
    this.clock = parts.clock;
    this.hold = parts.hold;
    this.observation = parts.observation;
    this.context = parts.context;
    this.grantedMs = this.clock.monotonicMs();
    this.observation.held(facts.mode);
    if (facts.maxHoldMs > 0) this.watchMaxHold();
  }

  get name(): string {
    return this.only(undefined).name;
  }

  get token(): Token {
    const { token } = this.grants[0] ?? this.only(undefined);
    if (this.grants.every((grant) => grant.token === token)) return token;
    throw new InvalidArgumentError("name", "is needed: each name has its own token, see fence(name)");
  }

  /** The first name's: what a line or a span shows of a lock on several names. */
  get grantToken(): Token {
    return this.grants[0]?.token ?? 0;
  }

  get session(): number {
    return this.owner.session;
  }

  get heldLongMs(): number {
    return this.facts.heldLongMs;
  }

  get slot(): number | null {
    return this.grants[0]?.slot ?? null;
  }

  get state(): LockState {
    this.look();
    if (this.phase === "releasing") return "released";
    return this.phase === "held" && this.owner.isInJeopardy ? "jeopardy" : this.phase;
  }

  get lossReason(): LockLossReason | null {
    this.look();
    return this.loss;
  }

  get signal(): AbortSignal {
    if (this.controller === null) {
      this.controller = new AbortController();
      if (this.stop !== null) this.controller.abort(this.stop);
    }
    return this.controller.signal;
  }

  remainingMs(): number {
    this.look();
    return this.phase === "held" ? Math.max(Math.min(this.owner.remainingMs(), this.maxHoldLeftMs()), 0) : 0;
  }

  assertHeld(minMs: number = 0): void {
    checkDuration("minMs", minMs, 0, Number.POSITIVE_INFINITY);
    const leftMs = this.remainingMs();
    if (this.phase === "lost") throw this.lostError();
    if (this.phase !== "held") throw alreadyReleased();
    if (leftMs >= minMs) return;
    throw new LockLostError(this.names, "expired", {
      cause: new Error(`${Math.floor(leftMs)} ms of the lease are left, ${minMs} were asked for`),
    });
  }

  fence(name?: string): Fence {
    const grant = this.only(name);
    return { resource: grant.slot === null ? grant.name : `${grant.name}#${grant.slot}`, token: grant.token };
  }

  async sequencer(name?: string): Promise<string> {
    const grant = this.only(name);
    this.checkHeld();
    const sequencer = await this.owner.sequencer(this, grant.name);
    if (sequencer !== null) return sequencer;
    this.checkHeld();
    throw new LockLostError(this.names, "session_gone");
  }

  renew(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.checkHeld();
      this.hold.begin();
      this.owner.renew((reason) => {
        this.hold.end();
        if (this.phase === "releasing" || this.phase === "released") reject(alreadyReleased());
        else if (reason === null && this.phase === "held") resolve();
        else reject(new LockLostError(this.names, this.loss ?? reason ?? "expired"));
      });
    });
  }

  release(options?: ReleaseOptions): Promise<ReleaseResult> {
    let afterMs = 0;
    try {
      if (options !== undefined) checkOptionNames("release", options);
      afterMs = options?.afterMs ?? 0;
      checkWhole("afterMs", afterMs, 0, limits.afterMsMax);
    } catch (error) {
      return Promise.reject(error instanceof Error ? error : new Error("unexpected", { cause: error }));
    }
    this.look();
    if (this.phase === "lost") return Promise.resolve("already-lost");
    if (this.phase === "released") return Promise.resolve("already-released");
    if (this.pending !== null) {
      return this.pending.result.then((result) => (result === "released" ? "already-released" : result));
    }
    this.phase = "releasing";
    this.endTimer();
    this.hold.begin();
    const pending = newRelease(this.observation.beginRelease(this, this.facts.span));
    this.pending = pending;
    // While the session is renewed and nothing is committed no end of the lease would end the wait.
    this.timer = this.clock.setTimer(usableMs(this.owner.ttlMs), () => this.endRelease("already-lost", "expired"));
    this.owner.release(this, afterMs);
    return pending.result;
  }

  /** Of the release under way. Null: nobody traces. */
  get releaseTraceparent(): string | null {
    return traceparentOf(this.pending?.span ?? null);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** Runs what is done under this lock, so that currentLock() finds it there. */
  run<T>(body: () => T): T {
    return this.context.run(this, body);
  }

  /** Once, when it has been held for longer than heldLongMs. */
  lookHeldLong(nowMs: number): void {
    const { heldLongMs } = this.facts;
    if (heldLongMs === 0 || this.wasLong || this.phase !== "held" || nowMs - this.grantedMs < heldLongMs) return;
    this.wasLong = true;
    this.observation.heldLong(this);
  }

  /** It was lost while its holder had it: not only after a release that nobody confirmed. */
  get wasLostWhileHeld(): boolean {
    return this.wasLost;
  }

  /** The cluster, or the clock, has ended the hold. A release under way learns of it by its own answer. */
  lose(reason: LockLossReason): void {
    this.markLost(reason);
    this.announceLoss();
  }

  /** The first half of lose(): runs none of the holder's code, so that locks lost together can all be marked before any of it runs. */
  markLost(reason: LockLossReason): void {
    if (this.phase === "lost" || this.phase === "released") return;
    this.loss ??= reason;
    this.wasLost = true;
    if (this.phase === "releasing") return;
    this.phase = "lost";
    this.endTimer();
    this.observation.holdEnded(this, reason === "max_hold" ? "max_hold" : "lost");
  }

  announceLoss(): void {
    if (this.phase !== "lost" || this.loss === null || this.isAnnounced) return;
    this.isAnnounced = true;
    this.observation.lost(this, this.loss);
    this.abort(this.lostError());
  }

  /** Confirmed, or found lost; `reason`: nobody has confirmed within the lease. */
  endRelease(result: "released" | "already-lost", reason: LockLossReason | null = null): void {
    const { pending } = this;
    if (pending === null || this.phase !== "releasing") return;
    this.pending = null;
    this.endTimer();
    if (result === "released") {
      this.phase = "released";
      this.loss = null;
      this.wasLost = false;
    } else {
      this.phase = "lost";
      this.loss ??= reason ?? "session_gone";
      // Given back before anybody found it lost: nobody is to be told.
      this.isAnnounced = !this.wasLost;
    }
    this.observation.holdEnded(this, this.wasLost ? "lost" : "released");
    this.observation.releaseEnded(pending.span, this, result);
    this.hold.end();
    pending.resolve(result);
  }

  /** The release was refused as wrong: the lock is still held. */
  refuseRelease(error: HoldfastError): void {
    const { pending } = this;
    if (pending === null || this.phase !== "releasing") return;
    this.pending = null;
    this.endTimer();
    this.phase = "held";
    if (this.facts.maxHoldMs > 0) this.watchMaxHold();
    this.observation.releaseEnded(pending.span, this, null);
    this.hold.end();
    pending.reject(error);
  }

  onJeopardy(): void {
    if (this.phase !== "held" || this.facts.stopOn !== "jeopardy") return;
    this.abort(new HoldfastError("no_quorum", "the lease could not be renewed: the lock is in jeopardy"));
  }

  private checkHeld(): void {
    this.look();
    if (this.phase === "lost") throw this.lostError();
    if (this.phase !== "held") throw alreadyReleased();
  }

  private look(): void {
    if (this.phase !== "held") return;
    this.owner.look();
    if (this.phase !== "held" || this.facts.maxHoldMs === 0 || this.maxHoldLeftMs() > 0) return;
    this.lose("max_hold");
    this.owner.onLost(this);
  }

  private maxHoldLeftMs(): number {
    const { maxHoldMs, heldFrom } = this.facts;
    return maxHoldMs === 0 ? Number.POSITIVE_INFINITY : usableMs(maxHoldMs) - elapsedMs(this.clock, heldFrom);
  }

  private watchMaxHold(): void {
    if (this.phase !== "held") return;
    this.timer = this.clock.setTimer(Math.max(this.maxHoldLeftMs(), restTimerMsMin), () => {
      this.look();
      this.watchMaxHold();
    });
  }

  private endTimer(): void {
    this.timer?.cancel();
    this.timer = null;
  }

  private abort(reason: HoldfastError): void {
    if (this.stop !== null) return;
    this.stop = reason;
    this.controller?.abort(reason);
  }

  private lostError(): LockLostError {
    return new LockLostError(this.names, this.loss ?? "expired");
  }

  private only(name: string | undefined): Grant {
    const found = name === undefined ? this.grants : this.grants.filter((grant) => grant.name === name);
    const [grant] = found;
    if (grant !== undefined && found.length === 1) return grant;
    const problem = name === undefined ? "is needed: the lock is on several names" : "is none of this lock's names";
    throw new InvalidArgumentError("name", problem);
  }
}

function newRelease(span: OpenTelemetrySpan | null): Release {
  let resolve: Release["resolve"] | undefined;
  let reject: Release["reject"] | undefined;
  const result = new Promise<ReleaseResult>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  if (resolve === undefined || reject === undefined) throw new Error("a promise's executor runs at once");
  return { span, result, resolve, reject };
}

function alreadyReleased(): HoldfastError {
  return new HoldfastError("already_released", "the lock is released");
}
