/** The production clock. */
import { performance } from "node:perf_hooks";
import type { Clock, Timer } from "./ports.js";

/** setTimeout takes at most 2^31-1 ms; a longer delay would fire after 1 ms. */
const pieceMsMax = 2 ** 31 - 1;

export interface SystemClockParts {
  /** Milliseconds with fractions; never falls. */
  monotonicMs(): number;
  wallMs(): number;
  /** As the global setTimeout and clearTimeout. */
  setTimeout(run: () => void, delayMs: number): unknown;
  clearTimeout(handle: unknown): void;
  setImmediate(run: () => void): void;
}

const systemParts: SystemClockParts = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  setTimeout: (run, delayMs) => setTimeout(run, delayMs),
  clearTimeout: (handle) => clearTimeout(handle as NodeJS.Timeout),
  setImmediate: (run) => {
    setImmediate(run);
  },
};

class PiecewiseTimer implements Timer {
  private handle: unknown = null;
  private isOver = false;
  private readonly parts: SystemClockParts;
  private readonly dueMs: number;
  private readonly run: () => void;

  constructor(dueMs: number, run: () => void, parts: SystemClockParts) {
    this.parts = parts;
    this.dueMs = dueMs;
    this.run = run;
    this.arm();
  }

  cancel(): void {
    this.isOver = true;
    this.parts.clearTimeout(this.handle);
  }

  /** Node's timers fire up to 1 ms early, and a long delay comes in pieces: each firing looks at the clock again. */
  private arm(): void {
    const leftMs = this.dueMs - this.parts.monotonicMs();
    const pieceMs = Math.min(Math.max(Math.ceil(leftMs), 1), pieceMsMax);
    this.handle = this.parts.setTimeout(() => {
      if (this.isOver) return;
      if (this.parts.monotonicMs() < this.dueMs) return this.arm();
      this.isOver = true;
      this.run();
    }, pieceMs);
  }
}

/** `parts` replaces the real time in tests. */
export function createSystemClock(parts: SystemClockParts = systemParts): Clock {
  return {
    monotonicMs: () => parts.monotonicMs(),
    wallMs: () => parts.wallMs(),
    setTimer(delayMs, run) {
      // A NaN or infinite delay is a fault of the caller; a timer that fires at once or never would hide it.
      if (!Number.isFinite(delayMs)) throw new RangeError(`a timer's delay must be finite: ${delayMs}`);
      return new PiecewiseTimer(parts.monotonicMs() + Math.max(delayMs, 0), run, parts);
    },
    setImmediate: (run) => parts.setImmediate(run),
  };
}
