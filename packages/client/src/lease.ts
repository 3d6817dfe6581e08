/** How long a session's lease surely runs, as its client may believe it (docs/guarantees.md, P4 and P5). */
import type { Clock } from "./ports.js";

/** One moment on both clocks. */
export interface Instant {
  readonly monotonicMs: number;
  readonly suspendAwareMs: number;
}

export function instantNow(clock: Clock): Instant {
  return { monotonicMs: clock.monotonicMs(), suspendAwareMs: clock.suspendAwareMs() };
}

/**
 * The margin pays for clocks that differ by up to 1 % in rate, for the coarse clock that runs through a suspend, and for the time
 * between a look at the clock and what the caller does on its word.
 */
export function usableMs(durationMs: number): number {
  return durationMs - Math.max(durationMs * 0.02, 250);
}

/** The rest of a lease can be less than a clock's step: a timer for that would fire again and again in one moment. */
export const restTimerMsMin = 0.01;

/** By the clock that shows more time passed: the monotonic one may have stood still in a suspend. */
export function elapsedMs(clock: Clock, since: Instant): number {
  return Math.max(clock.monotonicMs() - since.monotonicMs, clock.suspendAwareMs() - since.suspendAwareMs);
}

/**
 * By how much the clock that runs through a suspend must be ahead before a suspend is taken for the reason. It may be as coarse as 20 ms
 * (ports.ts; os.uptime() has steps of 10 ms), each of the two looks at it falls anywhere in a step, and between the looks at the two clocks
 * the process may have waited for a CPU. A suspend that took less of a lease isn't what ended it.
 */
const suspendSlackMs = 100;

/** The later of two moments of one process. */
export function laterOf(a: Instant, b: Instant): Instant {
  return a.monotonicMs >= b.monotonicMs ? a : b;
}

/**
 * Runs from the moment the last acknowledged keepalive was *sent* (at first: openSession was first sent): the service began to
 * count later, so it ends later. Nothing else moves it, a grant least of all.
 */
export class Lease {
  readonly ttlMs: number;
  private renewedAt: Instant;
  private readonly clock: Clock;

  constructor(ttlMs: number, openedAt: Instant, clock: Clock) {
    this.ttlMs = ttlMs;
    this.renewedAt = openedAt;
    this.clock = clock;
  }

  /** When what renewed it last was sent. */
  get start(): Instant {
    return this.renewedAt;
  }

  renew(sentAt: Instant): void {
    this.renewedAt = laterOf(this.renewedAt, sentAt);
  }

  /** Looks at both clocks. Zero or less: over. */
  remainingMs(): number {
    return usableMs(this.ttlMs) - elapsedMs(this.clock, this.renewedAt);
  }

  /** Since what renewed it last was sent. */
  get ageMs(): number {
    return elapsedMs(this.clock, this.renewedAt);
  }

  /** Whether a suspend has used it up: the monotonic clock alone, which stood still in it, would still call it running. */
  get wasSuspendedAway(): boolean {
    const runMs = this.clock.monotonicMs() - this.renewedAt.monotonicMs;
    const passedMs = this.clock.suspendAwareMs() - this.renewedAt.suspendAwareMs;
    return runMs < usableMs(this.ttlMs) && passedMs - runMs > suspendSlackMs;
  }
}
