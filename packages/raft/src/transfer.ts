/**
 * Leadership transfer (thesis 3.10). From its start nothing is proposed or confirmed: the target may win with one vote that this leader
 * never hears of, while a quorum still answers its heartbeats (etcd #12704).
 */
import type { Core } from "./core.js";
import type { Progress } from "./progress.js";
import { beginRound, giveUpRounds } from "./read-index.js";
import type { Leader } from "./role.js";
import type { NodeId } from "./types.js";

/** Asking another time, or for a target that can't lead, changes nothing. In a joint change only who stays can lead for long. */
export function onTransfer(core: Core, to: NodeId | null): void {
  const { role } = core;
  if (role.kind !== "leader" || role.transfer !== null) return;
  const target = to === null ? bestTarget(core, role) : targetFor(core, role, to);
  if (target === null) return;
  giveUpRounds(core, role);
  role.transfer = {
    target: target.id,
    deadlineMs: core.nowMs + core.options.electionTimeoutMsMin,
    phase: "catchingUp",
  };
}

export function isTimeoutNowDue(core: Core, leader: Leader): boolean {
  const { transfer } = leader;
  if (transfer?.phase !== "catchingUp") return false;
  return leader.peers.get(transfer.target)?.matchIndex === core.log.lastIndex;
}

/** The target has all entries and wins against everybody: it need not wait for its election timeout. */
export function sendTimeoutNow(core: Core, leader: Leader): void {
  const { transfer } = leader;
  if (transfer === null) return;
  transfer.phase = "told";
  core.send(transfer.target, { kind: "timeoutNow", term: core.term });
}

/** The time is over. Only a round that begins now can show that the target did not win. */
export function endTransfer(core: Core, leader: Leader): void {
  const { transfer } = leader;
  if (transfer === null) return;
  transfer.phase = "ending";
  beginRound(core, leader);
}

function bestTarget(core: Core, leader: Leader): Progress | null {
  let best: Progress | null = null;
  for (const id of core.sets.voters) {
    const peer = leader.peers.get(id);
    if (peer === undefined || !core.wasHeardLately(peer)) continue;
    if (best === null || peer.matchIndex > best.matchIndex) best = peer;
  }
  return best;
}

function targetFor(core: Core, leader: Leader, to: NodeId): Progress | null {
  return core.sets.voters.includes(to) ? (leader.peers.get(to) ?? null) : null;
}
