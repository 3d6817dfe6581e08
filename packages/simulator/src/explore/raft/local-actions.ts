/** What can happen to a node next. */
import type { NodeId } from "@holdfast/raft";
import type { LocalAction, LocalState } from "./local.js";
import type { Inbox } from "./network.js";
import type { Scope } from "./scope.js";

/** What may happen at any time and any number of times, within the scope. */
export function* actionsOf(
  node: LocalState,
  inbox: Inbox,
  scope: Scope,
  ids: readonly NodeId[],
): Generator<LocalAction> {
  for (const envelope of inbox.envelopes) {
    yield { kind: "deliver", envelope, isLate: false };
    const { kind } = envelope.message;
    // Only these ask how long ago the leader was heard.
    if (node.isSticky && node.heardMs !== null && (kind === "vote" || kind === "preVote")) {
      yield { kind: "deliver", envelope, isLate: true };
    }
  }
  for (let count = 1; count <= node.pending.length; count += 1) yield { kind: "persist", count };
  if (node.role === "leader") {
    yield { kind: "heartbeatDue" };
    yield { kind: "quorumLost" };
    if (node.log.length < scope.entriesMax) yield { kind: "propose" };
  }
  if (scope.timeoutsMax === Number.POSITIVE_INFINITY) yield* timeoutsOf(node, scope);
  if (scope.crashesMax === Number.POSITIVE_INFINITY) yield* crashesOf(node);
  if (scope.resetsMax === Number.POSITIVE_INFINITY) yield* resetsOf(node, ids);
}

export function* timeoutsOf(node: LocalState, scope: Scope): Generator<LocalAction> {
  if (node.role !== "leader" && node.term < scope.termMax) yield { kind: "electionTimeout" };
}

export function* crashesOf(node: LocalState): Generator<LocalAction> {
  for (let count = 0; count <= node.pending.length; count += 1) yield { kind: "crash", count };
}

export function* resetsOf(node: LocalState, ids: readonly NodeId[]): Generator<LocalAction> {
  for (const [peer, id] of ids.entries()) {
    if (peer === node.at) continue;
    if (node.role === "leader") yield { kind: "peerReset", peer };
    else if (node.leader === id) yield { kind: "peerGone", peer };
  }
}
