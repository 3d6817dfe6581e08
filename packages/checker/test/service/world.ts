/** Virtual time, and what is written down of it. */
import type { History, HistoryEvent } from "../../src/index.js";
import { historyVersion } from "../../src/index.js";

type WithoutTime<Event> = Event extends unknown ? Omit<Event, "at"> : never;
export type Fact = WithoutTime<HistoryEvent>;

export interface Due {
  readonly at: number;
  readonly run: () => void;
  isCancelled: boolean;
}

export class World {
  readonly nodes: readonly string[];
  readonly electionTimeoutMs: number;
  readonly events: HistoryEvent[] = [];
  now = 0;
  /** Sorted by time; what is due at one moment runs in the order in which it was asked for. */
  private readonly due: Due[] = [];
  private readonly rates: Map<string, number> = new Map();

  constructor(nodes: readonly string[], electionTimeoutMs: number) {
    this.nodes = nodes;
    this.electionTimeoutMs = electionTimeoutMs;
  }

  record(fact: Fact): void {
    this.events.push({ at: this.now, ...fact });
  }

  after(ms: number, run: () => void): Due {
    const due: Due = { at: this.now + Math.max(ms, 0), run, isCancelled: false };
    let at = this.due.length;
    while (at > 0 && (this.due[at - 1] as Due).at > due.at) at -= 1;
    this.due.splice(at, 0, due);
    return due;
  }

  advance(ms: number): void {
    const end = this.now + ms;
    for (let next = this.due[0]; next !== undefined && next.at <= end; next = this.due[0]) {
      this.due.shift();
      this.now = next.at;
      if (!next.isCancelled) next.run();
    }
    this.now = end;
  }

  /** This process's clock runs so many times as fast as time. */
  setRate(process: string, rate: number): void {
    this.rates.set(process, rate);
    this.record({ kind: "clockRate", process, rate });
  }

  /** True time that passes while a process counts `ms`. */
  byClock(process: string, ms: number): number {
    return ms / (this.rates.get(process) ?? 1);
  }

  history(): History {
    const { nodes, electionTimeoutMs, events } = this;
    return { version: historyVersion, origin: "test", nodes, electionTimeoutMs, firstIndex: 1, events: [...events] };
  }
}
