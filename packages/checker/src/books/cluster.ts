/** Who led when, whether a majority was there, whose clock ran how fast, who was paused or dead. */
import type { HistoryEvent } from "../history.js";

export interface Leadership {
  readonly node: string;
  readonly term: number;
  readonly electedAt: number;
  /** Infinity while it lasts. */
  endAt: number;
}

interface Span {
  readonly from: number;
  to: number;
}

export class ClusterBook {
  readonly leaderships: Leadership[] = [];
  readonly stalls: { readonly node: string; readonly at: number; readonly ms: number }[] = [];
  /** When a majority was up and heard one another. */
  readonly quorums: Span[] = [];
  readonly crashes: Map<string, { readonly at: number; readonly position: number }> = new Map();
  endAt = 0;
  private readonly nodes: readonly string[];
  private readonly rates: Map<string, { readonly from: number; readonly rate: number }[]> = new Map();
  private readonly pauses: Map<string, Span[]> = new Map();

  constructor(nodes: readonly string[]) {
    this.nodes = nodes;
  }

  note(event: HistoryEvent, position: number): void {
    const { at } = event;
    this.endAt = at;
    switch (event.kind) {
      case "leader":
        this.leaderships.push({
          node: event.node,
          term: event.term,
          electedAt: at,
          endAt: Number.POSITIVE_INFINITY,
        });
        return;
      case "deposed":
      case "started":
        this.endLeaderships(event.node, at);
        return;
      case "stall":
        this.stalls.push({ node: event.node, at, ms: event.ms });
        return;
      case "quorum":
        this.onQuorum(event.up, at);
        return;
      case "clockRate":
        listAt(this.rates, event.process).push({ from: at, rate: event.rate });
        return;
      case "paused":
        listAt(this.pauses, event.process).push({ from: at, to: Number.POSITIVE_INFINITY });
        return;
      case "resumed": {
        const pause = this.pauses.get(event.process)?.at(-1);
        if (pause !== undefined) pause.to = Math.min(pause.to, at);
        return;
      }
      case "crashed":
        this.crashes.set(event.process, { at, position });
        this.endLeaderships(event.process, at);
        return;
      default:
        return;
    }
  }

  /** How long this node's loop was stuck between two moments, by the stalls that lie wholly in between. */
  stalledMs(node: string, from: number, to: number): number {
    const inside = this.stalls.filter((stall) => stall.node === node && stall.at - stall.ms >= from && stall.at <= to);
    return inside.reduce((sum, { ms }) => sum + ms, 0);
  }

  wasPaused(process: string, from: number, to: number): boolean {
    return (this.pauses.get(process) ?? []).some((pause) => pause.from <= to && pause.to >= from);
  }

  /** The slowest and the fastest that a clock ran between two moments. */
  rateOf(process: string, from: number, to: number): { readonly slowest: number; readonly fastest: number } {
    return this.rateOfAll([process], from, to);
  }

  /** Of those who led between two moments; of all nodes if nobody is known to have led. */
  leaderRate(from: number, to: number): { readonly slowest: number; readonly fastest: number } {
    const leaders = this.leaderships.filter(({ electedAt, endAt }) => electedAt <= to && endAt >= from);
    const names = leaders.length === 0 ? this.nodes : leaders.map(({ node }) => node);
    return this.rateOfAll(names, from, to);
  }

  private rateOfAll(names: readonly string[], from: number, to: number): { slowest: number; fastest: number } {
    let slowest = Number.POSITIVE_INFINITY;
    let fastest = 0;
    for (const name of names) {
      const changes = this.rates.get(name) ?? [];
      const before = changes.findLast((change) => change.from <= from)?.rate ?? 1;
      const inside = changes.filter((change) => change.from > from && change.from <= to).map(({ rate }) => rate);
      slowest = Math.min(slowest, before, ...inside);
      fastest = Math.max(fastest, before, ...inside);
    }
    return names.length === 0 ? { slowest: 1, fastest: 1 } : { slowest, fastest };
  }

  private endLeaderships(node: string, at: number): void {
    for (let index = this.leaderships.length - 1; index >= 0; index -= 1) {
      const leadership = this.leaderships[index];
      if (leadership === undefined || leadership.node !== node) continue;
      if (leadership.endAt !== Number.POSITIVE_INFINITY) return;
      leadership.endAt = at;
    }
  }

  private onQuorum(up: boolean, at: number): void {
    const last = this.quorums.at(-1);
    const isUp = last !== undefined && last.to === Number.POSITIVE_INFINITY;
    if (up && !isUp) this.quorums.push({ from: at, to: Number.POSITIVE_INFINITY });
    if (!up && isUp) last.to = at;
  }
}

function listAt<Item>(map: Map<string, Item[]>, key: string): Item[] {
  let list = map.get(key);
  if (list === undefined) {
    list = [];
    map.set(key, list);
  }
  return list;
}
