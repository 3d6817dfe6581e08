/**
 * The format of histories: what was seen of one run, by whoever ran it (the simulator, scripts against real processes).
 *
 * - `at` is true time: one clock for all, in milliseconds with fractions, never falling from event to event. Events of one moment happened
 *   in the order of the list. The simulator takes its virtual time, a script the monotonic clock of the one machine that runs everything.
 * - A producer emits the kinds of events that it can see. A rule without evidence judges nothing and counts 0 (Verdict.counts), so look at
 *   the counts. What a producer doesn't know of an event is null, never left out. Unknown kinds are refused, unknown fields passed over.
 * - Names of nodes and of clients are unique together: a process is one of them. A client is one life of one process with its library; one
 *   that starts anew is another client.
 * - The log begins at `firstIndex`, where the lock machine is empty, and is told without a gap, or not at all.
 *
 * As NDJSON (ndjson.ts) the first line is the header, every other line an event.
 */
import type { Effect, Grant, LogEntry, Mode, Outcome } from "./log-words.js";

/** Rises when a change would make an older reader judge wrongly. */
export const historyVersion = 1;

export interface HistoryHeader {
  readonly version: typeof historyVersion;
  /** For people: the seed or the script. */
  readonly origin: string;
  readonly nodes: readonly string[];
  /** Minimum election timeout; null: unknown, then no bound that rests on it is judged. */
  readonly electionTimeoutMs: number | null;
  /** Of the first log entry: 1, or what --first-index said. */
  readonly firstIndex: number;
}

export interface History extends HistoryHeader {
  readonly events: readonly HistoryEvent[];
}

export interface Timed {
  readonly at: number;
}

export type HistoryEvent = Timed & (CallEvent | RequestEvent | KeepaliveEvent | LogEvent | NodeEvent | WorldEvent);

export type EventOf<Kind extends HistoryEvent["kind"]> = Extract<HistoryEvent, { readonly kind: Kind }>;

/** What an application asks of its client library. */
export type Operation =
  | {
      readonly kind: "acquire";
      /** At least one. */
      readonly names: readonly string[];
      readonly mode: Mode;
      /** Places of a semaphore for mode "slot", else 0. */
      readonly slots: number;
      /** False: tryAcquire. */
      readonly wait: boolean;
      /** 0: no limit. */
      readonly maxHoldMs: number;
    }
  /** `of`: the call that acquired. From this moment the library says "released". */
  | { readonly kind: "release"; readonly of: number }
  /** The whole client. */
  | { readonly kind: "close" }
  | { readonly kind: "forceRelease"; readonly name: string; readonly token: number }
  /** A linearizable read. */
  | { readonly kind: "inspect"; readonly name: string };

/** How a call ended. A call without a return is an unknown outcome too. */
export type CallResult =
  /** `session` and `request`: of the hold, null when the producer can't see them. */
  | {
      readonly kind: "acquired";
      readonly grants: readonly Grant[];
      readonly session: number | null;
      readonly request: number | null;
    }
  /** tryAcquire's "not free". */
  | { readonly kind: "refused"; readonly code: "lock_held" | "lock_delayed" }
  /** wait_timeout or an abort: the library sees to it that nothing stays behind. */
  | { readonly kind: "gaveUp" }
  /** Of a release: confirmed by the cluster ("released"), done before, or the hold was gone. */
  | { readonly kind: "released"; readonly how: "released" | "alreadyReleased" | "alreadyLost" }
  | { readonly kind: "closed" }
  | { readonly kind: "forced"; readonly ended: number }
  /** Null slot for a lock that is no semaphore; no holders when nobody holds it. */
  | {
      readonly kind: "inspected";
      readonly holders: readonly { readonly token: number; readonly slot: number | null }[];
    }
  /** It surely had no effect. */
  | { readonly kind: "failed"; readonly code: string }
  | { readonly kind: "unknown"; readonly code: string };

export type CallEvent =
  /** `call`: a number of the producer's own, unique in the history. */
  | { readonly kind: "call"; readonly client: string; readonly call: number; readonly op: Operation }
  | { readonly kind: "return"; readonly call: number; readonly result: CallResult }
  /**
   * The library's word on the lock that `call` acquired has changed. With the return of the acquire it says "held"; an event for that is
   * only needed when it said so earlier. `since`, of a loss: the true time from which a fresh look would have said "lost", when the producer
   * can compute it (a stuck process tells late, `at`, what was so since long); else null.
   */
  | {
      readonly kind: "state";
      readonly call: number;
      readonly state: "held" | "jeopardy" | "lost" | "released";
      readonly reason: string | null;
      readonly since: number | null;
    };

/** What a client library and the cluster say to each other, as the library sees it. */
export type RequestEvent =
  /** An openSession leaves. */
  | { readonly kind: "openSent"; readonly client: string; readonly key: string }
  /** The library has learnt of its session. */
  | {
      readonly kind: "sessionOpened";
      readonly client: string;
      readonly session: number;
      readonly key: string;
      readonly ttlMs: number;
    }
  /** `by`: the cluster said so, or the client's own clock (or its closing) did. */
  | {
      readonly kind: "sessionEnded";
      readonly client: string;
      readonly session: number;
      readonly reason: string;
      readonly by: "cluster" | "client";
    }
  /** A numbered command leaves; `call`: the call that it serves (an acquire's own number, its cancel, its release), if any. */
  | {
      readonly kind: "sent";
      readonly client: string;
      readonly session: number;
      readonly request: number;
      readonly call: number | null;
    }
  /** An outcome has reached the library, in whatever message. Rejections and refusals are not told. */
  | {
      readonly kind: "told";
      readonly client: string;
      readonly session: number;
      readonly request: number;
      readonly outcome: Outcome;
    };

export type KeepaliveEvent =
  | { readonly kind: "keepaliveSent"; readonly client: string; readonly session: number; readonly number: number }
  /** A leader has read it; `term`: its term then. */
  | {
      readonly kind: "keepaliveReceived";
      readonly node: string;
      readonly term: number;
      readonly session: number;
      readonly number: number;
    }
  /** A leader gives its word that all keepalives up to `number` have renewed the session (whether or not the word arrives). */
  | {
      readonly kind: "keepaliveAcknowledged";
      readonly node: string;
      readonly term: number;
      readonly session: number;
      readonly number: number;
    }
  /** That word has reached the client. */
  | { readonly kind: "keepaliveTold"; readonly client: string; readonly session: number; readonly number: number }
  /** For so long at most, by the library's word, the lock that `call` acquired in this session is surely held. 0: it calls it held still. */
  | {
      readonly kind: "remaining";
      readonly client: string;
      readonly call: number;
      readonly session: number;
      readonly ms: number;
    };

export type LogEvent =
  /**
   * The first node's commitIndex has reached this entry. Once per index, in order, before anything that follows from it. `hash`: anything that
   * is equal exactly for equal (index, term, content, prefix), such as the chain value. `decidedInTerm`: of an entry proposed by a leader's
   * clock the term it was decided in, else (or if not known) null.
   */
  | {
      readonly kind: "committed";
      readonly index: number;
      readonly term: number;
      readonly hash: string;
      readonly decidedInTerm: number | null;
      readonly entry: LogEntry;
    }
  /** A node's machine has applied it. `effects` are wanted from one node at least; of commands only, for others null. */
  | {
      readonly kind: "applied";
      readonly node: string;
      readonly index: number;
      readonly hash: string;
      readonly stateHash: string | null;
      readonly effects: readonly Effect[] | null;
    }
  /** A received snapshot has taken the place of the node's machine; `index` is the last one in it. */
  | { readonly kind: "installed"; readonly node: string; readonly index: number; readonly stateHash: string | null };

export type NodeEvent =
  /** A life of a node begins: its machine is that of `index` (its own snapshot's; firstIndex - 1 when it is empty). */
  | { readonly kind: "started"; readonly node: string; readonly index: number }
  /** It has won an election. */
  | { readonly kind: "leader"; readonly node: string; readonly term: number }
  /** Its own no-op is applied: its lease clocks begin, it acknowledges keepalives from now on. */
  | { readonly kind: "serving"; readonly node: string; readonly term: number }
  /** It leads no more, or has crashed. */
  | { readonly kind: "deposed"; readonly node: string; readonly term: number }
  /** Its loop was stuck for so long until now while it led, and it has moved its deadlines. */
  | { readonly kind: "stall"; readonly node: string; readonly ms: number }
  /** After the end of the run, at rest: what a node has. `configuration`: any text that is equal for equal ones. */
  | {
      readonly kind: "final";
      readonly node: string;
      readonly commitIndex: number;
      readonly lastApplied: number;
      readonly stateHash: string;
      readonly configuration: string | null;
    };

export type WorldEvent =
  /** A node or a client is killed. */
  | { readonly kind: "crashed"; readonly process: string }
  | { readonly kind: "paused"; readonly process: string }
  | { readonly kind: "resumed"; readonly process: string }
  /**
   * From now on (or until the next such event) this process's clock runs so many times as fast as true time; 1 until told otherwise. Only of
   * the clock that counts: a client's monotonic clock that stands still in a suspend beside one that doesn't is no change.
   */
  | { readonly kind: "clockRate"; readonly process: string; readonly rate: number }
  /** Whether a majority is up and hears one another. Not known, and so nothing promised, until the first of these. */
  | { readonly kind: "quorum"; readonly up: boolean }
  /**
   * A guarded write reached its resource, in the order in which it did. `resource` names the register; `name` and `slot` the lock whose token it
   * bears. `accepted` null: nobody knows.
   */
  | {
      readonly kind: "guardWrite";
      readonly client: string;
      readonly resource: string;
      readonly name: string;
      readonly slot: number | null;
      readonly token: number;
      readonly accepted: boolean | null;
    }
  /** For people: shown beside a violation, judged by nothing. */
  | { readonly kind: "fault"; readonly fault: string };
