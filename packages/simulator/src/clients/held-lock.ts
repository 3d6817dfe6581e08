/**
 * A lock that an application has: tells the history each change of the library's word on it. The library is looked at where an application
 * would (and at each renewal, for the time that is left), not after every event: else a loss that it announces too late would never show.
 */
import type { Lock, LockState } from "@holdfast/client";
import type { SimulatedProcess } from "../process.js";
import type { Cancellable, Scheduler } from "../scheduler.js";
import type { Counts } from "./counts.js";
import type { HistorySink } from "./sink.js";

/** Rates that changed meanwhile show in a difference of the clocks above this. */
const clockDifferenceMsMax = 0.01;

export interface HeldLockParts {
  readonly process: SimulatedProcess;
  readonly scheduler: Scheduler;
  readonly sink: HistorySink;
  readonly counts: Counts;
}

/** The time that was left by the library's word, and when it said so. */
interface Look {
  readonly trueMs: number;
  /** By the clock that runs through a suspend. */
  readonly localMs: number;
  readonly leftMs: number;
}

export class HeldLock {
  readonly call: number;
  readonly session: number | null;
  readonly lock: Lock;
  readonly #parts: HeldLockParts;
  readonly #isMaxHoldLimited: boolean;
  /** What waits for the loss. */
  readonly #wakers = new Set<() => void>();
  #onJeopardyBegan: (() => void) | null = null;
  /** Of the next look at a lock whose signal has aborted before its loss. */
  #lookTimer: Cancellable | null = null;
  #state: LockState = "held";
  #isGivenBack = false;
  #look: Look;

  constructor(call: number, session: number | null, lock: Lock, maxHoldMs: number, parts: HeldLockParts) {
    this.call = call;
    this.session = session;
    this.lock = lock;
    this.#parts = parts;
    this.#isMaxHoldLimited = maxHoldMs > 0;
    this.#look = this.#lookNow();
    if (this.#look.leftMs > 0) this.#tellLook();
    lock.signal.addEventListener("abort", () => this.#onAbort(), { once: true });
    if (lock.signal.aborted) this.#onAbort();
  }

  /** As an application sees it now. */
  check(): LockState {
    const { state } = this.lock;
    if (state === "lost") this.#becomeLost();
    if (state === "held" || state === "jeopardy") {
      this.#become(state);
      this.#look = this.#lookNow();
      this.#tellLook();
    }
    return state;
  }

  /** Lost, as far as its holder knows without another look. */
  get isLost(): boolean {
    return this.#state === "lost";
  }

  get isGivenBack(): boolean {
    return this.#isGivenBack;
  }

  /** Its release is called for. */
  onRelease(): void {
    this.#isGivenBack = true;
    this.#lookTimer?.cancel();
    this.#wake();
  }

  /** A keepalive was acknowledged: there may be more time left. */
  onRenewed(): void {
    if (this.#state === "lost" || this.#isGivenBack) return;
    const look = this.#lookNow();
    // Over meanwhile: since when, the last look before tells.
    if (look.leftMs === 0) return;
    this.#look = look;
    this.#tellLook();
  }

  onJeopardy(): void {
    this.#become("jeopardy");
  }

  onRecovered(): void {
    // Its session is renewed; its maxHold may be over.
    if (this.lock.signal.aborted) this.check();
    else this.#become("held");
  }

  /** The library says that its session is over: its locks are lost before it says so. */
  onSessionEnded(): void {
    if (!this.#isGivenBack && this.lock.lossReason !== null) this.#becomeLost();
  }

  /** Calls `run` at the loss, or when it is given back. Returns what takes that off again. */
  whenOver(run: () => void): () => void {
    this.#wakers.add(run);
    return () => void this.#wakers.delete(run);
  }

  /** Calls `run` at the beginning of each jeopardy. */
  whenInJeopardy(run: () => void): void {
    this.#onJeopardyBegan = run;
  }

  #onAbort(): void {
    const { counts } = this.#parts;
    if (this.lock.state === "lost") this.#becomeLost();
    else {
      counts.add("stopped in jeopardy");
      this.#become("jeopardy");
      this.#wake();
      this.#lookAtDeadline();
    }
  }

  /** A signal aborts once: of the loss after a jeopardy it can't tell, so whoever goes on has to look when the time that was left is over. */
  #lookAtDeadline(): void {
    this.#lookTimer = this.#parts.process.setTimer(this.lock.remainingMs() + 1, () => {
      if (this.#isGivenBack || this.#state === "lost") return;
      const state = this.check();
      if (state === "held" || state === "jeopardy") this.#lookAtDeadline();
    });
  }

  #become(state: "held" | "jeopardy"): void {
    if (this.#state === state || this.#state === "lost" || this.#isGivenBack) return;
    this.#parts.counts.add(state === "held" ? "lock back from jeopardy" : "lock in jeopardy");
    this.#state = state;
    this.#parts.sink.emit({ kind: "state", call: this.call, state, reason: null, since: null });
    if (state === "jeopardy") this.#onJeopardyBegan?.();
  }

  #becomeLost(): void {
    if (this.#state === "lost") return;
    this.#state = "lost";
    const reason = this.lock.lossReason;
    const { counts, sink, scheduler } = this.#parts;
    const since = this.#lostSince();
    counts.add(`lock lost: ${reason}`);
    if (this.#isMaxHoldLimited && reason === "max_hold") counts.add("maxHold over");
    if (since !== null && since < scheduler.nowMs - 5) counts.add("loss noticed late");
    sink.emit({ kind: "state", call: this.call, state: "lost", reason, since });
    this.#wake();
  }

  #wake(): void {
    const wakers = [...this.#wakers];
    this.#wakers.clear();
    for (const wake of wakers) wake();
  }

  #tellLook(): void {
    const { call, session } = this;
    const { leftMs: ms } = this.#look;
    const { sink, process } = this.#parts;
    if (session !== null) sink.emit({ kind: "remaining", client: process.id, call, session, ms });
  }

  #lookNow(): Look {
    const { process } = this.#parts;
    return {
      trueMs: process.trueMs,
      localMs: process.watchedMs(),
      leftMs: this.lock.remainingMs(),
    };
  }

  /** From when on a look would have said so: the library's own deadline, in true time. Null: the clock's rate has changed since the look. */
  #lostSince(): number | null {
    const { process, scheduler } = this.#parts;
    const { trueMs, localMs, leftMs } = this.#look;
    const passedMs = process.watchedMs() - localMs;
    const overMs = passedMs - leftMs;
    if (overMs <= 0) return scheduler.nowMs;
    const truePassedMs = process.trueMs - trueMs;
    if (Math.abs(truePassedMs * process.rate - passedMs) > clockDifferenceMsMax) return null;
    return Math.min(scheduler.nowMs, Math.max(trueMs, process.trueMs - overMs / process.rate));
  }
}
