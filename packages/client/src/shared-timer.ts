/**
 * One timer for all sessions of a client. What is due soon is done along with what is due: a client with a hundred sessions wakes up a few
 * times a second, and keepalives that are due together share a frame.
 */
import type { Clock, Random, Timer } from "./ports.js";

interface Task {
  readonly fromMs: number;
  readonly dueMs: number;
  readonly run: () => void;
}

export class SharedTimer {
  private readonly clock: Clock;
  private readonly random: Pick<Random, "fraction">;
  private readonly tasks = new Set<Task>();
  private timer: Timer | null = null;
  private timerDueMs = Number.POSITIVE_INFINITY;
  private isRunning = false;
  /** Null until it is asked for. */
  private drawn: number | null = null;

  constructor(clock: Clock, random: Pick<Random, "fraction">) {
    this.clock = clock;
    this.random = random;
  }

  /** From 0 to below 1, by chance, and the same for all that is planned until the timer fires: it spreads clients, not a client's sessions. */
  get fraction(): number {
    this.drawn ??= this.random.fraction();
    return this.drawn;
  }

  /** Calls `run` once: when `delayMs` (finite) have passed, or with another task, up to `earlyMs` before. */
  set(delayMs: number, earlyMs: number, run: () => void): Timer {
    const dueMs = this.clock.monotonicMs() + delayMs;
    const task = { fromMs: dueMs - earlyMs, dueMs, run };
    this.tasks.add(task);
    if (!this.isRunning && dueMs < this.timerDueMs) this.arm(dueMs);
    return { cancel: () => this.cancel(task) };
  }

  /** While others wait the timer stays as it is: it finds nothing to do, and arms itself for what waits then. */
  private cancel(task: Task): void {
    this.tasks.delete(task);
    if (this.tasks.size === 0) this.disarm();
  }

  private onTimer(): void {
    this.disarm();
    const now = this.clock.monotonicMs();
    this.isRunning = true;
    this.drawn = null;
    try {
      // Those that another one has cancelled meanwhile are not run, and those that were set meanwhile have their time.
      for (const task of [...this.tasks]) if (task.fromMs <= now && this.tasks.delete(task)) task.run();
    } finally {
      this.isRunning = false;
      const dueMs = [...this.tasks].reduce(
        (earliest, task) => Math.min(earliest, task.dueMs),
        Number.POSITIVE_INFINITY,
      );
      if (dueMs < Number.POSITIVE_INFINITY) this.arm(dueMs);
    }
  }

  private arm(dueMs: number): void {
    this.timer?.cancel();
    this.timerDueMs = dueMs;
    this.timer = this.clock.setTimer(Math.max(dueMs - this.clock.monotonicMs(), 0), () => this.onTimer());
  }

  private disarm(): void {
    this.timer?.cancel();
    this.timer = null;
    this.timerDueMs = Number.POSITIVE_INFINITY;
  }
}
