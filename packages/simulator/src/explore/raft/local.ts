/**
 * One node of the explored cluster: core, disk, and the writes between them. Equal states of a node are one object, and what an event
 * makes of it is worked out once, however many states of the cluster it is met in. A core can't be copied: it is made anew from its disk,
 * and its events since then are played again.
 */
import type { Entry, Event, HardState, LogBase, NodeId, Output, Raft, RaftStatus, RoleName } from "@holdfast/raft";
import type { Envelope } from "./network.js";

export interface Disk {
  readonly hardState: HardState;
  readonly entries: readonly Entry[];
}

/** An output on its way to the disk. */
export type Pending = Pick<Output, "number" | "hardState" | "truncateFrom" | "entries" | "sendAfterPersist">;

export interface LocalState {
  readonly number: number;
  readonly at: number;
  /** How to make the core anew: what it was started from, and what has happened to it since. Null: its output was taken. */
  readonly restored: Disk;
  readonly moves: readonly (Event | null)[];
  readonly nowMs: number;
  readonly disk: Disk;
  readonly pending: readonly Pending[];
  /** Who has granted a pre-vote to this life, for the term after its own. */
  readonly grants: readonly NodeId[];
  /** Events were stepped whose output is not taken. */
  readonly isHeld: boolean;
  /** The rest follows from the core, and is kept at hand. */
  readonly role: RoleName;
  readonly term: number;
  readonly leader: NodeId | null;
  readonly isSticky: boolean;
  readonly heardMs: number | null;
  readonly deadlineMs: number;
  readonly commitIndex: number;
  readonly log: readonly Entry[];
  readonly transitions: Map<number, Transition>;
  /** By number of an inbox. */
  readonly reactions: Map<number, Reactions>;
}

/** What can happen to a node. */
export type LocalAction =
  | { readonly kind: "deliver"; readonly envelope: Envelope; readonly isLate: boolean }
  | { readonly kind: "electionTimeout" }
  | { readonly kind: "heartbeatDue" }
  | { readonly kind: "quorumLost" }
  | { readonly kind: "propose" }
  | { readonly kind: "persist"; readonly count: number }
  | { readonly kind: "crash"; readonly count: number }
  | { readonly kind: "peerGone"; readonly peer: number }
  | { readonly kind: "peerReset"; readonly peer: number };

/** What came of it. */
export interface Transition {
  readonly next: LocalState;
  readonly sent: readonly Envelope[];
  readonly violation: string | null;
  /** Out of scope: a term or an entry too many. */
  readonly isCut: boolean;
  /** The term that the node has begun to lead in. */
  readonly leads: number | null;
  readonly applied: readonly Entry[];
}

/** All that can happen to a node with what may arrive at it, but for what is counted (see Cluster). */
export interface Reactions {
  /** What it sends without changing itself: to know it sent loses nothing. */
  readonly sent: readonly Envelope[];
  readonly steps: readonly { readonly local: LocalAction; readonly transition: Transition }[];
}

/** What is seen of a core between two events. */
export interface Look {
  readonly raft: Raft;
  readonly status: RaftStatus;
}

export function writeTo(disk: Disk, output: Pending, base: LogBase): Disk {
  const { hardState, truncateFrom, entries } = output;
  if (hardState !== null && hardState.term < disk.hardState.term) throw new Error("the stored term never falls");
  let stored = disk.entries;
  if (truncateFrom !== null) {
    if (truncateFrom > base.position.index + stored.length) throw new Error("there is something to truncate");
    stored = stored.filter((entry) => entry.index < truncateFrom);
  }
  for (const entry of entries) {
    if (entry.index !== base.position.index + stored.length + 1) throw new Error("the stored log has no gap");
    stored = [...stored, entry];
  }
  return { hardState: hardState ?? disk.hardState, entries: stored };
}

export function isWrite({ hardState, truncateFrom, entries }: Pending): boolean {
  return hardState !== null || truncateFrom !== null || entries.length > 0;
}

/** What a message that waited for the disk promises is on the disk when it leaves. */
export function brokenPromise(
  disk: Disk,
  id: NodeId,
  { to, message }: Output["sendAfterPersist"][number],
): string | null {
  const { hardState, entries } = disk;
  // A granted pre-vote names the term that was asked for, and promises nothing: it only came with what had to be written.
  if (message.kind === "preVoteAnswer" && message.granted) return null;
  if (hardState.term < message.term) return `a ${message.kind} of a term that is not durable leaves ${id}`;
  // In a batch of several outputs the term may have moved on: then the promise was kept as long as it bound.
  if (hardState.term > message.term) return null;
  if (message.kind === "vote" && hardState.votedFor !== id) return `the vote of ${id} for itself is durable`;
  if (message.kind === "voteAnswer" && message.granted && hardState.votedFor !== to)
    return `the vote of ${id} for ${to} is durable`;
  if (message.kind === "appendAccepted" && entries.length < message.matchIndex) {
    return `${id} acknowledges ${message.matchIndex} entries with ${entries.length} durable`;
  }
  return null;
}

const early: ReadonlySet<string> = new Set([
  "heartbeat",
  "heartbeatAnswer",
  "preVote",
  "preVoteAnswer",
  "append",
  "timeoutNow",
  "snapshotChunk",
]);

/** What leaves before the disk promises nothing that a disk must hold. */
export function brokenEarly(id: NodeId, output: Output): string | null {
  for (const { message } of output.send)
    if (!early.has(message.kind)) return `a ${message.kind} leaves ${id} before the disk`;
  return null;
}

/** Who grants a pre-vote would grant the vote: the term is new to it, the log is as good as its own, and it hears no leader. */
export function brokenPreVote(before: LocalState, action: LocalAction, sent: readonly Envelope[]): string | null {
  if (before.isHeld || action.kind !== "deliver" || action.envelope.message.kind !== "preVote") return null;
  if (!sent.some(({ message }) => message.kind === "preVoteAnswer" && message.granted)) return null;
  const { term, last } = action.envelope.message;
  if (term <= before.term) return "a pre-vote is granted for a new term only";
  if (before.isSticky && !action.isLate) return "nobody who hears a leader grants a pre-vote";
  const ownTerm = before.log.at(-1)?.term ?? 0;
  const isBehind = last.term < ownTerm || (last.term === ownTerm && last.index < before.log.length);
  return isBehind ? "no pre-vote is granted to a log that is behind" : null;
}

/** A number for each action of a node. */
export function codeOf(action: LocalAction): number {
  switch (action.kind) {
    case "electionTimeout":
      return 0;
    case "heartbeatDue":
      return 1;
    case "quorumLost":
      return 2;
    case "propose":
      return 3;
    case "persist":
      return 0x10 + small(action.count);
    case "crash":
      return 0x20 + small(action.count);
    case "peerGone":
      return 0x30 + small(action.peer);
    case "peerReset":
      return 0x40 + small(action.peer);
    case "deliver":
      return 0x50 + 2 * action.envelope.number + (action.isLate ? 1 : 0);
  }
}

function small(count: number): number {
  if (count > 0xf) throw new Error("more outputs wait for the disk than the explorer can tell apart");
  return count;
}
