/** A binary heap of deadlines. Entries are never moved: their owner checks, when one comes up, whether it still holds. */
export class DeadlineHeap<T> {
  private readonly times: number[] = [];
  private readonly values: T[] = [];

  get size(): number {
    return this.times.length;
  }

  /** The earliest deadline, Infinity when there is none. */
  get earliest(): number {
    return this.times[0] ?? Number.POSITIVE_INFINITY;
  }

  push(time: number, value: T): void {
    const { times, values } = this;
    let at = times.length;
    times.push(time);
    values.push(value);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if ((times[parent] as number) <= time) break;
      times[at] = times[parent] as number;
      values[at] = values[parent] as T;
      at = parent;
    }
    times[at] = time;
    values[at] = value;
  }

  /** Takes the earliest entry if it is due at `now`, else returns undefined. */
  popDue(now: number): T | undefined {
    const { times, values } = this;
    const first = times[0];
    if (first === undefined || first > now) return undefined;
    const result = values[0];
    const time = times.pop() as number;
    const value = values.pop() as T;
    if (times.length > 0) this.sink(time, value);
    return result;
  }

  /** Drops the entries that their owner has no more use for. Costs as much as pushing the others anew. */
  retain(isWanted: (value: T) => boolean): void {
    const times = this.times.splice(0);
    const values = this.values.splice(0);
    for (const [at, value] of values.entries()) if (isWanted(value)) this.push(times[at] as number, value);
  }

  clear(): void {
    this.times.length = 0;
    this.values.length = 0;
  }

  private sink(time: number, value: T): void {
    const { times, values } = this;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= times.length) break;
      if (child + 1 < times.length && (times[child + 1] as number) < (times[child] as number)) child += 1;
      if ((times[child] as number) >= time) break;
      times[at] = times[child] as number;
      values[at] = values[child] as T;
      at = child;
    }
    times[at] = time;
    values[at] = value;
  }
}
