/** The sending side of replication: what peers are sent, what their answers mean, and what is committed by them. */
import { assert } from "./assert.js";
import type { Core } from "./core.js";
import { entryBytes, noEntries } from "./log.js";
import { indexAfter, minIndex } from "./position.js";
import type { Progress } from "./progress.js";
import { quorumValueFor } from "./quorum.js";
import type { Leader } from "./role.js";
import { beginSnapshot } from "./snapshot-sending.js";
import type { Entry, Index, Message, Proposal, Term } from "./types.js";

type MessageOf<Kind extends Message["kind"]> = Message & { readonly kind: Kind };

/** Heartbeats that a peer may answer while it owes the answer to an append, before it is asked where it stands. */
const patienceHeartbeats = 2;

export function onPropose(core: Core, proposal: Proposal): void {
  const { role } = core;
  const { id, payload, reserved, decidedInTerm } = proposal;
  if (role.kind !== "leader" || role.transfer !== null || (decidedInTerm ?? core.term) !== core.term) {
    core.outbox.refuse(id, "not_leader");
    return;
  }
  const { uncommittedBytesMax, reservedBytesMax } = core.options.limits;
  const bytesMax = reserved ? uncommittedBytesMax + reservedBytesMax : uncommittedBytesMax;
  // With nothing uncommitted one proposal always passes: else a large one would be refused for ever.
  if (role.uncommittedBytes > 0 && role.uncommittedBytes + entryBytes(payload) > bytesMax) {
    core.outbox.refuse(id, "overloaded");
    return;
  }
  core.appendOwn(role, "command", payload);
}

/** Whether fillAppends would send anything. */
export function areAppendsDue(core: Core, leader: Leader): boolean {
  for (const peer of leader.peers.values()) if (peer.nextAppendFor(core.log.lastIndex) !== "none") return true;
  return false;
}

/** Sends each peer what it lacks, as far as its window reaches: once for an output, so that entries of one turn share an append. */
export function fillAppends(core: Core, leader: Leader): void {
  // Peers in step with each other are sent the same entries: cut them once.
  let shared: readonly Entry[] = noEntries;
  for (const peer of leader.peers.values()) {
    for (;;) {
      const kind = peer.nextAppendFor(core.log.lastIndex);
      if (kind === "none") break;
      if (peer.state === "replicate" && peer.nextIndex <= core.log.baseIndex) {
        peer.becomeProbe(core.log.baseIndex);
        continue;
      }
      if (peer.nextIndex <= core.log.baseIndex) {
        // A probe was rejected as far back as the log goes.
        beginSnapshot(core, peer);
        break;
      }
      if (kind === "entries" && shared[0]?.index !== peer.nextIndex) shared = entriesFor(core, peer);
      sendAppend(core, peer, kind === "entries" ? shared : noEntries);
    }
  }
}

export function onAppendAccepted(
  core: Core,
  leader: Leader,
  peer: Progress,
  message: MessageOf<"appendAccepted">,
): void {
  // More than the leader has: no honest peer says so.
  if (message.matchIndex > core.log.lastIndex) return;
  noteMatch(core, leader, peer, message.matchIndex);
}

export function onAppendRejected(core: Core, peer: Progress, message: MessageOf<"appendRejected">): void {
  const { hint, rejected } = message;
  const agreed = core.log.lastIndexWithin(hint.index, hint.term);
  // Null: the logs part before the base, so the peer needs what only the snapshot has.
  peer.onRejected(rejected, agreed ?? indexAfter(minIndex(core.log.baseIndex, rejected), -1));
}

/** The peer has made a snapshot its own, this one or a newer one of its own. */
export function onSnapshotInstalled(core: Core, leader: Leader, peer: Progress, index: Index): void {
  if (index > core.log.lastIndex) return;
  // If the log has been compacted past it meanwhile, the probe turns into the newest snapshot.
  if (peer.snapshot !== null && index >= peer.snapshot.base.position.index) peer.becomeProbe(core.log.baseIndex);
  noteMatch(core, leader, peer, index);
}

/** The peer durably holds the leader's log up to `index`. */
function noteMatch(core: Core, leader: Leader, peer: Progress, index: Index): void {
  const isNews = peer.onAccepted(index, core.nowMs);
  // Late appends have brought the peer to where the log reaches: the rest of the snapshot isn't needed.
  if (peer.state === "snapshot" && peer.matchIndex >= core.log.baseIndex) peer.becomeProbe(core.log.baseIndex);
  if (isNews) maybeCommit(core, leader);
}

export function onHeartbeatAnswered(core: Core, peer: Progress): void {
  peer.onAnswerOverdue(core.nowMs, patienceHeartbeats * core.options.heartbeatMs);
}

/** A new leader may not count copies of older terms: only an entry of its own term commits them (thesis 3.6.2, figure 3.7). */
export function maybeCommit(core: Core, leader: Leader): void {
  const index = quorumValueFor(core.sets, core.matchFor) as Index;
  if (index <= core.commitIndex || index < leader.noopIndex) return;
  assert(core.log.termAt(index) === core.term, "entries after a leader's first are of its term");
  core.advanceCommit(index);
}

function entriesFor(core: Core, peer: Progress): readonly Entry[] {
  const { appendBytesMax, appendEntriesMax } = core.options.limits;
  return core.log.slice(peer.nextIndex, core.log.lastIndex, appendBytesMax, appendEntriesMax);
}

function sendAppend(core: Core, peer: Progress, entries: readonly Entry[]): void {
  const index = indexAfter(peer.nextIndex, -1);
  core.send(peer.id, {
    kind: "append",
    term: core.term,
    previous: { term: core.log.termAt(index) as Term, index },
    previousChain: core.log.chainAt(index) as number,
    entries,
    commitIndex: core.commitIndex,
  });
  peer.onSent(indexAfter(index, entries.length), core.nowMs);
}
