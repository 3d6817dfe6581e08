/**
 * Walks the state piece by piece while entries go on being applied: the pieces show it as it was when the walk began (copy-on-write.ts).
 * The work of one piece is bounded by its size and by the requests of one session.
 */
import { assert } from "./assert.js";
import { pieceBytesMax } from "./limits.js";
import { endRecord, estimateBytes, headerRecord, restoredRecord, signingKeysRecord } from "./snapshot-records.js";
import type { SnapshotPiece, SnapshotRecord } from "./snapshot-records.js";
import type { State } from "./state.js";

export class SnapshotCursor {
  private readonly state: State;
  /** Written ahead of the pieces: one session's records, or what was about to change. */
  private readonly pending: SnapshotRecord[] = [];
  private taken = 0;
  private readonly walk: Iterator<undefined>;
  private closed = false;
  private atEnd = false;

  constructor(state: State) {
    this.state = state;
    this.pending.push(headerRecord(state.lastIndex, state.ended.list(), state.clusterVersion));
    // Part of format 1 from the first release on: whatever runs this cluster version can read it.
    if (state.restoredIndex > 0) this.pending.push(restoredRecord(state.restoredIndex, state.closedMs));
    if (state.signingKey !== null) this.pending.push(signingKeysRecord(state.signingKey, state.formerKeys));
    state.cow.begin(this.pending);
    this.walk = this.steps();
  }

  get isClosed(): boolean {
    return this.closed;
  }

  /**
   * The next records, at most `budget` (at least one) and at most 192,000 bytes in a codec unless one record alone is longer. Null at the
   * end, and from then on; the end closes the cursor.
   */
  next(budget: number): SnapshotPiece | null {
    if (this.atEnd) return null;
    assert(!this.closed, "a snapshot that was given up has no end");
    const piece: SnapshotRecord[] = [];
    let bytes = 0;
    for (let record = this.peek(); record !== null; record = this.peek()) {
      bytes += estimateBytes(record);
      if (piece.length > 0 && (piece.length >= budget || bytes > pieceBytesMax)) return piece;
      piece.push(record);
      this.taken += 1;
    }
    if (piece.length > 0) return piece;
    this.atEnd = true;
    this.close();
    return null;
  }

  /** Gives the snapshot up, or ends it; entries are applied without copies from now on. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.state.cow.end();
    this.pending.length = 0;
  }

  private peek(): SnapshotRecord | null {
    while (this.taken >= this.pending.length) {
      this.pending.length = 0;
      this.taken = 0;
      if (this.walk.next().done === true) return null;
    }
    return this.pending[this.taken] ?? null;
  }

  /** Each step adds to `pending` through the copy-on-write, or nothing where all was saved before. Maps may change between steps. */
  private *steps(): Generator<undefined> {
    const { cow, sessionShards, lockShards } = this.state;
    for (const { byId } of sessionShards) {
      for (const session of byId.values()) {
        cow.saveSession(session);
        for (const request of session.requests) cow.saveRequest(session, request);
        yield;
      }
    }
    for (const { delayed } of lockShards) {
      for (const lock of delayed) {
        for (const delay of lock.delays ?? []) cow.saveDelay(lock, delay);
        yield;
      }
    }
    // Nothing is left that could be saved later: every record made before the walk bears this snapshot's number by now.
    const { sessions, requests, delays } = cow.counts;
    this.pending.push(endRecord(sessions, requests, delays));
    yield;
  }
}
