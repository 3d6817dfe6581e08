/**
 * The vocabulary of the consensus core. Words are those of Ongaro's thesis; see docs/glossary.md.
 */

export type Brand<T, Name extends string> = T & { readonly __brand: Name };

/** A node's name in the configuration, e.g. "n1". */
export type NodeId = string;

/** An election term (thesis 3.3). Starts at 0, only rises; a safe integer. */
export type Term = Brand<number, "Term">;

/** The index of a log entry (thesis 3.5). The first entry of a new cluster has index 1; a safe integer. */
export type Index = Brand<number, "Index">;

/** A point in a log. One value with one comparison (thesis 3.6.1). */
export interface Position {
  readonly term: Term;
  readonly index: Index;
}

/** A voter is (id, instance): an id with another instance is another node, whose promises are unknown. */
export interface Member {
  readonly id: NodeId;
  /** Drawn at random at the node's first start. */
  readonly instance: string;
  /** Advertised address for peers, "host:port". */
  readonly peer: string;
  /** Advertised address for clients, "host:port". */
  readonly client: string;
}

/**
 * Who votes. `outgoing` is empty outside a joint change (thesis 4.3); in one it holds the former voters, and a decision needs a majority
 * of `voters` and a majority of `outgoing`. A voter that leaves is in `outgoing` alone while the change is joint, and in `removed` after it.
 */
export interface Configuration {
  readonly voters: readonly Member[];
  readonly outgoing: readonly Member[];
  readonly learners: readonly Member[];
  /** Ids that were removed: they never come back. */
  readonly removed: readonly NodeId[];
}

/**
 * What is to become of the members, in one request: any set of voters may follow on any other (thesis 4.3). An id is named once. Who is
 * added becomes a learner: it gets entries and snapshots and has no vote. To replace a node, add the new one, wait until it has caught up,
 * then promote it and remove the old one in one change.
 */
export interface MembershipChange {
  readonly add: readonly Member[];
  /** Learners that get a vote. */
  readonly promote: readonly NodeId[];
  /** Voters or learners; their ids never come back. */
  readonly remove: readonly NodeId[];
}

export type ChangeRefusalCode =
  /** This node doesn't lead. */
  | "not_leader"
  /** This node is handing its leadership over. */
  | "transfer_running"
  /** No entry of this leader's own term is committed yet: try again at once (Ongaro's correction of thesis 4.1). */
  | "not_ready"
  /** Another change is not finished. One at a time. */
  | "change_in_progress"
  /** It names nobody. */
  | "empty_change"
  /** It names this id twice. */
  | "named_twice"
  /** This id was removed: it never comes back. A node that returns gets a new one. */
  | "removed_id"
  /** To be added, or promoted, but it is that already. */
  | "already_member"
  /** To be added, but this id is a member with another instance. */
  | "instance_differs"
  /** To be added, but its instance is another member's: a copied directory. */
  | "instance_taken"
  /** To be added, but one of its addresses is another member's. */
  | "address_taken"
  /** To be added, but the codec can't write it down. The host's checks should have caught it. */
  | "invalid_member"
  /** To be promoted or removed, but no member. */
  | "unknown_member"
  /** To be promoted, but its log is too far behind, or it has not answered within an election timeout. See PeerStatus.isCaughtUp. */
  | "not_caught_up"
  /** Nobody would vote any more. */
  | "no_voters"
  /** See membershipBounds. */
  | "too_many_voters"
  | "too_many_members"
  | "too_many_removed"
  /**
   * This voter of the new configuration has not answered within an election timeout, or holds no entry of this leader's term yet; and with it
   * too many for a majority. Passed over with `isForced`.
   */
  | "would_lose_quorum";

/**
 * What became of a changeMembers event, named by its id: refused; or appended and then, in this leadership, completed; or unknown: this
 * leadership ended first, and the change may be completed by a later leader or be gone. Every id ends once, with all but `appended`.
 */
export type ChangeOutcome =
  /** Nothing was changed. `member` is whom the code speaks of, if of one. */
  | { readonly kind: "refused"; readonly id: number; readonly code: ChangeRefusalCode; readonly member: NodeId | null }
  /** Its first entry stands in the log at `index`, not committed. */
  | { readonly kind: "appended"; readonly id: number; readonly index: Index }
  /** The configuration that was asked for is committed at `index`. */
  | { readonly kind: "completed"; readonly id: number; readonly index: Index }
  | { readonly kind: "unknown"; readonly id: number };

export type EntryKind = "noop" | "command" | "configuration";

/** One log entry. `chain` is crc32c over (index, term, previous entry's chain, kind, payload): it vouches for the whole prefix. */
export interface Entry {
  readonly index: Index;
  readonly term: Term;
  readonly kind: EntryKind;
  readonly payload: Uint8Array;
  readonly chain: number;
}

/** Where a log begins: the state before its first entry. A new cluster's base has index 0 (or what --first-index says, less 1). */
export interface LogBase {
  readonly position: Position;
  readonly chain: number;
  readonly configuration: Configuration;
}

/** What a node must not forget (thesis figure 3.1). */
export interface HardState {
  readonly term: Term;
  readonly votedFor: NodeId | null;
}

/** Encodings that the core needs but does not own; implemented by @holdfast/wire. */
export interface EntryCodec {
  chainFor(previousChain: number, index: Index, term: Term, kind: EntryKind, payload: Uint8Array): number;
  encodeConfiguration(configuration: Configuration): Uint8Array;
  /** Throws on bytes that are no configuration. */
  decodeConfiguration(payload: Uint8Array): Configuration;
}

/** Seeded or real; the core never draws from anywhere else. Returns an integer from 0 to `below` - 1. */
export interface Random {
  integer(below: number): number;
}

/** Messages between cores. `term` is the sender's term, but for pre-votes: there it is the term asked about. */
export type Message =
  | { readonly kind: "preVote"; readonly term: Term; readonly last: Position }
  /** A granted answer repeats the asked term; a refusal carries the refuser's own term, so a node with an old term learns (etcd #8243). */
  | { readonly kind: "preVoteAnswer"; readonly term: Term; readonly granted: boolean }
  | { readonly kind: "vote"; readonly term: Term; readonly last: Position; readonly transfer: boolean }
  | { readonly kind: "voteAnswer"; readonly term: Term; readonly granted: boolean }
  | {
      readonly kind: "append";
      readonly term: Term;
      readonly previous: Position;
      /** The leader's chain value at `previous`: another value at an equal position is divergence. */
      readonly previousChain: number;
      readonly entries: readonly Entry[];
      readonly commitIndex: Index;
    }
  /** `matchIndex` is the last index verified by the append that is answered, and durable at the sender when this leaves. */
  | { readonly kind: "appendAccepted"; readonly term: Term; readonly matchIndex: Index }
  /** `rejected` is the previous index that didn't match; `hint` a position that may (term skipping). */
  | { readonly kind: "appendRejected"; readonly term: Term; readonly rejected: Index; readonly hint: Position }
  /** `commitIndex` is min(matchIndex of the receiver, commitIndex of the leader). `round` numbers quorum rounds (thesis 6.4). */
  | { readonly kind: "heartbeat"; readonly term: Term; readonly commitIndex: Index; readonly round: number }
  | { readonly kind: "heartbeatAnswer"; readonly term: Term; readonly round: number }
  | {
      readonly kind: "snapshotChunk";
      readonly term: Term;
      readonly base: LogBase;
      /** Number of this chunk, from 0. */
      readonly chunk: number;
      readonly bytes: Uint8Array;
      readonly done: boolean;
    }
  /** `next` is the number of the chunk wanted next; `installed` says that the whole snapshot is durable and in use. */
  | {
      readonly kind: "snapshotAnswer";
      readonly term: Term;
      readonly snapshotIndex: Index;
      readonly next: number;
      readonly installed: boolean;
    }
  | { readonly kind: "timeoutNow"; readonly term: Term };

export interface Outbound {
  readonly to: NodeId;
  readonly message: Message;
}

/** A proposal. `id` is the proposer's own number; it comes back only if the proposal is refused. */
export interface Proposal {
  readonly id: number;
  /** Kept as it is, not copied: it must not change any more. */
  readonly payload: Uint8Array;
  /** From the reserve: timed entries, release, cancel and closeSession pass when acquires meet `overloaded`. */
  readonly reserved: boolean;
  /** The term in which a leader decided it; the core drops it in any other. Null: any term. */
  readonly decidedInTerm: Term | null;
}

/** Everything that can happen to the core. `nowMs` is monotonic, and never falls from event to event. */
export type Event =
  /** Due when `nextDeadlineMs()` has come, after the other events that wait. Only here time has effects. */
  | { readonly kind: "tick"; readonly nowMs: number }
  | { readonly kind: "received"; readonly nowMs: number; readonly from: NodeId; readonly message: Message }
  | { readonly kind: "propose"; readonly nowMs: number; readonly proposal: Proposal }
  /** Asks for a quorum round that begins now or later; answered by `Output.confirmed` or `Output.unconfirmed`. */
  | { readonly kind: "confirm"; readonly nowMs: number; readonly id: number }
  /**
   * The disk holds everything up to and including output `number`. An output with nothing to write may be named, be covered by a later
   * number, or never be mentioned.
   */
  | { readonly kind: "persisted"; readonly nowMs: number; readonly number: number }
  /** The link to a peer closed without a goodbye and its reconnect was refused: its process is gone. */
  | { readonly kind: "peerGone"; readonly nowMs: number; readonly peer: NodeId }
  /** The link to a peer was lost or made anew: appends in flight may be lost, probe again. */
  | { readonly kind: "peerReset"; readonly nowMs: number; readonly peer: NodeId }
  /** Hand leadership to `to`, or to the most up-to-date voter; in a joint change to a voter of the new set. */
  | { readonly kind: "transfer"; readonly nowMs: number; readonly to: NodeId | null }
  /** Change the members; answered by `Output.changes`. `isForced` passes over the check for a quorum of nodes that are up, nothing else. */
  | {
      readonly kind: "changeMembers";
      readonly nowMs: number;
      readonly id: number;
      readonly change: MembershipChange;
      readonly isForced: boolean;
    }
  /** The state machine's snapshot at `base` (from Raft.baseAt) is durable, and so is the log up to it; entries up to it may go. */
  | { readonly kind: "snapshotTaken"; readonly nowMs: number; readonly base: LogBase }
  /** Answers `Output.snapshotReads`. Null bytes: that snapshot is gone, begin anew with the newest. */
  | {
      readonly kind: "snapshotRead";
      readonly nowMs: number;
      readonly to: NodeId;
      readonly base: LogBase;
      readonly chunk: number;
      readonly bytes: Uint8Array | null;
      readonly done: boolean;
    };

/** learner: a follower without a vote; so is a node that was removed. */
export type RoleName = "follower" | "preCandidate" | "candidate" | "leader" | "learner";

/**
 * A chunk to store. Chunk 0 begins a snapshot anew and makes void what came of an unfinished one. With the batch that has the `done` chunk
 * the snapshot takes the place of the whole log: entries up to its base count no more, and the same batch's `truncateFrom` removes what may
 * lie beyond. The state machine follows with `Output.install`. No other chunk comes before that output.
 */
export interface IncomingChunk {
  readonly base: LogBase;
  readonly chunk: number;
  readonly bytes: Uint8Array;
  readonly done: boolean;
}

export interface RoleChange {
  readonly role: RoleName;
  readonly term: Term;
  readonly leader: NodeId | null;
  /** One short sentence for the log: "no heartbeat for 500 ms", "won 2 of 3 votes", "disk write overdue". */
  readonly reason: string;
}

/**
 * What the host must do, in this order: `send`; persist (hardState, truncateFrom, entries, chunk) as one synced batch and then
 * `sendAfterPersist`; apply `committed`. Taken with takeOutput(), which empties it.
 */
export interface Output {
  /** Rises by one with each output taken. */
  readonly number: number;
  readonly hardState: HardState | null;
  /** Entries from here on are gone (before `entries` are appended). */
  readonly truncateFrom: Index | null;
  readonly entries: readonly Entry[];
  /** When it is `done`, `entries` is empty. */
  readonly chunk: IncomingChunk | null;
  /** Only heartbeats (first), pre-votes, the answers to both, appends, timeoutNow, and snapshot chunks (last). */
  readonly send: readonly Outbound[];
  readonly sendAfterPersist: readonly Outbound[];
  /** In log order, each exactly once. */
  readonly committed: readonly Entry[];
  /** Replace the state machine by the stored snapshot with this base, before applying `committed`. Such an output has no chunk. */
  readonly install: LogBase | null;
  readonly confirmed: readonly { readonly id: number; readonly index: Index }[];
  readonly unconfirmed: readonly number[];
  readonly refused: readonly { readonly id: number; readonly code: "not_leader" | "overloaded" }[];
  readonly snapshotReads: readonly { readonly to: NodeId; readonly base: LogBase; readonly chunk: number }[];
  /** In order; usually none or one. */
  readonly roleChanges: readonly RoleChange[];
  /** The configuration in force, when it changed. */
  readonly configuration: Configuration | null;
  /** What became of changeMembers events, in order. */
  readonly changes: readonly ChangeOutcome[];
  /**
   * True once: this node was removed, that is committed, and it doesn't lead (any more). It neither votes nor campaigns from now on; its
   * process has nothing left to do.
   */
  readonly isRemoved: boolean;
}

export interface RaftOptions {
  readonly id: NodeId;
  /** Minimum election timeout; real ones are drawn from [this, 2 x this). */
  readonly electionTimeoutMsMin: number;
  readonly heartbeatMs: number;
  /** A leader with a write overdue for this long steps down. */
  readonly diskStallMs: number;
  readonly limits: RaftLimits;
}

/** Each with its reason in limits of @holdfast/wire and docs/configuration.md. */
export interface RaftLimits {
  readonly uncommittedBytesMax: number;
  /** On top, for reserved proposals. */
  readonly reservedBytesMax: number;
  readonly appendsInFlightMax: number;
  readonly appendBytesMax: number;
  readonly appendEntriesMax: number;
  readonly committedBytesPerOutputMax: number;
  /** Entries kept behind a snapshot for slow followers. */
  readonly trailingEntriesMax: number;
}

/** What storage gives back at a start. */
export interface Restored {
  readonly hardState: HardState;
  /** The newest complete snapshot's base, or the cluster's first base. */
  readonly base: LogBase;
  /** Without a gap; those up to the base are passed over. */
  readonly entries: readonly Entry[];
}

/** What a leader knows of a peer. */
export interface PeerStatus {
  readonly id: NodeId;
  /** leaving: it was removed, and is sent the log for a while longer so that it learns of it. Outgoing voters of a joint change are voters. */
  readonly membership: "voter" | "learner" | "leaving";
  readonly state: "probe" | "replicate" | "snapshot";
  readonly matchIndex: Index;
  readonly nextIndex: Index;
  /** Entries of the leader's log that the peer is not known to hold. */
  readonly behindEntries: number;
  /** Whether it would be promoted, if it is a learner: it answers, holds an entry of this term, and is at most promotionLagMax entries behind. */
  readonly isCaughtUp: boolean;
  /** Appends sent and not answered. */
  readonly inFlight: number;
  readonly heardMsAgo: number;
  /** The snapshot on its way to the peer, and the chunk that it has come to. */
  readonly snapshot: { readonly index: Index; readonly chunk: number } | null;
}

/** For people, metrics and checks. */
export interface RaftStatus {
  readonly id: NodeId;
  readonly term: Term;
  readonly votedFor: NodeId | null;
  readonly role: RoleName;
  readonly leader: NodeId | null;
  readonly commitIndex: Index;
  readonly lastApplied: Index;
  readonly last: Position;
  readonly lastChain: number;
  readonly persistedIndex: Index;
  /** The hard state that is durable. */
  readonly persisted: HardState;
  /** Where the log in memory begins. */
  readonly logBase: Position;
  /** The newest complete snapshot. */
  readonly snapshot: Position;
  /** A received snapshot has taken the log's place and is not durable yet. */
  readonly isInstalling: boolean;
  readonly isDiskOverdue: boolean;
  /** Of a leader; else 0. */
  readonly uncommittedBytes: number;
  readonly transferTo: NodeId | null;
  /** The last one in the log, committed or not. */
  readonly configuration: Configuration;
  /** Where it stands in the log; where the log begins, if no entry since then changes it. */
  readonly configurationIndex: Index;
  /** A change is not finished: the configuration in force is joint, or not known to be committed. */
  readonly isChanging: boolean;
  /** This node was removed, that is committed, and it doesn't lead (any more). */
  readonly isRemoved: boolean;
  /** Of a leader; else empty. */
  readonly peers: readonly PeerStatus[];
}

export interface RaftParts {
  readonly random: Random;
  readonly codec: EntryCodec;
}
