/** Collects what all processes of a run report, and makes one history of it. */
import { historyVersion } from "@holdfast/checker";
import type { History, HistoryEvent } from "@holdfast/checker";
import { machineMs } from "../clock.js";
import type { UntimedEvent } from "../worker/protocol.js";
import { appliedBy, replay } from "./committed-log.js";
import type { NodeLog, Replayed } from "./committed-log.js";
import { commitTimes } from "./commit-times.js";
import type { CommitSeen } from "./commit-times.js";
import { guardWrites } from "./guard-writes.js";
import type { GuardedReport } from "./guard-writes.js";

/** Of a node at rest, after the run. */
export interface FinalState {
  readonly node: string;
  readonly commitIndex: number;
  readonly lastApplied: number;
}

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
  private readonly seen: CommitSeen[] = [];

  /** Now, or when its own process says that it was. */
  event(event: UntimedEvent, at: number = machineMs()): void {
    this.events.push({ ...event, at });
  }

  guardedOperation(report: GuardedReport): void {
    this.guarded.push(report);
  }

  commitSeen(index: number): void {
    const last = this.seen.at(-1)?.index ?? 0;
    if (index > last) this.seen.push({ at: machineMs(), index });
  }

  /** When everything has stopped. */
  history(evidence: Evidence): History {
    const { origin, nodes, electionTimeoutMs } = evidence;
    const events = [...this.events, ...guardWrites(this.guarded, evidence.accepted)].sort((a, b) => a.at - b.at);
    const endAt = machineMs();
    const commitIndex = Math.max(0, ...evidence.finals.map((final) => final.commitIndex));
    const entries = evidence.logs.find((log) => (log.entries?.at(-1)?.index ?? 0) >= commitIndex)?.entries ?? null;
    const replayed = entries === null ? [] : replay(entries, commitIndex);
    const times = commitTimes(replayed, this.seen, events, endAt);
    const committed = replayed.map(({ event }, at): HistoryEvent => ({ ...event, at: times[at] ?? endAt }));
    const after = replayed.length === 0 ? [] : atTheEnd(evidence, replayed);
    const last = after.map((event): HistoryEvent => ({ ...event, at: endAt }));
    const all = [...merged(committed, events), ...last];
    return { version: historyVersion, origin, nodes, electionTimeoutMs, firstIndex: 1, events: all };
  }
}

/** What each node has in its directory, and what it has come to. */
function atTheEnd({ finals, logs }: Evidence, replayed: readonly Replayed[]): UntimedEvent[] {
  const teller = logs.find((log) => log.entries !== null)?.node;
  return finals.flatMap(({ node, commitIndex, lastApplied }) => {
    const log = logs.find((each) => each.node === node);
    if (log === undefined || log.entries === null) return [];
    const events = appliedBy(log, lastApplied, node === teller ? replayed : null);
    const stateHash = replay(log.entries, lastApplied).at(-1)?.stateHash ?? "";
    return [...events, { kind: "final", node, commitIndex, lastApplied, stateHash, configuration: null }];
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
