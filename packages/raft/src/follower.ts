/** The receiving side of replication (thesis 3.5): appends, heartbeats, and what a leader of an old term is told. */
import { InvariantError } from "./assert.js";
import type { Core } from "./core.js";
import { indexAfter, minIndex } from "./position.js";
import type { Follower } from "./role.js";
import type { Entry, Index, Message, NodeId, Position } from "./types.js";

type Append = Message & { readonly kind: "append" };

/**
 * A message that only a leader of the current term sends has come from `leader`. It restarts the election timeout; a candidate steps back
 * (thesis 3.4).
 */
export function follow(core: Core, leader: NodeId): Follower {
  const { role } = core;
  if (role.kind === "leader" || (role.kind === "follower" && role.leader !== null && role.leader !== leader)) {
    throw new InvariantError("at most one leader in a term", `${leader} and ${core.leader} in term ${core.term}`);
  }
  if (role.kind !== "follower" || role.leader === null) {
    return core.becomeFollower(core.term, leader, `heard leader ${leader}`);
  }
  role.heardMs = core.nowMs;
  core.drawElectionDeadline();
  return role;
}

export function onAppend(core: Core, from: NodeId, message: Append): void {
  follow(core, from);
  // The last chunk of a snapshot has just replaced the log and must reach the disk first: as if this append were lost.
  if (core.outbox.chunk?.done === true) return;
  if (!doesFit(core, message)) {
    core.send(from, {
      kind: "appendRejected",
      term: core.term,
      rejected: message.previous.index,
      hint: hintFor(core, message.previous),
    });
    return;
  }
  const { entries, previous } = message;
  const known = knownCount(core, entries);
  if (!isSound(core, entries, known)) return;
  const first = entries[known];
  if (first !== undefined && first.index <= core.log.lastIndex) core.truncateFrom(first.index);
  for (let at = known; at < entries.length; at += 1) core.append(entries[at] as Entry);
  // Only what this message has shown to be the leader's counts, not what may follow it in the own log.
  const verified = indexAfter(previous.index, entries.length);
  core.noteVerified(verified);
  core.advanceCommit(minIndex(message.commitIndex, verified));
  core.outbox.sendAccepted(from, { kind: "appendAccepted", term: core.term, matchIndex: verified });
}

export function onHeartbeat(core: Core, from: NodeId, message: Message & { readonly kind: "heartbeat" }): void {
  follow(core, from);
  core.advanceCommit(minIndex(message.commitIndex, core.verifiedIndex));
  core.send(from, { kind: "heartbeatAnswer", term: core.term, round: message.round });
}

/** A leader that was deposed without knowing it learns the later term from any answer. */
export function answerOldLeader(core: Core, from: NodeId, message: Message): void {
  const { term } = core;
  if (message.kind === "append") {
    core.send(from, { kind: "appendRejected", term, rejected: message.previous.index, hint: core.log.last });
  } else if (message.kind === "heartbeat") {
    core.send(from, { kind: "heartbeatAnswer", term, round: message.round });
  } else if (message.kind === "snapshotChunk") {
    const snapshotIndex = message.base.position.index;
    core.send(from, { kind: "snapshotAnswer", term, snapshotIndex, next: 0, installed: false });
  }
}

/** Whether the own log holds the entry before the message's (thesis 3.5, the consistency check). */
function doesFit(core: Core, message: Append): boolean {
  const { log } = core;
  const { previous, previousChain } = message;
  if (previous.index > log.lastIndex) return false;
  // Behind the base all is committed, hence equal to the leader's (leader completeness).
  if (previous.index < log.baseIndex) return true;
  if (log.termAt(previous.index) !== previous.term) {
    if (previous.index <= core.commitIndex) throw divergence(previous.index, "terms differ where the log is committed");
    return false;
  }
  if (log.chainAt(previous.index) !== previousChain) throw divergence(previous.index, "chain values differ");
  return true;
}

/** How many of the entries are in the own log already; the next one is new or takes the place of a conflicting one. */
function knownCount(core: Core, entries: readonly Entry[]): number {
  const { log } = core;
  let known = 0;
  for (; known < entries.length; known += 1) {
    const { index, term, chain } = entries[known] as Entry;
    if (index < log.baseIndex) continue;
    if (index > log.lastIndex) break;
    if (log.termAt(index) !== term) {
      if (index <= core.commitIndex) throw divergence(index, "another entry is committed");
      break;
    }
    if (log.chainAt(index) !== chain) throw divergence(index, "chain values differ");
  }
  return known;
}

/** Whether the entries from `known` on bear the chain values that follow from the own log, and can be read. */
function isSound(core: Core, entries: readonly Entry[], known: number): boolean {
  const first = entries[known];
  if (first === undefined) return true;
  let chain = core.log.chainAt(indexAfter(first.index, -1));
  for (let at = known; at < entries.length; at += 1) {
    const { index, term, kind, payload, chain: claimed } = entries[at] as Entry;
    if (chain === null) return false;
    chain = core.codec.chainFor(chain, index, term, kind, payload);
    if (chain !== claimed) return false;
    if (kind === "configuration" && !isConfiguration(core, payload)) return false;
  }
  return true;
}

function isConfiguration(core: Core, payload: Uint8Array): boolean {
  try {
    return core.codec.decodeConfiguration(payload).voters.length > 0;
  } catch {
    return false;
  }
}

/**
 * A position where the logs may agree: whole terms are skipped (thesis 3.5), so the search ends after as many rounds as there are terms to
 * skip. It never goes behind commitIndex: there the leader's terms are the own ones.
 */
function hintFor(core: Core, previous: Position): Position {
  const { log, commitIndex } = core;
  const index = log.lastIndexWithin(previous.index, previous.term) ?? commitIndex;
  return { term: log.termAt(index) ?? log.lastTerm, index };
}

function divergence(index: Index, facts: string): InvariantError {
  return new InvariantError("logs that agree at a position agree before it", `at index ${index} ${facts}`);
}
