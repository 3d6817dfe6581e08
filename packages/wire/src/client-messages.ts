/**
 * What a client and a node say to each other. A frame is one websocket binary message: a msgpack array of messages,
 * each an array that begins with its kind's number. Several messages share a frame; they are handled in order.
 */
import type {
  Effect,
  LockView,
  LossReason,
  Outcome,
  PublicKey,
  Rejection,
  RequestNumber,
  ResumeView,
  SessionId,
  SessionView,
  Token,
  VersionRange,
} from "@holdfast/lock";
import type { Member } from "@holdfast/raft";
import type { Refusal } from "./refusals.js";

export type { Member };

export interface NodeAddress {
  readonly id: string;
  /** "host:port" for clients. */
  readonly client: string;
}

export type ClientMessage =
  /** First on every connection. `clusterId`: the cluster this client belongs to, null before its first welcome. */
  | {
      readonly kind: "hello";
      readonly protocol: number;
      readonly features: readonly string[];
      readonly clusterId: string | null;
      /** The highest log index the client has seen: a leader behind it has lost history. */
      readonly seenIndex: number;
      readonly info: string;
    }
  /**
   * openSession, closeSession, acquire, release, cancel or setInfo. `payload` is the encoded command and becomes the
   * log entry's payload as it is (the gateway decodes and validates it once). `traceparent` is for the node's log.
   */
  | { readonly kind: "command"; readonly payload: Uint8Array; readonly traceparent?: string }
  /**
   * Makes this connection the session's. Answered by `resumed` (or refused: session_gone), after own no-op and quorum
   * round.
   */
  | { readonly kind: "resume"; readonly session: SessionId; readonly key: string }
  | { readonly kind: "keepalive"; readonly session: SessionId; readonly number: number }
  /** Reads, linearizable. `id` is the client's own number for the answer. */
  | { readonly kind: "query"; readonly id: number; readonly query: Query }
  | {
      readonly kind: "forceRelease";
      readonly id: number;
      readonly name: string;
      readonly token: Token;
      readonly principal: string;
      readonly lockDelayMs: number;
    }
  /** Hands leadership to `to`, or to the most up-to-date voter. */
  | { readonly kind: "transfer"; readonly id: number; readonly to: string | null }
  /** Raises the cluster version to the highest that a node runs; refused (incompatible) while others can't follow. */
  | { readonly kind: "finalize"; readonly id: number }
  /** Makes a new key for sequencers. `principal`: who asks, for the log. For nodes with the feature "sequencers". */
  | { readonly kind: "rotateKey"; readonly id: number; readonly principal: string }
  /** One change of members (MembershipChange of raft). `isForced`: though the voters that are up would be no majority. */
  | {
      readonly kind: "changeMembers";
      readonly id: number;
      readonly add: readonly Member[];
      readonly promote: readonly string[];
      readonly remove: readonly string[];
      readonly isForced: boolean;
    }
  /**
   * Tells this connection every change of the lock `name`, or with `isPrefix` of all locks whose names begin with it, from the entry after
   * `after` on; null: from now on. `id`: the client's own number of it, not in use on this connection. For nodes with the feature "watch".
   */
  | {
      readonly kind: "watch";
      readonly id: number;
      readonly name: string;
      readonly isPrefix: boolean;
      readonly after: number | null;
    }
  /** It may still be told what is on its way. */
  | { readonly kind: "unwatch"; readonly id: number };

export type ChangeKind = Extract<Effect, { readonly kind: "changed" }>["change"];

/** What an entry has changed at one lock (the lock machine's effect "changed"). */
export interface LockChange {
  readonly name: string;
  readonly change: ChangeKind;
  readonly token: Token;
  readonly slot: number | null;
}

export type Query =
  | { readonly kind: "inspect"; readonly name: string }
  /** At most `limit` locks in name order, from the first after `after`. */
  | { readonly kind: "list"; readonly prefix: string; readonly after: string; readonly limit: number }
  | { readonly kind: "sessions"; readonly limit: number }
  /** Who belongs to the cluster, as its leader sees them. */
  | { readonly kind: "members" }
  /** What the session's acquire `of` holds at `name`, signed. The session's key shows whose it is. As check and keys for the feature "sequencers". */
  | {
      readonly kind: "sequencer";
      readonly session: SessionId;
      readonly key: string;
      readonly of: RequestNumber;
      readonly name: string;
    }
  /** Whether the holding that a sequencer speaks of goes on. */
  | { readonly kind: "check"; readonly sequencer: string }
  /** The public keys that sequencers are verified with. */
  | { readonly kind: "keys" }
  /** Of the node asked, from its own memory; not linearizable, any role answers. */
  | { readonly kind: "status" };

export interface NodeStatus {
  readonly id: string;
  readonly role: string;
  readonly term: number;
  readonly leader: string | null;
  readonly commitIndex: number;
  readonly lastApplied: number;
  readonly lastIndex: number;
  readonly snapshotIndex: number;
  readonly sessions: number;
  readonly locks: number;
  readonly clusterId: string;
  readonly version: string;
  readonly uptimeMs: number;
  readonly nodes: readonly NodeAddress[];
  /** As far as this node has applied the log. */
  readonly clusterVersion: number;
  /** The cluster versions that it can run. */
  readonly versions: VersionRange;
}

/** outgoing: a voter that a change removes which is not finished yet. */
export type MemberRole = "voter" | "outgoing" | "learner";

export interface MemberView extends Member {
  readonly role: MemberRole;
  /** It has answered the leader within an election timeout, or leads itself. */
  readonly isUp: boolean;
  /** How much of the leader's log, or of the snapshot before it, it holds: a whole number from 0 to 100. */
  readonly percent: number;
  /** A learner: it would be promoted now. */
  readonly isCaughtUp: boolean;
  /** The cluster versions that it can run; null while it isn't linked with the leader. */
  readonly versions: VersionRange | null;
}

export interface MembersView {
  readonly clusterId: string;
  readonly leader: string;
  readonly members: readonly MemberView[];
  /** Ids that never come back. */
  readonly removed: readonly string[];
  /** A change is not finished. */
  readonly isChanging: boolean;
}

/**
 * What the cluster says of a sequencer.
 *
 * | verdict     | it                                                                                          |
 * |-------------|---------------------------------------------------------------------------------------------|
 * | current     | is of a holding that goes on                                                                |
 * | over        | was signed by this cluster, and that holding is over                                        |
 * | forged      | bears a signature that this key never made of it                                            |
 * | unknown_key | is of a key that isn't among this cluster's: another cluster's, or one replaced too long ago |
 * | malformed   | is no text that a cluster makes                                                             |
 */
export type SequencerVerdict = "current" | "over" | "forged" | "unknown_key" | "malformed";

export type QueryResult =
  | { readonly kind: "lock"; readonly index: number; readonly lock: LockView | null }
  | { readonly kind: "locks"; readonly index: number; readonly locks: readonly LockView[]; readonly more: boolean }
  | { readonly kind: "sessions"; readonly index: number; readonly sessions: readonly SessionView[] }
  | { readonly kind: "members"; readonly index: number; readonly members: MembersView }
  /** Null: that acquire holds nothing there. */
  | { readonly kind: "sequencer"; readonly index: number; readonly sequencer: string | null }
  /** `token`: of who holds the same name, or the same slot of it, now; null when nobody does, or when what was asked about can't be trusted. */
  | {
      readonly kind: "check";
      readonly index: number;
      readonly verdict: SequencerVerdict;
      readonly token: Token | null;
    }
  /** The current one first. */
  | { readonly kind: "keys"; readonly index: number; readonly keys: readonly PublicKey[] }
  | { readonly kind: "status"; readonly status: NodeStatus };

export type ServerMessage =
  /** The answer to hello. */
  | {
      readonly kind: "welcome";
      readonly protocol: number;
      readonly features: readonly string[];
      readonly node: string;
      readonly clusterId: string;
      readonly leader: NodeAddress | null;
      readonly nodes: readonly NodeAddress[];
    }
  /** Leadership changed; or this node leads no more (null or another). */
  | { readonly kind: "leader"; readonly leader: NodeAddress | null }
  /** The members have changed; told to those whose hello has the feature "nodes". */
  | { readonly kind: "nodes"; readonly nodes: readonly NodeAddress[] }
  | { readonly kind: "sessionOpened"; readonly key: string; readonly session: SessionId; readonly ttlMs: number }
  | ({ readonly kind: "resumed" } & ResumeView)
  /** All keepalives up to `number` of this session have renewed it. */
  | { readonly kind: "acknowledged"; readonly session: SessionId; readonly number: number }
  /**
   * The answer to a session's command, or a later change of it (grant after waiting, loss). `index`: of the entry that
   * decided it.
   */
  | {
      readonly kind: "outcome";
      readonly session: SessionId;
      readonly request: RequestNumber;
      readonly index: number;
      readonly outcome: Outcome;
    }
  | {
      readonly kind: "rejected";
      readonly session: SessionId;
      readonly request: RequestNumber;
      readonly rejection: Rejection;
    }
  | { readonly kind: "sessionEnded"; readonly session: SessionId; readonly reason: LossReason | null }
  /** A newer connection resumed the session: this one is its no more. */
  | { readonly kind: "superseded"; readonly session: SessionId }
  | { readonly kind: "answer"; readonly id: number; readonly result: QueryResult }
  | { readonly kind: "forced"; readonly id: number; readonly ended: number; readonly holders: number }
  | { readonly kind: "transferred"; readonly id: number; readonly leader: NodeAddress | null }
  /** The answer to finalize: the cluster version now. */
  | { readonly kind: "finalized"; readonly id: number; readonly version: number }
  /** The answer to rotateKey: the id of the key that is current now. */
  | { readonly kind: "keyRotated"; readonly id: number; readonly key: string }
  /** The answer to changeMembers: the configuration that was asked for is committed at `index`. */
  | { readonly kind: "membersChanged"; readonly id: number; readonly index: number }
  /**
   * The answer to watch, or refused. Everything after entry `index` is told from here on. `isGap`: changes up to `index` may be missing;
   * always so when `after` was null. It comes once more, with a gap, for an entry that changes more than `changesPerEntryMax` (limits) of what is
   * watched.
   */
  | { readonly kind: "watching"; readonly id: number; readonly index: number; readonly isGap: boolean }
  /** All that one entry has changed of what is watched, in order. */
  | { readonly kind: "changes"; readonly id: number; readonly index: number; readonly changes: readonly LockChange[] }
  /**
   * Not from the log: nothing was proposed, or its fate is unknown (`unknown_outcome`). One of the three numbers says
   * what was refused; all null: the frame.
   */
  | {
      readonly kind: "refused";
      readonly session: SessionId | null;
      readonly request: RequestNumber | null;
      /** Of a query, forceRelease, transfer, finalize, rotateKey, changeMembers or watch. */
      readonly id: number | null;
      /** Of an openSession. */
      readonly key: string | null;
      readonly refusal: Refusal;
    }
  /**
   * All requests of that session from `from` up to `to` are refused so; told instead of many single ones to those whose hello has the feature
   * "refusedRuns". `to` is at most `messagesPerFrameMax` (limits) - 1 above `from`.
   */
  | {
      readonly kind: "refusedRun";
      readonly session: SessionId;
      readonly from: RequestNumber;
      readonly to: RequestNumber;
      readonly refusal: Refusal;
    };
