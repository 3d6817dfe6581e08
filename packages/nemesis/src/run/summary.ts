/**
 * What is known of a run when it is over: `summary.json` in its folder. Beside it lie `history.ndjson` (the checker's format, with all events
 * that a picture needs) and the nodes' logs. Times are of the machine's monotonic clock, in milliseconds, as in the history.
 */
import type { Verdict } from "@holdfast/checker";

export interface RunSummary {
  readonly scenario: string;
  readonly about: string;
  readonly mode: "proxy" | "netns";
  readonly seed: number | null;
  readonly nodes: readonly string[];
  /** By name; each of their lives is a client of the history, the first of the same name, later ones `NAME.2`, `NAME.3`. */
  readonly workers: readonly string[];
  readonly electionTimeoutMs: number;
  readonly ttlMs: number;
  /** For people, ISO 8601. */
  readonly startedWallTime: string;
  /** The load runs from here ... */
  readonly startedAt: number;
  /** ... to here; then everything is healed, drained and stopped. */
  readonly endedAt: number;
  readonly faults: readonly FaultRecord[];
  readonly load: LoadFigures;
  readonly cluster: ClusterFigures;
  readonly store: StoreFigures;
  readonly log: LogFigures;
  /** Of all gaps between the probe's grants that are longer than its period. */
  readonly unavailability: { readonly maxMs: number; readonly p99Ms: number };
  readonly expectations: readonly Expectation[];
  readonly verdict: Verdict;
  /** All expectations hold, and no rule of the checker is broken. */
  readonly isPassed: boolean;
}

/** One step of the schedule, as it was carried out. */
export interface FaultRecord {
  readonly kind: string;
  /** For people: "cut n1 -> n2, n1 -> n3". */
  readonly text: string;
  readonly from: number;
  /** When it was ended; null: it isn't of a kind that ends. */
  readonly to: number | null;
  /** The longest time without a grant to the probe that began while this fault was the newest. */
  readonly outageMs: number;
  /** Of all waits between two grants in that time, 99 of 100 are no longer. */
  readonly waitP99Ms: number;
  /** In which that must end; what the machine itself kept the nodes waiting is on top. Null: the scenario states none. */
  readonly boundMs: number | null;
  /** Bytes that have passed on the ways that it cut, while they were cut; null when it cuts none. */
  readonly bytesPassed: number | null;
  /** From its beginning to the next one's. */
  readonly elections: number;
  readonly termFrom: number;
  readonly termTo: number;
}

export interface LoadFigures {
  readonly operations: number;
  readonly grants: number;
  readonly releases: number;
  /** Calls whose outcome their clients never learnt. */
  readonly unknown: number;
  readonly losses: number;
}

export interface ClusterFigures {
  readonly elections: number;
  /** Those of them for which no wait of the machine, for a CPU or a disk, is to blame. */
  readonly ownElections: number;
  /** Snapshots that nodes have got from a leader. */
  readonly installs: number;
  /** A node began to serve that didn't serve before. */
  readonly failovers: number;
  readonly termFrom: number;
  readonly termTo: number;
  readonly committed: number;
}

/** What the rules that rest on the committed log could look at. */
export interface LogFigures {
  /**
   * The node whose log tells what was committed, from the first entry on; "n1 and others": completed by what these wrote. Null: nobody's is
   * known so far back, and these rules judged nothing.
   */
  readonly toldBy: string | null;
  /** Of nodes that have a snapshot in the place of their first entries. */
  readonly snapshots: readonly {
    readonly node: string;
    /** The last entry in it. */
    readonly index: number;
    /** What this node had written before is known still; else its state at this entry was compared, and not the entries up to it. */
    readonly isWhole: boolean;
  }[];
}

export interface StoreFigures {
  readonly guardedWrites: number;
  /** Stale writes that the guard refused. */
  readonly refused: number;
  readonly lostGuarded: number;
  readonly unguardedWrites: number;
  readonly lostUnguarded: number;
}

export interface Expectation {
  readonly text: string;
  readonly found: string;
  readonly isMet: boolean;
}
