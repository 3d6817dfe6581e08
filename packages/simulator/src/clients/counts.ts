/** How often something happened that a run is meant to meet: the "sometimes" marks of the clients. */
export class Counts {
  readonly #counts = new Map<string, number>();

  add(mark: string, by: number = 1): void {
    this.#counts.set(mark, this.of(mark) + by);
  }

  of(mark: string): number {
    return this.#counts.get(mark) ?? 0;
  }

  /** In the order of their names. */
  entries(): readonly (readonly [string, number])[] {
    return [...this.#counts].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  }
}
