/** Collects what all processes of a run report, and makes one history of it. */
import { historyVersion } from "@holdfast/checker";
import type { History, HistoryEvent } from "@holdfast/checker";
import type { Entry } from "@holdfast/raft";
import { machineMs } from "../clock.js";
import type { UntimedEvent } from "../worker/protocol.js";
import { acknowledgements } from "./acknowledgements.js";
import type { AcknowledgedReport } from "./acknowledgements.js";
import { appliedBy, replay } from "./committed-log.js";
import type { FinalState, NodeLog, Replayed } from "./committed-log.js";
import { commitTimes } from "./commit-times.js";
import type { CommitSeen } from "./commit-times.js";
import { guardWrites } from "./guard-writes.js";
import type { GuardedReport } from "./guard-writes.js";

export interface Evidence {
  readonly origin: string;
  readonly nodes: readonly string[];
  readonly electionTimeoutMs: number;
  readonly finals: readonly FinalState[];
  /** Of nodes that could be read. */
  readonly logs: readonly NodeLog[];
  readonly accepted: ReadonlyMap<string, number>;
}

export class Recorder {
  readonly events: HistoryEvent[] = [];
  readonly guarded: GuardedReport[] = [];
  private readonly acknowledged: AcknowledgedReport[] = [];
  private readonly seen: CommitSeen[] = [];

  /** Now, or when its own process says that it was. */
  event(event: UntimedEvent, at: number = machineMs()): void {
    this.events.push({ ...event, at });
  }

  guardedOperation(report: GuardedReport): void {
    this.guarded.push(report);
  }

  acknowledgedBy(report: AcknowledgedReport): void {
    this.acknowledged.push(report);
  }

  commitSeen(index: number): void {
    const last = this.seen.at(-1)?.index ?? 0;
    if (index > last) this.seen.push({ at: machineMs(), index });
  }

  /** When everything has stopped. */
  history(evidence: Evidence): History {
    const { origin, nodes, electionTimeoutMs } = evidence;
    const writes = guardWrites(this.guarded, evidence.accepted);
    const words = acknowledgements(this.acknowledged, this.events);
    const events = [...this.events, ...writes, ...words].sort((a, b) => a.at - b.at);
    const endAt = machineMs();
    const commitIndex = Math.max(0, ...evidence.finals.map((final) => final.commitIndex));
    const teller = tellerOf(evidence.logs, commitIndex);
    const snapshots = new Set(evidence.logs.map(({ baseIndex }) => baseIndex));
    const replayed = teller === null ? [] : replay(teller.entries, commitIndex, snapshots);
    const times = commitTimes(replayed, this.seen, events, endAt);
    const committed = replayed.map(({ event }, at): HistoryEvent => ({ ...event, at: times[at] ?? endAt }));
    const after = atTheEnd(evidence, teller === null ? null : { node: teller.node, replayed });
    const last = after.map((event): HistoryEvent => ({ ...event, at: endAt }));
    const all = [...merged(committed, events), ...last];
    return { version: historyVersion, origin, nodes, electionTimeoutMs, firstIndex: 1, events: all };
  }
}

/** Whose log tells what was committed: one that is known from the first entry to the last. Null: there is none. */
export function tellerOf(
  logs: readonly NodeLog[],
  commitIndex: number,
): { readonly node: string; readonly entries: readonly Entry[]; readonly isOwn: boolean } | null {
  for (const { node, entries, isOwn } of logs) {
    if (entries !== null && (entries.at(-1)?.index ?? 0) >= commitIndex) return { node, entries, isOwn };
  }
  return null;
}

/** What each node has in its directory, and what it has come to. Without a committed log to hold them against, single entries say nothing. */
function atTheEnd(
  { finals, logs }: Evidence,
  told: { readonly node: string; readonly replayed: readonly Replayed[] } | null,
): UntimedEvent[] {
  return finals.flatMap(({ node, commitIndex, lastApplied }) => {
    const log = logs.find((each) => each.node === node);
    if (log === undefined) return [];
    const events = appliedBy(log, lastApplied, told?.node === node ? told.replayed : null);
    const judged = told === null ? events.filter(({ kind }) => kind !== "applied") : events;
    const { stateHash } = log;
    return [...judged, { kind: "final", node, commitIndex, lastApplied, stateHash, configuration: null }];
  });
}

/** Of one moment, a commit comes first: what else happened then may follow from it. */
function merged(committed: readonly HistoryEvent[], events: readonly HistoryEvent[]): HistoryEvent[] {
  const all: HistoryEvent[] = [];
  let next = 0;
  for (const event of events) {
    for (let entry = committed[next]; entry !== undefined && entry.at <= event.at; entry = committed[next]) {
      all.push(entry);
      next += 1;
    }
    all.push(event);
  }
  return [...all, ...committed.slice(next)];
}
