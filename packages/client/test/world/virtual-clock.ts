/** Time that stands still until a test moves it. */
import type { Clock, Timer } from "../../src/ports.js";

interface Entry {
  readonly dueMs: number;
  readonly order: number;
  /** Null: cancelled. What it would have run must not be kept alive until then. */
  run: (() => void) | null;
}

export class VirtualClock implements Clock {
  /** Whether somebody keeps the process alive now. */
  isKept = false;
  /** Of the clock that runs through a suspend, as of os.uptime(); 0: it shows every instant. */
  suspendAwareStepMs = 0;
  private nowMs = 1_000;
  private suspendedMs = 5_000_000;
  private order = 0;
  /** The latest first, so that the next one is taken off the end. */
  private timers: Entry[] = [];
  private cancelled = 0;

  monotonicMs(): number {
    return this.nowMs;
  }

  suspendAwareMs(): number {
    const shownMs = this.nowMs + this.suspendedMs;
    return this.suspendAwareStepMs === 0 ? shownMs : shownMs - (shownMs % this.suspendAwareStepMs);
  }

  setTimer(delayMs: number, run: () => void): Timer {
    if (!Number.isFinite(delayMs) || delayMs < 0) throw new Error(`a timer's delay must be finite: ${delayMs}`);
    const entry: Entry = { dueMs: this.nowMs + delayMs, order: this.order, run };
    this.order += 1;
    this.timers.splice(this.placeOf(entry.dueMs), 0, entry);
    return {
      cancel: () => this.cancel(entry),
    };
  }

  defer(run: () => void): void {
    queueMicrotask(run);
  }

  keepProcess(isKept: boolean): void {
    this.isKept = isKept;
  }

  /** The same clock for one owner, whose timers are counted. */
  view(): ClockView {
    return new ClockView(this);
  }

  /** Runs every timer that falls due, in order, and lets promises settle between them. */
  async advance(ms: number): Promise<void> {
    const endMs = this.nowMs + ms;
    await settle();
    while (this.next(endMs) !== null) await this.step(endMs);
    this.nowMs = endMs;
  }

  /** Runs the next timer that falls due until `endMs`; without one, time passes until then. */
  async step(endMs: number): Promise<void> {
    const next = this.next(endMs);
    if (next === null) {
      this.nowMs = Math.max(this.nowMs, endMs);
    } else {
      this.nowMs = Math.max(this.nowMs, next.dueMs);
      this.timers.pop();
      const { run } = next;
      // Over: a cancel that comes now is of nothing.
      next.run = null;
      run?.();
    }
    await settle();
  }

  /** The event loop is stuck, or the process stopped: time passes, and no timer fires. */
  stall(ms: number): void {
    this.nowMs += ms;
  }

  /** The machine is suspended: only one of the clocks runs. */
  suspend(ms: number): void {
    this.suspendedMs += ms;
  }

  private next(endMs: number): Entry | null {
    for (let last = this.timers.at(-1); last !== undefined; last = this.timers.at(-1)) {
      if (last.run !== null) return last.dueMs <= endMs ? last : null;
      this.timers.pop();
      this.cancelled -= 1;
    }
    return null;
  }

  private cancel(entry: Entry): void {
    if (entry.run === null) return;
    entry.run = null;
    this.cancelled += 1;
    if (this.cancelled < 1_000 || this.cancelled < this.timers.length / 2) return;
    this.timers = this.timers.filter(({ run }) => run !== null);
    this.cancelled = 0;
  }

  /** Behind all that are due later, before all that are due earlier or at the same time but were set first. */
  private placeOf(dueMs: number): number {
    let low = 0;
    let high = this.timers.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.timers[middle]?.dueMs ?? 0) > dueMs) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** One owner's view of the time: a leak is its leak. */
export class ClockView implements Clock {
  private readonly clock: VirtualClock;
  private readonly pending = new Set<object>();

  constructor(clock: VirtualClock) {
    this.clock = clock;
  }

  /** Its timers that would still fire. */
  get timerCount(): number {
    return this.pending.size;
  }

  monotonicMs(): number {
    return this.clock.monotonicMs();
  }

  suspendAwareMs(): number {
    return this.clock.suspendAwareMs();
  }

  setTimer(delayMs: number, run: () => void): Timer {
    const mark = {};
    this.pending.add(mark);
    const timer = this.clock.setTimer(delayMs, () => {
      this.pending.delete(mark);
      run();
    });
    return {
      cancel: () => {
        this.pending.delete(mark);
        timer.cancel();
      },
    };
  }

  defer(run: () => void): void {
    this.clock.defer(run);
  }

  keepProcess(isKept: boolean): void {
    this.clock.keepProcess(isKept);
  }
}

/** All promises that can settle without time passing have settled. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
