import type { Index, LogBase } from "@holdfast/raft";
import assert from "node:assert/strict";
import type { DatabaseOperation } from "./database.js";
import type { Garbage } from "./garbage.js";
import { checksumOf, chunkKey, completeKey, encodeComplete, foldChecksum, seal } from "./rows.js";
import type { Complete } from "./rows.js";
import type { StoreWrite } from "./types.js";

type Chunk = NonNullable<StoreWrite["chunk"]>;

/** A snapshot whose last chunk is still to come. */
interface Incomplete {
  readonly base: LogBase;
  readonly attempt: number;
  chunks: number;
  checksum: number;
}

/**
 * The snapshots on disk. Each attempt at one has rows of its own, so that a transfer that begins anew, or an own snapshot at the same
 * index as a received one, never mixes its chunks with another's.
 */
export class SnapshotRows {
  readonly #complete = new Map<Index, Complete>();
  readonly #incomplete = new Map<Chunk["origin"], Incomplete>();
  #newest: Complete | null;

  constructor(complete: Complete | null) {
    this.#newest = complete;
    if (complete !== null) this.#complete.set(complete.base.position.index, complete);
  }

  get newest(): Complete | null {
    return this.#newest;
  }

  at(index: Index): Complete | null {
    return this.#complete.get(index) ?? null;
  }

  /** Returns the base if this chunk makes its snapshot the newest complete one. */
  addChunk(chunk: Chunk, batchNumber: number, operations: DatabaseOperation[], garbage: Garbage): LogBase | null {
    const snapshot = this.#attemptOf(chunk, batchNumber, garbage);
    const { index } = snapshot.base.position;
    const key = chunkKey(index, snapshot.attempt, chunk.chunk);
    const value = seal(key, chunk.bytes);
    operations.push({ type: "put", key, value });
    snapshot.chunks++;
    snapshot.checksum = foldChecksum(snapshot.checksum, checksumOf(value));
    if (!chunk.done) return null;
    this.#incomplete.delete(chunk.origin);
    return this.#finish(snapshot, operations, garbage);
  }

  #attemptOf(chunk: Chunk, batchNumber: number, garbage: Garbage): Incomplete {
    const known = this.#incomplete.get(chunk.origin);
    if (chunk.chunk === 0) {
      if (known !== undefined) garbage.addChunks(known.base.position.index, known.attempt, known.chunks);
      const begun = { base: chunk.base, attempt: batchNumber, chunks: 0, checksum: 0 };
      this.#incomplete.set(chunk.origin, begun);
      return begun;
    }
    assert(known !== undefined && known.chunks === chunk.chunk, "the chunks of a snapshot come in order");
    assert(
      known.base.position.index === chunk.base.position.index && known.base.chain === chunk.base.chain,
      "the chunks of a snapshot have one base",
    );
    return known;
  }

  #finish(snapshot: Incomplete, operations: DatabaseOperation[], garbage: Garbage): LogBase | null {
    const { base, attempt, chunks, checksum } = snapshot;
    const { index } = base.position;
    if (this.#complete.has(index)) {
      // The same state is there already, and may be on its way to somebody: the chunks of two attempts must not be mixed.
      garbage.addChunks(index, attempt, chunks);
      return null;
    }
    const complete: Complete = { base, attempt, chunks, checksum };
    this.#complete.set(index, complete);
    operations.push({ type: "put", key: completeKey(index), value: encodeComplete(complete) });
    if (this.#newest !== null && this.#newest.base.position.index > index) return null;
    this.#newest = complete;
    return base;
  }

  /** All complete snapshots but the newest become garbage. */
  removeOlder(garbage: Garbage): void {
    for (const [index, { attempt, chunks }] of this.#complete) {
      if (index === this.#newest?.base.position.index) continue;
      this.#complete.delete(index);
      garbage.addComplete(index);
      garbage.addChunks(index, attempt, chunks);
    }
  }
}
