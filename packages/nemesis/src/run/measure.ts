/** Figures of a run, from its events alone. */
import type { HistoryEvent } from "@holdfast/checker";
import type { Noise } from "./noise.js";
import type { FaultRecord, LoadFigures } from "./summary.js";
import type { DoneStep } from "./schedule.js";

/** On a busy machine an election takes longer than the protocol: this much longer, ... */
const noiseFactor = 1.5;
/** ... and a process that is due may wait for its turn. */
const noiseMs = 1_500;

export function boundMs(electionTimeouts: number, electionTimeoutMs: number): number {
  return electionTimeouts * electionTimeoutMs * noiseFactor + noiseMs;
}

/** When the probe got its lock, in order. */
export function probeGrants(events: readonly HistoryEvent[], client: string): readonly number[] {
  const calls = new Set<number>();
  const grants: number[] = [];
  for (const event of events) {
    if (event.kind === "call" && event.client === client && event.op.kind === "acquire") calls.add(event.call);
    if (event.kind === "return" && event.result.kind === "acquired" && calls.has(event.call)) grants.push(event.at);
  }
  return grants;
}

export interface FaultContext {
  readonly events: readonly HistoryEvent[];
  readonly grants: readonly number[];
  readonly electionTimeoutMs: number;
  readonly endedAt: number;
  readonly noise: Noise;
}

/** An election follows within so many election timeouts from what has caused it. */
const causeWithin = 5;

/** Elections for which no wait of the machine is to blame. */
export function ownElections(events: readonly HistoryEvent[], from: number, to: number, context: FaultContext): number {
  const { noise, electionTimeoutMs } = context;
  return events.filter(
    ({ kind, at }) =>
      kind === "leader" && at >= from && at < to && !noise.explains(at, causeWithin * electionTimeoutMs),
  ).length;
}

export function faultRecords(steps: readonly DoneStep[], context: FaultContext): readonly FaultRecord[] {
  const { events, grants, electionTimeoutMs, endedAt, noise } = context;
  return steps.map(({ step, text, from, to, bytesPassed }, at): FaultRecord => {
    const until = steps[at + 1]?.from ?? endedAt;
    const counted = step.backFrom === "end" ? (to ?? from) : from;
    const elections = events.filter((event) => event.kind === "leader" && event.at >= from && event.at < until).length;
    const next = steps[at + 1]?.from ?? Number.POSITIVE_INFINITY;
    const waits = waitsFor(grants, counted, Math.max(until, counted), next);
    const outageMs = waits.at(-1) ?? 0;
    const waitedMs = noise.msWithin(counted, counted + Math.min(outageMs, until - counted));
    return {
      kind: step.action.kind,
      text,
      from,
      to,
      outageMs,
      waitP99Ms: percentile(waits, 0.99),
      boundMs: step.backWithin === null ? null : boundMs(step.backWithin, electionTimeoutMs) + waitedMs,
      bytesPassed,
      elections,
      termFrom: termAt(events, from),
      termTo: termAt(events, until),
    };
  });
}

/**
 * Between two grants, as far as they lie after `from` and before `next`, when another fault begins to be the cause; of those that began before
 * `until`. Without another grant and another fault: for ever. Sorted.
 */
function waitsFor(grants: readonly number[], from: number, until: number, next: number): readonly number[] {
  const waits: number[] = [];
  let last = from;
  for (const at of grants) {
    if (at <= from) continue;
    if (last >= until) break;
    waits.push(Math.min(at, next) - last);
    last = at;
  }
  if (last < until) waits.push(next - last);
  return waits.sort((a, b) => a - b);
}

export function gapsAbove(grants: readonly number[], leastMs: number): readonly number[] {
  const gaps = grants.slice(1).map((at, before) => at - (grants[before] ?? at));
  return gaps.filter((gap) => gap > leastMs).sort((a, b) => a - b);
}

export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** The newest term in which somebody had come to lead. */
export function termAt(events: readonly HistoryEvent[], at: number): number {
  let term = 0;
  for (const event of events) if (event.kind === "leader" && event.at <= at) term = Math.max(term, event.term);
  return term;
}

export function loadFigures(events: readonly HistoryEvent[]): LoadFigures {
  const figures = { operations: 0, grants: 0, releases: 0, unknown: 0, losses: 0 };
  for (const event of events) {
    if (event.kind === "call") figures.operations += 1;
    if (event.kind === "state" && event.state === "lost") figures.losses += 1;
    if (event.kind !== "return") continue;
    if (event.result.kind === "acquired") figures.grants += 1;
    if (event.result.kind === "released") figures.releases += 1;
    if (event.result.kind === "unknown") figures.unknown += 1;
  }
  return figures;
}
