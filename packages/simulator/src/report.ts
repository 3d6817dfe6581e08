/** What many runs came to, for people. */
import type { Summary } from "./run/run-seed.js";
import { marks } from "./marks.js";

/** The bound of invariant 22, which chance may pass (docs/decisions/004). */
const promptTimeouts = 3;

export class Report {
  seeds = 0;
  failed = 0;
  virtualMs = 0;
  events = 0;
  cpuMs = 0;
  readonly #counts = new Map<string, number>();
  readonly #leaderTimes: number[] = [];
  readonly #callTimes: number[] = [];
  readonly #sessionTimes: number[] = [];

  add({ problems, virtualMs, events, counts, times, electionTimeoutMs }: Summary, cpuMs: number): void {
    this.seeds += 1;
    if (problems.length > 0) this.failed += 1;
    this.virtualMs += virtualMs;
    this.events += events;
    this.cpuMs += cpuMs;
    for (const [name, count] of counts) this.#counts.set(name, (this.#counts.get(name) ?? 0) + count);
    if (times.leaderMs !== null) this.#leaderTimes.push(times.leaderMs / electionTimeoutMs);
    if (times.callsMs !== null) this.#callTimes.push(times.callsMs / electionTimeoutMs);
    if (times.sessionsMs !== null) this.#sessionTimes.push(times.sessionsMs / electionTimeoutMs);
  }

  countOf(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  /** Of the runs in which no leader served at the healing: the share that had one within 3 election timeouts; 1 without such runs. */
  get promptShare(): number {
    const elections = this.#elections;
    if (elections.length === 0) return 1;
    return elections.filter((time) => time <= promptTimeouts).length / elections.length;
  }

  get #elections(): readonly number[] {
    return this.#leaderTimes.filter((time) => time > 0);
  }

  /** Marks that no run has met. */
  missingMarks(): string[] {
    return marks.filter((mark) => this.countOf(mark) === 0);
  }

  /** One line each. */
  lines(): string[] {
    const hours = this.virtualMs / 3_600_000;
    const speed = this.virtualMs / Math.max(this.cpuMs, 1);
    const messages = this.countOf("network: framesDelivered");
    return [
      `${whole(this.seeds)} seeds, ${this.failed} failed; ${hours.toFixed(2)} virtual hours, ${whole(this.events)} events, ${whole(messages)} frames, ${whole(this.countOf("acquired"))} grants taken`,
      `${speed.toFixed(0)} virtual seconds per CPU second`,
      `from the healing to a serving leader, in election timeouts: ${spread(this.#leaderTimes)}`,
      `where none served at the healing: ${spread(this.#elections)}, ${percent(this.promptShare)} within ${promptTimeouts}`,
      `from the healing to the end of all calls, in election timeouts: ${spread(this.#callTimes)}`,
      `from the last client's end to an empty state, in election timeouts: ${spread(this.#sessionTimes)}`,
      `${marks.length - this.missingMarks().length} of ${marks.length} marks met`,
    ];
  }

  /** Everything that was counted, by name, and the marks that weren't. */
  table(): string[] {
    const sorted = [...this.#counts].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    const missing = this.missingMarks().map((mark) => `${"no run".padStart(14)}  ${mark}`);
    return [...sorted.map(([name, count]) => `${whole(count).padStart(14)}  ${name}`), ...missing];
  }

  /** Of a range of so many seeds that goes on. */
  progress(seeds: number): string {
    return `${whole(this.seeds)} of ${whole(seeds)} seeds are done, ${this.failed} failed so far`;
  }
}

function whole(number: number): string {
  return String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ",");
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function spread(values: readonly number[]): string {
  if (values.length === 0) return "none";
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number): string =>
    (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0).toFixed(1);
  return `half within ${at(0.5)}, 99 % within ${at(0.99)}, all within ${at(1)}`;
}
