/** Actions and states as people read them. */
import type { Entry, Message, NodeId } from "@holdfast/raft";
import type { LocalState } from "./local.js";
import type { Cluster, ClusterAction } from "./model.js";

export function actionText({ at, local, isJoined }: ClusterAction, ids: readonly NodeId[]): string {
  const more = isJoined ? ", and its turn goes on" : "";
  return `${ids[at]} ${whatHappens(local, ids)}${more}`;
}

function whatHappens(local: ClusterAction["local"], ids: readonly NodeId[]): string {
  switch (local.kind) {
    case "deliver": {
      const late = local.isLate ? ", an election timeout after its leader" : "";
      return `hears ${ids[local.envelope.from]}: ${messageText(local.envelope.message)}${late}`;
    }
    case "electionTimeout":
      return "has heard no leader for its election timeout";
    case "heartbeatDue":
      return "sends heartbeats";
    case "quorumLost":
      return "has heard no quorum for an election timeout";
    case "propose":
      return "is given a command";
    case "persist":
      return `has ${outputsText(local.count)} on its disk`;
    case "crash":
      return `crashes${local.count > 0 ? ` with ${outputsText(local.count)} more on its disk` : ""}, and starts again`;
    case "peerGone":
      return `hears that the process of ${ids[local.peer]} is gone`;
    case "peerReset":
      return `has a new link to ${ids[local.peer]}`;
  }
}

export function messageText(message: Message): string {
  const { kind, term } = message;
  switch (kind) {
    case "preVote":
    case "vote":
      return `${kind} of term ${term}, log up to ${message.last.index}/${message.last.term}`;
    case "preVoteAnswer":
    case "voteAnswer":
      return `${kind} of term ${term}: ${message.granted ? "granted" : "refused"}`;
    case "append": {
      const { index, term: previousTerm } = message.previous;
      return `append of term ${term} after ${index}/${previousTerm}: ${logText(message.entries)}, committed ${message.commitIndex}`;
    }
    case "appendAccepted":
      return `appendAccepted of term ${term} up to ${message.matchIndex}`;
    case "appendRejected":
      return `appendRejected of term ${term} at ${message.rejected}, hint ${message.hint.index}/${message.hint.term}`;
    case "heartbeat":
      return `heartbeat of term ${term}, committed ${message.commitIndex}`;
    default:
      return `${kind} of term ${term}`;
  }
}

export function clusterText({ nodes }: Cluster, ids: readonly NodeId[]): string[] {
  return nodes.map((node) => `${ids[node.at]}: ${nodeText(node)}`);
}

function nodeText({ role, term, commitIndex, log, disk, pending }: LocalState): string {
  const { hardState, entries } = disk;
  const durable = `durable: term ${hardState.term}, vote ${hardState.votedFor ?? "none"}, ${logText(entries)}`;
  return `${role} of term ${term}, ${logText(log)}, committed ${commitIndex}; ${durable}; ${pending.length} writing`;
}

/** Each entry as index/term. */
function logText(entries: readonly Entry[]): string {
  return `[${entries.map(({ index, term }) => `${index}/${term}`).join(" ")}]`;
}

function outputsText(count: number): string {
  return count === 1 ? "one output" : `${count} outputs`;
}
