/** Latencies in constant memory: buckets that are 1 % wide, so that a percentile is right to 1 %. */

const growth = 1.01;
const smallestMs = 0.001;

export interface LatencySummary {
  readonly count: number;
  readonly meanMs: number;
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  readonly maxMs: number;
}

export class Latencies {
  readonly #counts: number[] = [];
  #count = 0;
  #sumMs = 0;
  #maxMs = 0;

  add(ms: number): void {
    const bucket = Math.max(0, Math.ceil(Math.log(ms / smallestMs) / Math.log(growth)));
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#count += 1;
    this.#sumMs += ms;
    this.#maxMs = Math.max(this.#maxMs, ms);
  }

  get count(): number {
    return this.#count;
  }

  /** The smallest bucket's upper end that `fraction` (0 to 1) of all values don't exceed; 0 when there are none. */
  percentileMs(fraction: number): number {
    const rank = Math.max(1, Math.ceil(this.#count * fraction));
    let seen = 0;
    for (const [bucket, count = 0] of this.#counts.entries()) {
      seen += count;
      if (seen >= rank) return Math.min(this.#maxMs, smallestMs * growth ** bucket);
    }
    return 0;
  }

  summary(): LatencySummary {
    return {
      count: this.#count,
      meanMs: round(this.#count === 0 ? 0 : this.#sumMs / this.#count),
      p50Ms: round(this.percentileMs(0.5)),
      p90Ms: round(this.percentileMs(0.9)),
      p99Ms: round(this.percentileMs(0.99)),
      p999Ms: round(this.percentileMs(0.999)),
      maxMs: round(this.#maxMs),
    };
  }
}

/** To the microsecond. */
function round(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}
