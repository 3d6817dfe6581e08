import type { Core } from "./core.js";
import { isCaughtUp, isChanging } from "./membership.js";
import type { Progress } from "./progress.js";
import type { Leader } from "./role.js";
import type { PeerStatus, RaftStatus } from "./types.js";

export function statusOf(core: Core): RaftStatus {
  const { log, role, writes } = core;
  const isLeader = role.kind === "leader";
  return {
    id: core.id,
    term: core.term,
    votedFor: core.votedFor,
    role: core.roleName,
    leader: core.leader,
    commitIndex: core.commitIndex,
    lastApplied: core.lastApplied,
    last: log.last,
    lastChain: log.lastChain,
    persistedIndex: writes.persistedIndex,
    persisted: writes.hardState,
    logBase: log.base.position,
    snapshot: core.snapshotBase.position,
    isInstalling: core.installing !== null,
    isDiskOverdue: core.isDiskOverdue,
    uncommittedBytes: isLeader ? role.uncommittedBytes : 0,
    transferTo: isLeader ? (role.transfer?.target ?? null) : null,
    configuration: log.configuration,
    configurationIndex: log.configurationIndex,
    isChanging: isChanging(core),
    isRemoved: core.isRemoved,
    peers: isLeader ? [...role.peers.values()].map((peer) => peerStatusOf(core, role, peer)) : [],
  };
}

function peerStatusOf(core: Core, leader: Leader, peer: Progress): PeerStatus {
  return {
    id: peer.id,
    membership: membershipOf(core, peer),
    state: peer.state,
    matchIndex: peer.matchIndex,
    nextIndex: peer.nextIndex,
    behindEntries: core.log.lastIndex - peer.matchIndex,
    isCaughtUp: isCaughtUp(core, leader, peer),
    inFlight: peer.inFlight,
    heardMsAgo: core.nowMs - peer.heardMs,
    snapshot: peer.snapshot === null ? null : { index: peer.snapshot.base.position.index, chunk: peer.snapshot.chunk },
  };
}

function membershipOf(core: Core, peer: Progress): PeerStatus["membership"] {
  if (peer.leaving !== null) return "leaving";
  return core.voterIds.includes(peer.id) ? "voter" : "learner";
}
