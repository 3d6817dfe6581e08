/**
 * Changes of membership by joint consensus (thesis 4.3): the voters in force and those asked for decide together, each by a majority of its
 * own, until that joint configuration is committed; then the leader proposes the new one alone. Every node uses the newest configuration
 * in its log from the moment it is there, so all follows from the log: after a restart, a truncation or a snapshot nothing else is needed.
 */
import { assert } from "./assert.js";
import { changedConfiguration, finalConfiguration, problemWith } from "./configuration.js";
import type { ChangeProblem } from "./configuration.js";
import type { Core } from "./core.js";
import type { Progress } from "./progress.js";
import { maybeFinishRound } from "./read-index.js";
import type { Leader } from "./role.js";
import { onTransfer } from "./transfer.js";
import type { ChangeRefusalCode, Configuration, Event, MembershipChange, Message, NodeId } from "./types.js";

type ChangeMembers = Event & { readonly kind: "changeMembers" };

/**
 * A learner may be this many entries behind when it is promoted: a moment's worth at full load. While it fetches them, a commit that needs
 * its copy waits (thesis 4.2.1).
 */
export const promotionLagMax = 1_000;

export function onChangeMembers(core: Core, event: ChangeMembers): void {
  const { id, change } = event;
  const { role } = core;
  if (role.kind !== "leader") {
    refuse(core, id, { code: "not_leader", member: null });
    return;
  }
  const problem = problemFor(core, role, event);
  if (problem !== null) {
    refuse(core, id, problem);
    return;
  }
  const payload = payloadFor(core, changedConfiguration(core.log.configuration, change));
  if (payload === null) {
    refuse(core, id, { code: "invalid_member", member: change.add[0]?.id ?? null });
    return;
  }
  appendConfiguration(core, role, payload);
  role.change = id;
  core.outbox.answerChange({ kind: "appended", id, index: core.log.configurationIndex });
}

/** The configuration in force is not the end of a change, or not known to be committed. */
export function isChanging(core: Core): boolean {
  const { configuration, configurationIndex } = core.log;
  return configuration.outgoing.length > 0 || configurationIndex > core.commitIndex;
}

/** Whether a learner would be promoted now: a voter that can't commit yet would stand in the way of the change that makes it one. */
export function isCaughtUp(core: Core, leader: Leader, peer: Progress): boolean {
  return canCommit(core, leader, peer) && core.log.lastIndex - peer.matchIndex <= promotionLagMax;
}

/**
 * A leader goes on as soon as the newest configuration is committed: from a joint one to the final one, whoever began it; and when it has
 * no vote any more, out of office (thesis 4.2.2).
 */
export function advanceMembership(core: Core): void {
  const { role, log } = core;
  if (role.kind !== "leader" || core.commitIndex < Math.max(role.noopIndex, log.configurationIndex)) return;
  if (log.configuration.outgoing.length > 0) {
    // Whoever takes over proposes it.
    if (role.transfer !== null) return;
    const payload = core.codec.encodeConfiguration(finalConfiguration(log.configuration));
    appendConfiguration(core, role, payload);
    return;
  }
  if (role.change !== null) {
    core.outbox.answerChange({ kind: "completed", id: role.change, index: log.configurationIndex });
    role.change = null;
  }
  if (!core.isVoter) leave(core, role);
}

/**
 * Whose messages count. A node doesn't ask its own configuration whether another may campaign: it may be behind, and its vote may be the
 * one that is needed (thesis 4.1). For the same reason it votes though its own newest configuration gives it no vote: whoever asks it
 * counts it as a voter, or doesn't count what it says. Nodes outside can't disturb by this: pre-votes and stickiness keep them from whoever
 * hears a leader (thesis 4.2.3).
 *
 * It ends with a *committed* removal, of the asker or of the node itself: from then on every log that can win holds that configuration, and
 * nobody that it removed can win or be counted. A removal that is not committed must not count: with the voters' other half down, a
 * removed voter may be the only one whose log can win, and this node's vote the one it lacks.
 */
export function isHeeded(core: Core, from: NodeId, message: Message): boolean {
  switch (message.kind) {
    case "append":
    case "heartbeat":
    case "snapshotChunk":
      // A leader counts by its term: a node behind may not know it yet, and one that has removed itself leads until that is committed.
      return true;
    case "timeoutNow":
      return core.isMember(from) || core.leader === from;
    case "preVote":
    case "vote":
      return !core.isRemoved && !core.isRemovedId(from);
    case "preVoteAnswer":
    case "voteAnswer":
    case "appendAccepted":
    case "appendRejected":
    case "heartbeatAnswer":
    case "snapshotAnswer":
      // The terms of those that have left depose nobody.
      return core.isMember(from) || (core.peerFor(from) !== null && message.term <= core.term);
  }
}

function problemFor(core: Core, leader: Leader, { change, isForced }: ChangeMembers): ChangeProblem | null {
  const code = reasonToWait(core, leader);
  if (code !== null) return { code, member: null };
  const problem = problemWith(core.log.configuration, change) ?? problemWithPromoted(core, leader, change.promote);
  return problem ?? (isForced ? null : problemWithQuorum(core, leader, change));
}

function reasonToWait(core: Core, leader: Leader): ChangeRefusalCode | null {
  if (leader.transfer !== null) return "transfer_running";
  // Else two leaders, one of them deposed, could each make a change that the other's majority doesn't know (Ongaro, raft-dev 2015).
  if (core.commitIndex < leader.noopIndex) return "not_ready";
  return isChanging(core) ? "change_in_progress" : null;
}

function problemWithPromoted(core: Core, leader: Leader, promote: readonly NodeId[]): ChangeProblem | null {
  const behind = promote.find((id) => {
    const peer = leader.peers.get(id);
    return peer === undefined || !isCaughtUp(core, leader, peer);
  });
  return behind === undefined ? null : { code: "not_caught_up", member: behind };
}

/** Learners are in no quorum: only a change of voters can lose it. */
function problemWithQuorum(core: Core, leader: Leader, change: MembershipChange): ChangeProblem | null {
  const { voters, outgoing } = changedConfiguration(core.log.configuration, change);
  if (outgoing.length === 0) return null;
  const missing = voters.filter(({ id }) => {
    const peer = leader.peers.get(id);
    return id !== core.id && (peer === undefined || !canCommit(core, leader, peer));
  });
  if (2 * (voters.length - missing.length) > voters.length) return null;
  return { code: "would_lose_quorum", member: missing[0]?.id ?? null };
}

/**
 * Its answers come, and reach this term: a new leader has heard of nobody yet, and who is far behind holds commits up as if it were down.
 * Whose link was lost is a probe until it has answered again: it may be down, though it was heard a moment ago.
 */
function canCommit(core: Core, leader: Leader, peer: Progress): boolean {
  return peer.state === "replicate" && core.wasHeardLately(peer) && peer.matchIndex >= leader.noopIndex;
}

function payloadFor(core: Core, configuration: Configuration): Uint8Array | null {
  try {
    return core.codec.encodeConfiguration(configuration);
  } catch {
    return null;
  }
}

function appendConfiguration(core: Core, leader: Leader, payload: Uint8Array): void {
  assert(core.commitIndex >= leader.noopIndex, "no change before an entry of the own term is committed");
  assert(core.log.configurationIndex <= core.commitIndex, "one change at a time");
  core.appendOwn(leader, "configuration", payload);
  // The new quorum may have answered already, and nobody of it may be left to answer again.
  maybeFinishRound(core, leader);
}

/**
 * Its own removal is committed. It hands over to a voter that has all its entries, so that nothing is lost and no election timeout waited
 * for; when that fails within the time that a transfer has, it just goes.
 */
function leave(core: Core, leader: Leader): void {
  if (leader.transfer === null) onTransfer(core, null);
  if (leader.transfer?.phase === "catchingUp") return;
  core.becomeFollower(core.term, null, "this node has no vote any more");
}

function refuse(core: Core, id: number, { code, member }: ChangeProblem): void {
  core.outbox.answerChange({ kind: "refused", id, code, member });
}
