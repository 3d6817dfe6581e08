/** What must hold of every node after every event; for tests and the simulator. Rules across nodes are theirs to check. */
import { assert } from "./assert.js";
import { assertConfiguration } from "./configuration.js";
import { comparePositions } from "./position.js";
import type { Raft } from "./raft.js";
import type { PeerStatus, RaftStatus } from "./types.js";

/**
 * Checks the node by itself and, when `before` is its status before the event (of the same process), the step it has made. Returns the
 * status now, to be the next `before`. Throws InvariantError, naming the rule.
 */
export function checkInvariants(before: RaftStatus | null, raft: Raft): RaftStatus {
  const after = raft.status();
  checkLog(raft, after);
  checkRole(after);
  checkSending(raft, after);
  assertConfiguration(after.configuration);
  if (before !== null) {
    checkStep(before, after);
    checkLogStep(before, raft, after);
  }
  return after;
}

function checkLog(raft: Raft, status: RaftStatus): void {
  const { logBase, snapshot, last, commitIndex, lastApplied, persistedIndex, isInstalling } = status;
  assert(last.term <= status.term, "no entry is of a later term than the node's");
  assert(comparePositions(logBase, last) <= 0, "terms never fall along the log");
  assert(isInstalling || logBase.index <= snapshot.index, "a snapshot covers all that is before the log");
  assert(isInstalling || snapshot.index <= lastApplied, "the state machine is never behind its snapshot");
  assert(lastApplied <= commitIndex, "only committed entries are applied");
  assert(logBase.index <= commitIndex, "only committed entries are compacted");
  assert(commitIndex <= last.index, "nothing is committed that is not in the log");
  assert(persistedIndex <= last.index, "nothing is durable that is not in the log");
  assert(raft.termAt(commitIndex) !== null, "the log reaches back to what is committed");
  assert(raft.entryAt(last.index) === null || raft.chainAt(last.index) === status.lastChain, "the log has no gap");
}

function checkRole(status: RaftStatus): void {
  const { role, id, term, persisted, peers, last } = status;
  assert(persisted.term <= term, "what is durable is never ahead of what is decided");
  if (role === "learner" || role === "follower") {
    const { voters, outgoing } = status.configuration;
    const isVoter = [...voters, ...outgoing].some((member) => member.id === id);
    assert(isVoter === (role === "follower"), "a node counts by the configuration in force");
  }
  if (role === "candidate" || role === "leader") assert(status.votedFor === id, "a candidate has voted for itself");
  if (role !== "leader") return;
  assert(status.leader === id, "a leader follows nobody");
  assert(persisted.term === term && persisted.votedFor === id, "a leader's own vote is durable");
  for (const peer of peers) {
    assert(peer.nextIndex > peer.matchIndex, "nextIndex is above matchIndex");
    assert(peer.matchIndex <= last.index, "no peer matches what the leader doesn't have");
    assert(peer.nextIndex <= last.index + 1, "nothing is sent that is not in the log");
  }
}

/** Between turns nobody waits for what nobody sends: an answer is owed, or there is a question after it (see Progress.onAnswerOverdue). */
function checkSending(raft: Raft, { role, peers, last }: RaftStatus): void {
  if (role !== "leader" || raft.hasOutput()) return;
  for (const { state, matchIndex, inFlight } of peers) {
    const isUnderWay = inFlight > 0 || state === "snapshot";
    assert(isUnderWay || matchIndex === last.index, "what a peer lacks is under way to it");
  }
}

function checkStep(before: RaftStatus, after: RaftStatus): void {
  assert(before.id === after.id, "a node stays itself");
  assert(before.term <= after.term, "the term never falls");
  assert(before.commitIndex <= after.commitIndex, "commitIndex never falls");
  assert(before.lastApplied <= after.lastApplied, "lastApplied never falls");
  assert(before.snapshot.index <= after.snapshot.index, "snapshots never go back");
  assert(!before.isRemoved || after.isRemoved, "who was removed never comes back");
  assert(before.logBase.index <= after.logBase.index, "the log's base never falls");
  assert(before.persisted.term <= after.persisted.term, "the durable term never falls");
  if (before.term !== after.term) return;
  assert(before.votedFor === null || before.votedFor === after.votedFor, "a vote never changes within its term");
  assert(
    before.role === "leader" || after.role !== "leader" || before.role === "candidate",
    "only a candidate becomes leader",
  );
  if (before.role !== "leader" || after.role !== "leader") return;
  const peers = new Map<string, PeerStatus>(before.peers.map((peer) => [peer.id, peer]));
  for (const peer of after.peers) {
    assert((peers.get(peer.id)?.matchIndex ?? 0) <= peer.matchIndex, "matchIndex never falls in a term");
  }
}

function checkLogStep(before: RaftStatus, raft: Raft, after: RaftStatus): void {
  const isKept = before.last.index >= after.logBase.index && before.last.index <= after.last.index;
  const isUnchanged = isKept && raft.chainAt(before.last.index) === before.lastChain;
  if (before.role === "leader" && after.role === "leader" && before.term === after.term) {
    assert(before.last.index < after.logBase.index || isUnchanged, "a leader only appends");
  }
  if (before.commitIndex === before.last.index && before.commitIndex >= after.logBase.index) {
    assert(isUnchanged, "committed entries stay");
  }
  if (before.persistedIndex > after.persistedIndex && !after.isInstalling) {
    assert(
      after.persistedIndex >= before.commitIndex || before.persistedIndex <= before.commitIndex,
      "committed entries stay durable",
    );
  }
}
