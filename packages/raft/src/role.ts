/** What belongs to a role and ends with it. Term, vote, log and commitIndex outlive roles: they are in Core. */
import type { Progress } from "./progress.js";
import type { Index, LogBase, NodeId } from "./types.js";

/** A snapshot that is being received from this term's leader. */
interface IncomingSnapshot {
  readonly base: LogBase;
  /** The chunk wanted next. */
  next: number;
}

export interface Follower {
  readonly kind: "follower";
  readonly leader: NodeId | null;
  /** When the leader was last heard. */
  heardMs: number;
  incoming: IncomingSnapshot | null;
}

export interface PreCandidate {
  readonly kind: "preCandidate";
  readonly ballots: Map<NodeId, boolean>;
}

export interface Candidate {
  readonly kind: "candidate";
  /** The own ballot is added when it is durable. */
  readonly ballots: Map<NodeId, boolean>;
}

/** Quorum rounds (thesis 6.4): one in flight, one gathering. A number is never used twice in a term. */
interface Rounds {
  /** The newest round begun. */
  round: number;
  inFlight: { readonly round: number; readonly index: Index; readonly ids: readonly number[] } | null;
  gathering: number[];
}

/**
 * catchingUp: the target lacks entries. told: it was sent timeoutNow. ending: its time is over; nothing is accepted or confirmed before a
 * quorum round that began then shows that it did not win.
 */
interface Transfer {
  readonly target: NodeId;
  readonly deadlineMs: number;
  phase: "catchingUp" | "told" | "ending";
}

export interface Leader {
  readonly kind: "leader";
  /** The first entry of this term: nothing is read, and nothing older is counted as committed, before it is committed. */
  readonly noopIndex: Index;
  readonly peers: Map<NodeId, Progress>;
  readonly rounds: Rounds;
  transfer: Transfer | null;
  /** The id of the changeMembers event whose configuration is on its way to being committed. */
  change: number | null;
  heartbeatDueMs: number;
  /** Bytes of entries after commitIndex. */
  uncommittedBytes: number;
}

export type Role = Follower | PreCandidate | Candidate | Leader;
