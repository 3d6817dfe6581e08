/** Waiting between tries: doubling, with full jitter, so that clients which failed together don't come back together. */
import type { Random } from "./ports.js";

export interface BackoffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
}

export class Backoff {
  private failures = 0;
  private readonly options: BackoffOptions;
  private readonly random: Random;

  constructor(options: BackoffOptions, random: Random) {
    this.options = options;
    this.random = random;
  }

  /** The wait after one more failure. */
  nextMs(): number {
    const { firstMs, maxMs } = this.options;
    const ceilingMs = Math.min(maxMs, firstMs * 2 ** Math.min(this.failures, 30));
    this.failures += 1;
    return ceilingMs * this.random.fraction();
  }

  reset(): void {
    this.failures = 0;
  }
}
