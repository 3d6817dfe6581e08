/** A look at all sockets once per period. */
import type { Clock, Timer } from "./ports.js";

/**
 * Calls `run` once per period, but passes over a period in which this process itself was stuck: what the other sides sent meanwhile
 * hasn't been read yet, and their silence is ours.
 */
export class Sweeper {
  private readonly clock: Clock;
  private readonly periodMs: number;
  private readonly run: () => void;
  private timer: Timer | null = null;

  constructor(clock: Clock, periodMs: number, run: () => void) {
    this.clock = clock;
    this.periodMs = periodMs;
    this.run = run;
  }

  start(): void {
    const dueMs = this.clock.monotonicMs() + this.periodMs;
    this.timer = this.clock.setTimer(this.periodMs, () => {
      const wasStuck = this.clock.monotonicMs() - dueMs > this.periodMs / 2;
      this.start();
      if (!wasStuck) this.run();
    });
  }

  stop(): void {
    this.timer?.cancel();
    this.timer = null;
  }
}
