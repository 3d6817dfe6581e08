/**
 * Quorum rounds (thesis 6.4): a request is confirmed when a quorum has answered a heartbeat that was sent after the request came. Then no
 * later leader had been elected when it came, and commitIndex as of the round's start covers all that was committed by then.
 */
import type { Core } from "./core.js";
import { minIndex } from "./position.js";
import type { Progress } from "./progress.js";
import { quorumValueFor } from "./quorum.js";
import type { Leader } from "./role.js";

export function onConfirm(core: Core, id: number): void {
  const { role } = core;
  if (role.kind !== "leader" || role.transfer !== null) core.outbox.unconfirm(id);
  else role.rounds.gathering.push(id);
}

export function isRoundDue(core: Core, leader: Leader): boolean {
  const { inFlight, gathering } = leader.rounds;
  // Before an own-term entry is committed, commitIndex may lie behind what the former leader has committed.
  return gathering.length > 0 && inFlight === null && core.commitIndex >= leader.noopIndex;
}

/** All that gathered shares the round. A sole voter is its own quorum: its round ends at once. */
export function beginRound(core: Core, leader: Leader): void {
  const { rounds } = leader;
  const ids = rounds.gathering;
  rounds.gathering = [];
  rounds.round += 1;
  rounds.inFlight = { round: rounds.round, index: core.commitIndex, ids };
  sendHeartbeats(core, leader);
  maybeFinishRound(core, leader);
}

/**
 * A timer's heartbeat bears the newest round's number: for a round in flight it is the repetition that a lost heartbeat needs, and it was
 * sent after the round began as well.
 */
export function sendHeartbeats(core: Core, leader: Leader): void {
  leader.heartbeatDueMs = core.nowMs + heartbeatIntervalMs(core, leader);
  for (const peer of leader.peers.values()) {
    core.send(peer.id, {
      kind: "heartbeat",
      term: core.term,
      commitIndex: minIndex(peer.matchIndex, core.commitIndex),
      round: leader.rounds.round,
    });
  }
}

/**
 * Twice the heartbeat, but at most two fifths of an election timeout, while there is nothing to say: a heartbeat wakes two processes,
 * and an idle cluster does nothing else. Whatever happens is said at once, as ever.
 */
function heartbeatIntervalMs(core: Core, leader: Leader): number {
  const { heartbeatMs, electionTimeoutMsMin } = core.options;
  if (!isQuiet(core, leader)) return heartbeatMs;
  return Math.max(heartbeatMs, Math.min(2 * heartbeatMs, Math.floor(0.4 * electionTimeoutMsMin)));
}

function isQuiet(core: Core, leader: Leader): boolean {
  const { lastIndex } = core.log;
  const { inFlight, gathering } = leader.rounds;
  if (core.commitIndex !== lastIndex || inFlight !== null || gathering.length > 0 || leader.transfer !== null)
    return false;
  for (const { state, matchIndex } of leader.peers.values()) {
    if (state !== "replicate" || matchIndex !== lastIndex) return false;
  }
  return true;
}

export function onHeartbeatAnswer(core: Core, leader: Leader, peer: Progress, round: number): void {
  if (round <= peer.round || round > leader.rounds.round) return;
  peer.round = round;
  maybeFinishRound(core, leader);
}

/** A transfer begins: whoever answers from now on may answer too late. */
export function giveUpRounds(core: Core, leader: Leader): void {
  const { rounds } = leader;
  for (const id of rounds.inFlight?.ids ?? []) core.outbox.unconfirm(id);
  for (const id of rounds.gathering) core.outbox.unconfirm(id);
  rounds.inFlight = null;
  rounds.gathering = [];
}

export function maybeFinishRound(core: Core, leader: Leader): void {
  const { rounds, transfer } = leader;
  const { inFlight } = rounds;
  if (inFlight === null) return;
  if (quorumValueFor(core.sets, core.roundFor) < inFlight.round) return;
  rounds.inFlight = null;
  for (const id of inFlight.ids) core.outbox.confirm(id, inFlight.index);
  // No round but the one that its end began can have been in flight: the transfer's start gave up all others.
  if (transfer?.phase === "ending") leader.transfer = null;
}
