import type { Random } from "../../src/index.js";

/** A seeded generator (mulberry32): the same seed, the same run. */
export class SeededRandom implements Random {
  #state: number;

  constructor(seed: number) {
    this.#state = Math.imul(seed, 0x9e3779b1) >>> 0;
  }

  integer(below: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000) * below);
  }

  /** True in `percent` of 100 cases; fractions count. */
  chance(percent: number): boolean {
    return this.integer(10_000) < percent * 100;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.integer(list.length)] as T;
  }
}
