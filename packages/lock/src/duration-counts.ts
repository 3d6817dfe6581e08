/** How many things last how long: knows the longest also after one of them has gone. */
import { assert } from "./assert.js";

export class DurationCounts {
  private readonly counts: Map<number, number> = new Map();

  add(ms: number): void {
    this.counts.set(ms, (this.counts.get(ms) ?? 0) + 1);
  }

  /** One that was added. */
  remove(ms: number): void {
    const others = (this.counts.get(ms) ?? 0) - 1;
    assert(others >= 0, "what goes was counted");
    if (others === 0) this.counts.delete(ms);
    else this.counts.set(ms, others);
  }

  clear(): void {
    this.counts.clear();
  }

  /** Milliseconds; 0 when there are none. Looks at every different one. */
  get longestMs(): number {
    let longest = 0;
    for (const ms of this.counts.keys()) longest = Math.max(longest, ms);
    return longest;
  }
}
