/**
 * Ends waiting at its time. One timer serves all acquires under way: most are answered long before, and arming one each would cost
 * more than they do.
 */
import type { Acquire } from "./acquire.js";
import type { Clock, Timer } from "./ports.js";

export class WaitLimits {
  private readonly clock: Clock;
  private readonly onLimit: (acquire: Acquire) => void;
  private readonly pending = new Set<Acquire>();
  private timer: Timer | null = null;
  private timerDueMs = Number.POSITIVE_INFINITY;

  constructor(clock: Clock, onLimit: (acquire: Acquire) => void) {
    this.clock = clock;
    this.onLimit = onLimit;
  }

  get size(): number {
    return this.pending.size;
  }

  all(): readonly Acquire[] {
    return [...this.pending];
  }

  add(acquire: Acquire): void {
    this.pending.add(acquire);
    if (acquire.waitUntilMs < this.timerDueMs) this.arm(acquire.waitUntilMs);
  }

  /** The timer stays as it is: it finds nothing to end, and arms itself for what is pending then. */
  delete(acquire: Acquire): void {
    this.pending.delete(acquire);
  }

  close(): void {
    this.timer?.cancel();
    this.timer = null;
    this.timerDueMs = Number.POSITIVE_INFINITY;
  }

  private arm(dueMs: number): void {
    this.timer?.cancel();
    this.timerDueMs = dueMs;
    this.timer = this.clock.setTimer(Math.max(dueMs - this.clock.monotonicMs(), 0), () => this.onTimer());
  }

  private onTimer(): void {
    this.timer = null;
    this.timerDueMs = Number.POSITIVE_INFINITY;
    const now = this.clock.monotonicMs();
    const over = this.all().filter((acquire) => acquire.waitUntilMs <= now);
    for (const acquire of over) this.onLimit(acquire);
    let earliestMs = Number.POSITIVE_INFINITY;
    for (const { waitUntilMs } of this.pending) earliestMs = Math.min(earliestMs, waitUntilMs);
    if (earliestMs < this.timerDueMs) this.arm(earliestMs);
  }
}
