/** What a node has on its disk, and the rules that a storage relies on. */
import assert from "node:assert/strict";
import type { Entry, HardState, Index, LogBase, Output, Restored, Term } from "../../src/index.js";

export class Disk {
  hardState: HardState = { term: 0 as Term, votedFor: null };
  base: LogBase;
  entries: Entry[] = [];
  /** Chunks of the complete snapshot at `base`; none for the first base. */
  snapshot: Uint8Array[] = [];
  #receiving: { base: LogBase; chunks: Uint8Array[] } | null = null;

  constructor(base: LogBase) {
    this.base = base;
  }

  get lastIndex(): number {
    return this.base.position.index + this.entries.length;
  }

  chainAt(index: number): number | null {
    if (index === this.base.position.index) return this.base.chain;
    return this.entries[index - this.base.position.index - 1]?.chain ?? null;
  }

  restored(): Restored {
    return { hardState: this.hardState, base: this.base, entries: [...this.entries] };
  }

  /** Several outputs may share a batch; what is checked is the order within it. */
  write(output: Output): void {
    const { hardState, truncateFrom, chunk, entries } = output;
    if (hardState !== null) {
      assert.ok(hardState.term >= this.hardState.term, "the stored term never falls");
      this.hardState = hardState;
    }
    if (truncateFrom !== null) {
      assert.ok(truncateFrom > this.base.position.index, "a snapshot's entries are not truncated");
      assert.ok(truncateFrom <= this.lastIndex, "there is something to truncate");
      this.entries = this.entries.filter((entry) => entry.index < truncateFrom);
    }
    if (chunk !== null) {
      if (chunk.chunk === 0) this.#receiving = { base: chunk.base, chunks: [] };
      assert.equal(this.#receiving?.base.position.index, chunk.base.position.index, "chunks belong together");
      assert.equal(this.#receiving?.chunks.length, chunk.chunk, "chunks come in order");
      this.#receiving?.chunks.push(chunk.bytes);
      if (chunk.done) this.#completeReceived(chunk.base);
    }
    for (const entry of entries) {
      assert.equal(entry.index, this.lastIndex + 1, "the stored log has no gap");
      this.entries.push(entry);
    }
  }

  /** The node's own snapshot; false when a newer one is there. */
  writeOwnSnapshot(base: LogBase, chunks: Uint8Array[]): boolean {
    if (base.position.index <= this.base.position.index) return false;
    assert.equal(this.chainAt(base.position.index), base.chain, "the stored log leads up to the snapshot");
    this.entries = this.entries.filter((entry) => entry.index > base.position.index);
    this.base = base;
    this.snapshot = chunks;
    return true;
  }

  chunk(index: Index, chunk: number): { bytes: Uint8Array | null; done: boolean } {
    const bytes = index === this.base.position.index ? (this.snapshot[chunk] ?? null) : null;
    return { bytes, done: chunk === this.snapshot.length - 1 };
  }

  #completeReceived(base: LogBase): void {
    assert.ok(base.position.index > this.base.position.index, "a received snapshot is newer");
    this.snapshot = this.#receiving?.chunks ?? [];
    this.#receiving = null;
    this.entries = this.entries.filter((entry) => entry.index > base.position.index);
    assert.deepEqual(this.entries, [], "the snapshot replaces the whole log");
    this.base = base;
  }
}
