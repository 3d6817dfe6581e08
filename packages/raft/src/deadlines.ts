/** What time alone brings about. There are no idle ticks: nextDeadline says when something is due, and nothing happens before. */
import type { Core } from "./core.js";
import { onElectionTimeout } from "./election.js";
import { dropPeersThatLeft } from "./peers.js";
import { quorumValueFor } from "./quorum.js";
import { sendHeartbeats } from "./read-index.js";
import type { Leader } from "./role.js";
import { retrySnapshot } from "./snapshot-sending.js";
import { endTransfer } from "./transfer.js";

/** A tick: whatever is due by now happens. */
export function onTime(core: Core): void {
  if (core.role.kind !== "leader") {
    if (core.nowMs >= core.electionDeadlineMs) onElectionTimeout(core);
    return;
  }
  const reason = reasonToStepDown(core);
  if (reason !== null) core.becomeFollower(core.term, null, reason);
  else onLeaderTime(core, core.role);
}

/** Infinity when nothing is due; before the first event everything is. */
export function nextDeadlineFor(core: Core): number {
  if (!core.isStarted) return 0;
  const { role } = core;
  if (role.kind !== "leader") return core.electionDeadlineMs;
  let deadlineMs = core.writes.oldestMs + core.options.diskStallMs;
  deadlineMs = Math.min(deadlineMs, quorumDeadlineFor(core));
  if (role.peers.size > 0) deadlineMs = Math.min(deadlineMs, role.heartbeatDueMs);
  if (isTransferRunning(role)) deadlineMs = Math.min(deadlineMs, role.transfer?.deadlineMs ?? deadlineMs);
  for (const { snapshot } of role.peers.values()) {
    if (snapshot !== null) deadlineMs = Math.min(deadlineMs, snapshot.retryAtMs);
  }
  return deadlineMs;
}

/** A leader that can't store, or can't hear a quorum, holds up a cluster that could do without it (thesis 6.2). */
function reasonToStepDown(core: Core): string | null {
  const { nowMs } = core;
  if (core.isDiskOverdue) return `a write has not returned for ${Math.round(nowMs - core.writes.oldestMs)} ms`;
  if (nowMs >= quorumDeadlineFor(core)) return "no quorum was heard for an election timeout";
  return null;
}

function onLeaderTime(core: Core, leader: Leader): void {
  if (isTransferRunning(leader) && core.nowMs >= (leader.transfer?.deadlineMs ?? 0)) endTransfer(core, leader);
  dropPeersThatLeft(core, leader);
  if (leader.peers.size > 0 && core.nowMs >= leader.heartbeatDueMs) sendHeartbeats(core, leader);
  for (const peer of leader.peers.values()) {
    if (peer.snapshot !== null && core.nowMs >= peer.snapshot.retryAtMs) retrySnapshot(core, peer, peer.snapshot);
  }
}

function isTransferRunning(leader: Leader): boolean {
  return leader.transfer !== null && leader.transfer.phase !== "ending";
}

/** An election timeout after a quorum was last heard. The node hears itself always. */
function quorumDeadlineFor(core: Core): number {
  return quorumValueFor(core.sets, core.heardFor) + core.options.electionTimeoutMsMin;
}
