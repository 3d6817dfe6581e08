/**
 * One process, of a node or of a client: its clocks, which run at a rate of their own, and its event loop, which can be paused (SIGSTOP, a
 * stall of the loop), suspended with its machine, and killed. What was due meanwhile comes late and all at once, as after SIGCONT.
 *
 * Its code may take time: then the process is ahead of the scheduler until that time is over. Its clocks say so at once, its timers count
 * from there, what it sends leaves then, and what comes before waits.
 */
import type { Random } from "./random.js";
import type { Cancellable, Phase, Scheduler } from "./scheduler.js";

/** Node's timers are late by up to a millisecond, never early. */
const timerLateMsMax = 1;
/** What an event, or the code up to the next look at the clock, costs when it costs anything. */
const costMs = { min: 0.1, max: 15 };
/** A look at the clock is this much cheaper than an event, on the average: there are several to an event. */
const lookShare = 0.25;

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
  /** The share of its events that take time; 0 when left out. */
  readonly busy?: number;
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
  #strayedMs = 0;
  /** By how much the clock that runs through a suspend is ahead of the monotonic one. */
  #suspendedMs: number;
  #wallOffsetMs: number;
  readonly #timers = new Set<Timer>();
  #pausedUntilMs = 0;
  /** Immediates and arrivals under way, and what came during a pause, in its order. */
  #frozen: Frozen[] = [];
  /** What came during the last pause. */
  thawed = 0;
  /** Called when the pause ends, before what has waited runs. */
  #onAwake: (() => void) | null = null;
  #isKilled = false;
  /** The share of events that cost time, and the true time up to which the code that has run keeps the process busy. */
  readonly #busy: number;
  #busyUntilMs = 0;
  #isInEvent = false;
  #isReliefPlanned = false;
  #isSuspended = false;

  constructor(options: ProcessOptions, parts: ProcessParts) {
    this.id = options.id;
    this.#scheduler = parts.scheduler;
    this.#random = parts.random;
    this.#onEvent = (process) => parts.onEvent(process);
    this.#rate = options.rate;
    this.#busy = options.busy ?? 0;
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

  /** Timers that are set. */
  get timerCount(): number {
    return this.#timers.size;
  }

  get rate(): number {
    return this.#rate;
  }

  /** By how much it is ahead of the scheduler. */
  get aheadMs(): number {
    return Math.max(0, this.#busyUntilMs - this.#scheduler.nowMs);
  }

  /** By how much its clock has gone astray in all, one way or the other. */
  get strayedMs(): number {
    return this.#strayedMs + Math.max(0, this.trueMs - this.#sinceMs) * Math.abs(this.#rate - 1);
  }

  /** The true time at which it is. */
  get trueMs(): number {
    return Math.max(this.#scheduler.nowMs, this.#busyUntilMs);
  }

  monotonicMs(): number {
    const shownMs = this.#shownMs();
    this.#spend(lookShare);
    return shownMs;
  }

  suspendAwareMs(): number {
    return this.monotonicMs() + this.#suspendedMs;
  }

  /** suspendAwareMs() for who only watches: it takes no time. */
  watchedMs(): number {
    return this.#shownMs() + this.#suspendedMs;
  }

  wallMs(): number {
    return this.#wallOffsetMs + this.trueMs;
  }

  setTimer(delayMs: number, run: () => void): Cancellable {
    const dueLocalMs = this.#shownMs() + Math.max(delayMs, 0);
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
    const shownMs = this.#shownMs();
    this.#isSuspended = true;
    this.#busyUntilMs = 0;
    this.pause(ms);
    const endMs = this.#pausedUntilMs;
    this.#strayedMs = this.strayedMs;
    this.#localMs = shownMs;
    this.#sinceMs = endMs;
    this.#suspendedMs += ms * this.#rate;
    for (const timer of this.#timers) this.#rearm(timer);
  }

  /** Once: when the pause ends, unless it dies before. */
  whenAwake(run: () => void): void {
    this.#onAwake = run;
  }

  /** Ends a pause. A suspend lasts as long as it was going to. */
  resume(): void {
    if (!this.isPaused || this.#isSuspended) return;
    this.#pausedUntilMs = this.#scheduler.nowMs;
    this.#wake();
  }

  setRate(rate: number): void {
    if (this.#isSuspended) return;
    this.#strayedMs = this.strayedMs;
    this.#localMs = this.#shownMs();
    this.#sinceMs = this.trueMs;
    this.#rate = rate;
    for (const timer of this.#timers) this.#rearm(timer);
  }

  jumpWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  #shownMs(): number {
    // During a suspend nobody looks; the clock is set right when it ends.
    return this.#localMs + (this.trueMs - this.#sinceMs) * this.#rate;
  }

  /** The code that runs takes time, perhaps. */
  #spend(share: number): void {
    if (this.#busy === 0 || !this.#isInEvent || !this.#random.chance(this.#busy * share)) return;
    this.#busyUntilMs = this.trueMs + this.#random.logUniform(costMs.min, costMs.max);
  }

  #arm(timer: Timer): void {
    const waitMs = Math.max(0, timer.dueLocalMs - this.#shownMs()) / this.#rate + this.aheadMs;
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

  /** Keeps its kind: it may have to wait once more. */
  #rerun(frozen: Frozen): void {
    this.#scheduler.after(0, `thaw ${this.id}`, () => this.#runOrFreeze(frozen), 1);
  }

  #rearm(timer: Timer): void {
    timer.scheduled.cancel();
    this.#arm(timer);
  }

  #schedule(delayMs: number, what: string, run: () => void, phase: Phase): Cancellable {
    return this.#scheduler.after(
      delayMs === 0 ? 0 : delayMs + this.aheadMs,
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
    if (this.aheadMs > 0) {
      this.#frozen.push(frozen);
      this.#planRelief();
      return;
    }
    this.#isInEvent = true;
    this.#spend(1);
    frozen.run();
    this.#isInEvent = false;
    this.#onEvent(this);
  }

  /** What waits for the code that runs comes when that is done. */
  #planRelief(): void {
    if (this.#isReliefPlanned) return;
    this.#isReliefPlanned = true;
    this.#scheduler.at(this.#busyUntilMs, `relieve ${this.id}`, () => {
      this.#isReliefPlanned = false;
      if (this.#isKilled || this.isPaused) return;
      if (this.aheadMs > 0) this.#planRelief();
      else this.#thaw(({ phase }) => phase);
    });
  }

  /** Timers first, as Node's loop has them, or what the sockets hold first: the process may have been stopped anywhere. */
  #wake(): void {
    if (this.isPaused || this.#isKilled) return;
    this.#isSuspended = false;
    this.thawed = this.#frozen.length;
    const onAwake = this.#onAwake;
    this.#onAwake = null;
    onAwake?.();
    const timersFirst = this.#random.chance(0.5);
    this.#thaw((each) => (each.phase === 1 ? 2 : each.isTimer === timersFirst ? 0 : 1));
  }

  /** Runs what has waited, one by one; what is equal in order as it came. */
  #thaw(order: (each: Frozen) => number): void {
    const frozen = this.#frozen;
    this.#frozen = [];
    const sorted = frozen
      .map((each, at) => ({ each, at }))
      .sort((a, b) => order(a.each) - order(b.each) || a.at - b.at);
    for (const { each } of sorted) this.#rerun(each);
  }
}

const nothing: Cancellable = { cancel: () => undefined };
