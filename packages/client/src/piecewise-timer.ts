/** Timers of a runtime's event loop, Node's or a browser's. */
import type { Timer } from "./ports.js";

/** setTimeout takes at most 2^31-1 ms; a longer delay would fire after 1 ms. */
export const timerMsMax: number = 2 ** 31 - 1;

/** Timers fire up to 1 ms early, and a long delay comes in pieces: each firing looks at the clock again. None keeps a process alive. */
export class PiecewiseTimer implements Timer {
  private readonly dueMs: number;
  private readonly run: () => void;
  private handle: ReturnType<typeof setTimeout> | null = null;

  constructor(delayMs: number, run: () => void) {
    this.dueMs = performance.now() + Math.max(delayMs, 0);
    this.run = run;
    this.arm();
  }

  cancel(): void {
    if (this.handle !== null) clearTimeout(this.handle);
    this.handle = null;
  }

  private arm(): void {
    const pieceMs = Math.min(Math.max(Math.ceil(this.dueMs - performance.now()), 1), timerMsMax);
    const handle = setTimeout(() => {
      this.handle = null;
      if (performance.now() < this.dueMs) this.arm();
      else this.run();
    }, pieceMs);
    // A number in browsers, where no process waits for it.
    if (typeof handle === "object") handle.unref();
    this.handle = handle;
  }
}
