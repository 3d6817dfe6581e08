/**
 * One process, of a node or of a client: its clocks, which run at a rate of their own, and its event loop, which can be paused (SIGSTOP, a
 * stall of the loop), suspended with its machine, and killed. What was due meanwhile comes late and all at once, as after SIGCONT.
 */
import type { Random } from "./random.js";
import type { Cancellable, Phase, Scheduler } from "./scheduler.js";

/** Node's timers are late by up to a millisecond, never early. */
const timerLateMsMax = 1;

interface Timer {
  readonly dueLocalMs: number;
  readonly run: () => void;
  scheduled: Cancellable;
}

interface Frozen {
  readonly isTimer: boolean;
  readonly phase: Phase;
  readonly run: () => void;
}

export interface ProcessOptions {
  readonly id: string;
  /** How many times as fast as true time its clock runs. */
  readonly rate: number;
}

export interface ProcessParts {
  readonly scheduler: Scheduler;
  readonly random: Random;
  /** Something of this process has run: the place for checks. */
  onEvent(process: SimulatedProcess): void;
}

/** Implements the clock ports of the server and of the client. */
export class SimulatedProcess {
  readonly id: string;
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #onEvent: (process: SimulatedProcess) => void;
  #rate: number;
  /** The monotonic clock showed `#localMs` at true time `#sinceMs`. */
  #localMs: number;
  #sinceMs: number;
  /** By how much the clock that runs through a suspend is ahead of the monotonic one. */
  #suspendedMs: number;
  #wallOffsetMs: number;
  readonly #timers = new Set<Timer>();
  #pausedUntilMs = 0;
  /** Immediates and arrivals under way, and what came during a pause, in its order. */
  #frozen: Frozen[] = [];
  /** What came during the last pause. */
  thawed = 0;
  #isKilled = false;
  #isSuspended = false;

  constructor(options: ProcessOptions, parts: ProcessParts) {
    this.id = options.id;
    this.#scheduler = parts.scheduler;
    this.#random = parts.random;
    this.#onEvent = (process) => parts.onEvent(process);
    this.#rate = options.rate;
    this.#sinceMs = parts.scheduler.nowMs;
    // Clocks of different machines have nothing in common.
    this.#localMs = parts.random.integer(1_000_000);
    this.#suspendedMs = parts.random.integer(10_000_000);
    this.#wallOffsetMs = 1_700_000_000_000 + parts.random.integer(3_600_000);
  }

  get isKilled(): boolean {
    return this.#isKilled;
  }

  get isPaused(): boolean {
    return this.#scheduler.nowMs < this.#pausedUntilMs;
  }

  get rate(): number {
    return this.#rate;
  }

  monotonicMs(): number {
    // During a suspend nobody looks; the clock is set right when it ends.
    return this.#localMs + (this.#scheduler.nowMs - this.#sinceMs) * this.#rate;
  }

  suspendAwareMs(): number {
    return this.monotonicMs() + this.#suspendedMs;
  }

  wallMs(): number {
    return this.#wallOffsetMs + this.#scheduler.nowMs;
  }

  setTimer(delayMs: number, run: () => void): Cancellable {
    const dueLocalMs = this.monotonicMs() + Math.max(delayMs, 0);
    const timer: Timer = { dueLocalMs, run, scheduled: nothing };
    this.#timers.add(timer);
    this.#arm(timer);
    return {
      cancel: () => {
        this.#timers.delete(timer);
        timer.scheduled.cancel();
      },
    };
  }

  setImmediate(run: () => void): void {
    this.#schedule(0, "immediate", run, 1);
  }

  /** The client's: after the code that runs now, and what waits for its promises, before more input is read. */
  defer(run: () => void): void {
    queueMicrotask(() => {
      if (!this.#isKilled) run();
    });
  }

  /** The client's; nothing here ends by itself. */
  keepProcess(): void {}

  /** Something from outside (a frame, a disk's answer) is there now. Runs at once, or when the process runs again. */
  deliver(run: () => void): void {
    this.#runOrFreeze({ isTimer: false, phase: 0, run });
  }

  /** As deliver, after a while of true time. */
  deliverIn(delayMs: number, label: string, run: () => void): Cancellable {
    return this.#schedule(delayMs, label, run, 0);
  }

  kill(): void {
    this.#isKilled = true;
    for (const timer of this.#timers) timer.scheduled.cancel();
    this.#timers.clear();
    this.#frozen = [];
  }

  /** Nothing of it runs for so long from now. */
  pause(ms: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, this.#scheduler.nowMs + ms);
    this.#scheduler.at(this.#pausedUntilMs, `wake ${this.id}`, () => this.#wake());
  }

  /** A pause in which the monotonic clock stands still, and the other one doesn't. */
  suspend(ms: number): void {
    if (this.isPaused || this.#isKilled) return;
    const shownMs = this.monotonicMs();
    this.#isSuspended = true;
    this.pause(ms);
    const endMs = this.#pausedUntilMs;
    this.#localMs = shownMs;
    this.#sinceMs = endMs;
    this.#suspendedMs += ms * this.#rate;
    for (const timer of this.#timers) this.#rearm(timer);
  }

  /** Ends a pause. A suspend lasts as long as it was going to. */
  resume(): void {
    if (!this.isPaused || this.#isSuspended) return;
    this.#pausedUntilMs = this.#scheduler.nowMs;
    this.#wake();
  }

  setRate(rate: number): void {
    if (this.#isSuspended) return;
    this.#localMs = this.monotonicMs();
    this.#sinceMs = this.#scheduler.nowMs;
    this.#rate = rate;
    for (const timer of this.#timers) this.#rearm(timer);
  }

  jumpWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  #arm(timer: Timer): void {
    const waitMs = Math.max(0, timer.dueLocalMs - this.monotonicMs()) / this.#rate;
    const lateMs = this.#random.fraction() * timerLateMsMax;
    timer.scheduled = this.#scheduler.after(waitMs + lateMs, `timer ${this.id}`, () => {
      if (this.#isKilled) return;
      this.#runOrFreeze({
        isTimer: true,
        phase: 0,
        run: () => {
          if (this.#timers.delete(timer)) timer.run();
        },
      });
    });
  }

  #rearm(timer: Timer): void {
    timer.scheduled.cancel();
    this.#arm(timer);
  }

  #schedule(delayMs: number, what: string, run: () => void, phase: Phase): Cancellable {
    return this.#scheduler.after(
      delayMs,
      `${what} ${this.id}`,
      () => this.#runOrFreeze({ isTimer: false, phase, run }),
      phase,
    );
  }

  #runOrFreeze(frozen: Frozen): void {
    if (this.#isKilled) return;
    if (this.isPaused) {
      this.#frozen.push(frozen);
      return;
    }
    frozen.run();
    this.#onEvent(this);
  }

  /** Timers first, as Node's loop has them, or what the sockets hold first: the process may have been stopped anywhere. */
  #wake(): void {
    if (this.isPaused || this.#isKilled) return;
    this.#isSuspended = false;
    const frozen = this.#frozen;
    this.#frozen = [];
    this.thawed = frozen.length;
    const timersFirst = this.#random.chance(0.5);
    const order = (each: Frozen): number => (each.phase === 1 ? 2 : each.isTimer === timersFirst ? 0 : 1);
    const sorted = frozen
      .map((each, at) => ({ each, at }))
      .sort((a, b) => order(a.each) - order(b.each) || a.at - b.at);
    for (const { each } of sorted) this.#schedule(0, "thaw", each.run, 1);
  }
}

const nothing: Cancellable = { cancel: () => undefined };
