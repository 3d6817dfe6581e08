/** Messages from peers: who is heeded, what their terms do, and where each kind goes. */
import { assertNever } from "./assert.js";
import type { Core } from "./core.js";
import { onPreVote, onPreVoteAnswer, onTimeoutNow, onVote, onVoteAnswer } from "./election.js";
import { answerOldLeader, onAppend, onHeartbeat } from "./follower.js";
import { isHeeded } from "./membership.js";
import { isWellFormed } from "./message-checks.js";
import { onHeartbeatAnswer } from "./read-index.js";
import { onAppendAccepted, onAppendRejected, onHeartbeatAnswered, onSnapshotInstalled } from "./replication.js";
import { onChunkWanted } from "./snapshot-sending.js";
import { onSnapshotChunk } from "./snapshot-receiving.js";
import type { Message, NodeId } from "./types.js";

type MessageOf<Kind extends Message["kind"]> = Message & { readonly kind: Kind };
type Answer = MessageOf<"appendAccepted" | "appendRejected" | "heartbeatAnswer" | "snapshotAnswer">;

/** Term rules first (thesis 3.3), then the message's own. Pre-votes are outside of them: they change no term. */
export function onReceived(core: Core, from: NodeId, message: Message): void {
  if (from === core.id || !isWellFormed(message) || !isHeeded(core, from, message)) return;
  const comesFromLeader = isOfLeader(message);
  if (message.kind === "preVote") {
    onPreVote(core, from, message);
    return;
  }
  if (message.kind === "preVoteAnswer") {
    onPreVoteAnswer(core, from, message);
    return;
  }
  // A vote request doesn't even raise the term of a node that hears its leader, or a disturber could depose it (thesis 4.2.3).
  if (message.kind === "vote" && message.term >= core.term && core.isSticky && !message.transfer) return;
  if (message.term < core.term) {
    onOldTerm(core, from, message);
    return;
  }
  if (message.term > core.term) {
    core.becomeFollower(
      message.term,
      comesFromLeader ? from : null,
      comesFromLeader ? `heard leader ${from}` : `${from} is in a later term`,
    );
  }
  dispatch(core, from, message);
}

function isOfLeader(message: Message): boolean {
  return message.kind === "append" || message.kind === "heartbeat" || message.kind === "snapshotChunk";
}

/** Late, or from a node that has missed an election: it learns the term. Late answers say nothing. */
function onOldTerm(core: Core, from: NodeId, message: Message): void {
  if (message.kind === "vote") core.send(from, { kind: "voteAnswer", term: core.term, granted: false });
  else answerOldLeader(core, from, message);
}

function dispatch(core: Core, from: NodeId, message: Exclude<Message, MessageOf<"preVote" | "preVoteAnswer">>): void {
  switch (message.kind) {
    case "vote":
      onVote(core, from, message);
      break;
    case "voteAnswer":
      onVoteAnswer(core, from, message);
      break;
    case "append":
      onAppend(core, from, message);
      break;
    case "heartbeat":
      onHeartbeat(core, from, message);
      break;
    case "snapshotChunk":
      onSnapshotChunk(core, from, message);
      break;
    case "timeoutNow":
      onTimeoutNow(core, from);
      break;
    case "appendAccepted":
    case "appendRejected":
    case "heartbeatAnswer":
    case "snapshotAnswer":
      onAnswer(core, from, message);
      break;
    default:
      assertNever(message);
  }
}

function onAnswer(core: Core, from: NodeId, message: Answer): void {
  const { role } = core;
  const peer = core.peerFor(from);
  // The own leadership is over, or the peer is not sent to any more.
  if (role.kind !== "leader" || peer === null) return;
  peer.heardMs = core.nowMs;
  switch (message.kind) {
    case "appendAccepted":
      onAppendAccepted(core, role, peer, message);
      break;
    case "appendRejected":
      onAppendRejected(core, peer, message);
      break;
    case "heartbeatAnswer":
      onHeartbeatAnswer(core, role, peer, message.round);
      onHeartbeatAnswered(core, peer);
      break;
    case "snapshotAnswer":
      if (message.installed) onSnapshotInstalled(core, role, peer, message.snapshotIndex);
      else onChunkWanted(core, peer, message);
      break;
    default:
      assertNever(message);
  }
}
