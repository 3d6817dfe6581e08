/**
 * Seeded chance. One seed splits into a stream for each subsystem, so that a fault which is left out doesn't shift the draws of the others:
 * without that no failing run could be shrunk.
 */

/** Draws of one stream: sfc32, seeded by splitmix32. */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number) {
    let state = seed >>> 0;
    const next = (): number => {
      state = (state + 0x9e3779b9) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
      mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
      return (mixed ^ (mixed >>> 15)) >>> 0;
    };
    this.#a = next();
    this.#b = next();
    this.#c = next();
    for (let round = 0; round < 12; round += 1) this.bits();
  }

  /** 32 bits. */
  bits(): number {
    const sum = (this.#a + this.#b + this.#counter) >>> 0;
    this.#counter = (this.#counter + 1) >>> 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) >>> 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) >>> 0;
    this.#c = (this.#c + sum) >>> 0;
    return sum;
  }

  /** From 0 to below 1. */
  fraction(): number {
    return this.bits() / 2 ** 32;
  }

  /** A whole number from 0 to `below` - 1. */
  integer(below: number): number {
    return Math.floor(this.fraction() * below);
  }

  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + this.integer(max - min + 1);
  }

  /** True with this probability. */
  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  /** Evenly over orders of magnitude: as often between 1 and 10 as between 10 and 100. */
  logUniform(min: number, max: number): number {
    return betweenMagnitudes(min, max, this.fraction());
  }

  /** Throws for an empty list. */
  pick<T>(items: readonly T[]): T {
    const item = items[this.integer(items.length)];
    if (item === undefined) throw new RangeError("nothing to pick from");
    return item;
  }

  /** In a new order. */
  shuffle<T>(items: readonly T[]): T[] {
    const shuffled = [...items];
    for (let at = shuffled.length - 1; at > 0; at -= 1) {
      const other = this.integer(at + 1);
      [shuffled[at], shuffled[other]] = [shuffled[other] as T, shuffled[at] as T];
    }
    return shuffled;
  }

  /** 32 lower-case hex digits. */
  key(): string {
    return Array.from({ length: 4 }, () => this.bits().toString(16).padStart(8, "0")).join("");
  }
}

/**
 * From `min` to `max` as `share` goes from 0 to 1, by orders of magnitude: straight lines between doublings. Powers and logarithms differ in
 * their last bits from one version of Node to the next, and with them whole runs would.
 */
export function betweenMagnitudes(min: number, max: number, share: number): number {
  let doublings = 0;
  let rest = max / min;
  while (rest >= 2) {
    rest /= 2;
    doublings += 1;
  }
  let left = share * (doublings + rest - 1);
  let value = min;
  while (left >= 1) {
    value *= 2;
    left -= 1;
  }
  return value * (1 + left);
}

/** The stream of this name: the same for the same seed, whatever else is drawn. */
export function streamOf(seed: number, name: string): Random {
  let hash = 0x811c9dc5 ^ seed;
  for (let at = 0; at < name.length; at += 1) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193);
  return new Random(hash ^ Math.imul(Math.floor(seed / 2 ** 32), 0x9e3779b1));
}
