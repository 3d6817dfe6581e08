/** Durations counted in fixed buckets: recording one touches three numbers and allocates nothing. */

/** Upper bounds in seconds, as the servers' metrics have them: from a round trip in one rack to a long wait. */
export const secondsBounds: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
];

export class SecondsHistogram {
  /** Not cumulative; the last one is what lies above all bounds. */
  private readonly buckets = new Float64Array(secondsBounds.length + 1);
  private sum = 0;
  private total = 0;

  get count(): number {
    return this.total;
  }

  record(seconds: number): void {
    let at = 0;
    while (at < secondsBounds.length && seconds > (secondsBounds[at] ?? 0)) at += 1;
    this.buckets[at] = (this.buckets[at] ?? 0) + 1;
    this.sum += seconds;
    this.total += 1;
  }

  /** In Prometheus' text format. `labels`: as they stand between the braces, without a comma at the end. */
  lines(name: string, labels: string): string[] {
    const before = labels === "" ? "" : `${labels},`;
    const braced = labels === "" ? "" : `{${labels}}`;
    let below = 0;
    const buckets = [...this.buckets].map((count, at) => {
      below += count;
      return `${name}_bucket{${before}le="${secondsBounds[at] ?? "+Inf"}"} ${below}`;
    });
    return [...buckets, `${name}_sum${braced} ${this.sum}`, `${name}_count${braced} ${this.total}`];
  }
}
