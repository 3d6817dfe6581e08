/** Whom a leader replicates to: all members but itself, and for a while those that were removed. */
import type { Core } from "./core.js";
import { indexAfter } from "./position.js";
import { Progress } from "./progress.js";
import type { Leader } from "./role.js";
import type { Configuration, NodeId } from "./types.js";

/** Election timeouts that a removed peer is still sent the log for, once its removal is committed. */
const leavingTimeoutsMax = 4;

/**
 * Makes the leader's peers those of its configuration. Whoever has left it stays among them until it can have learnt so: it counts in no
 * quorum, and without word from the leader it would ask for votes (thesis 4.2.3). A new leader takes this over from the one before, as far
 * as its log still tells whom the last change removed.
 */
export function matchPeers(core: Core, leader: Leader): void {
  const { log } = core;
  const members = memberIdsOf(log.configuration);
  const formerMembers = log.previousConfiguration === null ? [] : memberIdsOf(log.previousConfiguration);
  for (const id of [...members, ...formerMembers])
    if (id !== core.id && !leader.peers.has(id)) addPeer(core, leader, id);
  for (const peer of leader.peers.values()) {
    if (!members.has(peer.id)) peer.leaving ??= { index: log.configurationIndex, untilMs: Number.POSITIVE_INFINITY };
  }
}

/**
 * Ends the sending to removed peers whose time is over, or that are silent: their processes may have ended, as they should. A removed
 * node that was down or cut off all the time hears nothing, and can't disturb either (thesis 4.2.3).
 */
export function dropPeersThatLeft(core: Core, leader: Leader): void {
  for (const peer of leader.peers.values()) {
    const { leaving } = peer;
    if (leaving === null || core.commitIndex < leaving.index) continue;
    if (leaving.untilMs === Number.POSITIVE_INFINITY) {
      leaving.untilMs = core.nowMs + leavingTimeoutsMax * core.options.electionTimeoutMsMin;
    }
    if (core.nowMs >= leaving.untilMs || !core.wasHeardLately(peer)) leader.peers.delete(peer.id);
  }
}

function addPeer(core: Core, leader: Leader, id: NodeId): void {
  const { appendsInFlightMax } = core.options.limits;
  leader.peers.set(id, new Progress(id, indexAfter(core.log.lastIndex), core.nowMs, appendsInFlightMax));
}

function memberIdsOf({ voters, outgoing, learners }: Configuration): Set<NodeId> {
  return new Set([...voters, ...outgoing, ...learners].map((member) => member.id));
}
