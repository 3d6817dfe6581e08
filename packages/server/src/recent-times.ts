/** How long the last ones of something took. */
export interface TimesSummary {
  /** How many are kept. */
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

export class RecentTimes {
  private readonly kept: number[] = [];
  private next = 0;
  private readonly keptMax: number;

  constructor(keptMax: number) {
    this.keptMax = keptMax;
  }

  add(ms: number): void {
    this.kept[this.next] = ms;
    this.next = (this.next + 1) % this.keptMax;
  }

  /** Null before the first. */
  summary(): TimesSummary | null {
    const sorted = [...this.kept].sort((a, b) => a - b);
    const count = sorted.length;
    // The smallest that is no less than so many of all.
    const at = (share: number): number => rounded(sorted[Math.ceil(share * count) - 1] ?? 0);
    return count === 0 ? null : { count, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) };
  }
}

/** Microseconds are enough for people. */
function rounded(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}
