/**
 * A snapshot on its way to a peer, one chunk at a time: the host reads it, the peer answers when it is durable, the next one is read.
 * Chunks leave after heartbeats and appends of the same output.
 */
import type { Core } from "./core.js";
import { indexAfter, maxIndex, minIndex } from "./position.js";
import type { Progress, SnapshotSending } from "./progress.js";
import type { Event, LogBase, Message } from "./types.js";

type SnapshotRead = Event & { readonly kind: "snapshotRead" };
type SnapshotAnswer = Message & { readonly kind: "snapshotAnswer" };

/** Patience for a chunk's answer, in election timeouts: doubles with each failure. A slow link may need long for one chunk. */
const backoffTimeoutsMin = 4;
const backoffTimeoutsMax = 128;
/** A snapshot being sent holds back compaction, so that the peer can go on from it; but no more entries than this. */
const heldEntriesMax = 100_000;

export function beginSnapshot(core: Core, peer: Progress): void {
  peer.becomeSnapshot({
    base: core.snapshotBase,
    chunk: 0,
    phase: "reading",
    retryAtMs: 0,
    backoffMs: backoffTimeoutsMin * core.options.electionTimeoutMsMin,
    mayRewind: false,
  });
  if (peer.snapshot !== null) askForChunk(core, peer, peer.snapshot);
}

export function onSnapshotRead(core: Core, event: SnapshotRead): void {
  const peer = core.peerFor(event.to);
  const sending = peer?.snapshot ?? null;
  if (peer === null || sending === null || sending.phase !== "reading") return;
  if (!isSameBase(sending.base, event.base) || sending.chunk !== event.chunk) return;
  if (event.bytes === null) {
    onSnapshotGone(core, peer, sending);
    return;
  }
  const { base, chunk, bytes, done } = event;
  core.send(peer.id, { kind: "snapshotChunk", term: core.term, base, chunk, bytes, done });
  sending.phase = "sent";
  sending.retryAtMs = core.nowMs + sending.backoffMs;
}

/** The peer has stored what came before, and wants chunk `next`. */
export function onChunkWanted(core: Core, peer: Progress, message: SnapshotAnswer): void {
  const sending = peer.snapshot;
  if (sending === null || sending.base.position.index !== message.snapshotIndex) return;
  if (message.next <= sending.chunk) {
    // Either late, or the peer has lost what it had: believed once, when something has gone wrong.
    if (!sending.mayRewind) return;
    sending.mayRewind = false;
  } else {
    sending.backoffMs = backoffTimeoutsMin * core.options.electionTimeoutMsMin;
  }
  sending.chunk = message.next;
  askForChunk(core, peer, sending);
}

/** What was on its way may be lost: try again, after the back-off. */
export function onPeerResetWhileSending(core: Core, sending: SnapshotSending): void {
  sending.phase = "waiting";
  sending.mayRewind = true;
  sending.retryAtMs = core.nowMs + core.options.electionTimeoutMsMin;
}

/** The patience with a chunk, or the wait after a failure, is over. */
export function retrySnapshot(core: Core, peer: Progress, sending: SnapshotSending): void {
  const backoffMsMax = backoffTimeoutsMax * core.options.electionTimeoutMsMin;
  sending.backoffMs = Math.min(2 * sending.backoffMs, backoffMsMax);
  sending.mayRewind = true;
  if (core.wasHeardLately(peer)) {
    askForChunk(core, peer, sending);
  } else {
    sending.phase = "waiting";
    sending.retryAtMs = core.nowMs + sending.backoffMs;
  }
}

/** The state machine's snapshot is durable: the log may begin later, but for what slow peers are likely to need. */
export function onSnapshotTaken(core: Core, base: LogBase): void {
  const { log, snapshotBase } = core;
  const { index } = base.position;
  // Late: a snapshot that was received meanwhile reaches further.
  if (index <= snapshotBase.position.index || index < log.baseIndex) return;
  core.assertApplied(base);
  core.snapshotBase = base;
  let keptFrom = indexAfter(index, -core.options.limits.trailingEntriesMax);
  if (core.role.kind === "leader") {
    const heldFrom = indexAfter(index, -heldEntriesMax);
    for (const peer of core.role.peers.values()) {
      if (peer.snapshot === null || !core.wasHeardLately(peer)) continue;
      keptFrom = minIndex(keptFrom, maxIndex(peer.snapshot.base.position.index, heldFrom));
    }
  }
  log.compactThrough(keptFrom);
}

function onSnapshotGone(core: Core, peer: Progress, sending: SnapshotSending): void {
  if (core.snapshotBase.position.index > sending.base.position.index) {
    beginSnapshot(core, peer);
  } else {
    // The newest one can't be read yet: no tight loop with the host.
    sending.phase = "waiting";
    sending.retryAtMs = core.nowMs + sending.backoffMs;
  }
}

function askForChunk(core: Core, peer: Progress, sending: SnapshotSending): void {
  sending.phase = "reading";
  sending.retryAtMs = core.nowMs + sending.backoffMs;
  core.outbox.readSnapshot(peer.id, sending.base, sending.chunk);
}

function isSameBase(a: LogBase, b: LogBase): boolean {
  return a.position.index === b.position.index && a.position.term === b.position.term && a.chain === b.chain;
}
