/**
 * A snapshot that a leader sends (thesis 5). Its chunks are stored one by one; the last one takes the place of the log in the same synced
 * batch, so a crash leaves the old state or the new one, never a mix.
 */
import { InvariantError } from "./assert.js";
import type { Core } from "./core.js";
import { follow } from "./follower.js";
import type { Follower } from "./role.js";
import type { LogBase, Message, NodeId } from "./types.js";

type Chunk = Message & { readonly kind: "snapshotChunk" };

export function onSnapshotChunk(core: Core, from: NodeId, message: Chunk): void {
  const follower = follow(core, from);
  const { base, chunk, done } = message;
  if (isCovered(core, base)) {
    core.noteVerified(base.position.index);
    core.advanceCommit(base.position.index);
    answer(core, from, base, 0, true);
    return;
  }
  // One snapshot after the other, one chunk in an output: the leader will send it again.
  if (core.installing !== null || core.outbox.install !== null || core.outbox.chunk !== null) return;
  const incoming = incomingFor(follower, base);
  if (incoming === null) return;
  if (chunk !== incoming.next) {
    answer(core, from, base, incoming.next, false);
    return;
  }
  incoming.next += 1;
  core.outbox.chunk = { base, chunk, bytes: message.bytes, done };
  if (done) {
    follower.incoming = null;
    core.noteVerified(base.position.index);
    core.replaceLog(base);
  }
  answer(core, from, base, incoming.next, done);
}

/** Whether all that the snapshot holds is in the own log or state machine: then no matched entry is erased for it. */
function isCovered(core: Core, base: LogBase): boolean {
  const { log, commitIndex } = core;
  const { index, term } = base.position;
  if (index < log.baseIndex) return true;
  const ownTerm = log.termAt(index);
  if (ownTerm === term && log.chainAt(index) === base.chain) return true;
  if (ownTerm === term || index <= commitIndex) {
    throw new InvariantError("logs that agree at a position agree before it", `snapshot at index ${index}`);
  }
  return false;
}

/** The transfer that this chunk belongs to; null for one that a newer snapshot of the same leader has replaced. */
function incomingFor(follower: Follower, base: LogBase): { next: number } | null {
  const { incoming } = follower;
  const { index } = base.position;
  if (incoming !== null && index === incoming.base.position.index) return incoming;
  if (incoming !== null && index < incoming.base.position.index) return null;
  follower.incoming = { base, next: 0 };
  return follower.incoming;
}

function answer(core: Core, to: NodeId, base: LogBase, next: number, installed: boolean): void {
  core.send(to, {
    kind: "snapshotAnswer",
    term: core.term,
    snapshotIndex: base.position.index,
    next,
    installed,
  });
}
