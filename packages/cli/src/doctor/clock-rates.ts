/** How fast a clock runs, as far as questions and answers over a network can show it. Pure. */

/** A node's clock was read somewhere between the sending of the question and the coming of the answer, by the asker's clock. */
export interface ClockSample {
  readonly sentMs: number;
  readonly receivedMs: number;
  /** By the node's clock. */
  readonly monotonicMs: number;
}

/** The node's clock against the asker's: 1.01 is one hundredth too fast. It is somewhere between the two. */
export interface RateBounds {
  readonly low: number;
  readonly high: number;
}

export const ownRate: RateBounds = { low: 1, high: 1 };

/** From the two samples that say most; null when no two lie apart. */
export function rateBoundsOf(samples: readonly ClockSample[]): RateBounds | null {
  let best: RateBounds | null = null;
  for (const [at, later] of samples.entries()) {
    for (const earlier of samples.slice(0, at)) {
      const bounds = boundsBetween(earlier, later);
      if (bounds !== null && (best === null || bounds.high - bounds.low < best.high - best.low)) best = bounds;
    }
  }
  return best;
}

function boundsBetween(earlier: ClockSample, later: ClockSample): RateBounds | null {
  const leastMs = later.sentMs - earlier.receivedMs;
  const mostMs = later.receivedMs - earlier.sentMs;
  if (leastMs <= 0) return null;
  const passedMs = later.monotonicMs - earlier.monotonicMs;
  return { low: passedMs / mostMs, high: passedMs / leastMs };
}

/** By how much the rates differ at least, as a part of the faster one; 0 when the round trips can explain what was seen. */
export function certainDifference(a: RateBounds, b: RateBounds): number {
  return Math.max(0, 1 - b.high / a.low, 1 - a.high / b.low);
}

/** By how much they may differ at most. */
export function possibleDifference(a: RateBounds, b: RateBounds): number {
  return Math.max(a.high / b.low, b.high / a.low) - 1;
}
