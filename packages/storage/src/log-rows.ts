import type { Entry, Index, LogBase } from "@holdfast/raft";
import { entryCodec } from "@holdfast/wire";
import assert from "node:assert/strict";
import type { DatabaseOperation } from "./database.js";
import type { Garbage } from "./garbage.js";
import { encodeBlock, entriesKey } from "./rows.js";
import type { Block, ChainedPosition } from "./rows.js";

/** A block is read back as a whole when it is cut, and its msgpack has a limit: a flood of tiny entries makes several. */
const blockEntriesMax = 4_096;

interface LogRowsState {
  readonly generation: number;
  readonly blocks: readonly number[];
  readonly last: ChainedPosition;
}

/** Reads a block that must be there. Rejects with damage if it isn't. */
type ReadBlock = (generation: number, first: number) => Promise<Block>;

/**
 * The log on disk as blocks of entries, known by their first indexes. Each change adds its operations to a batch; the state here
 * is that after the batch, so after a failed batch this object is of no more use.
 */
export class LogRows {
  #generation: number;
  #blocks: number[];
  #last: ChainedPosition;
  readonly #readBlock: ReadBlock;

  constructor(state: LogRowsState, readBlock: ReadBlock) {
    this.#generation = state.generation;
    this.#blocks = [...state.blocks];
    this.#last = state.last;
    this.#readBlock = readBlock;
  }

  get generation(): number {
    return this.#generation;
  }

  get last(): ChainedPosition {
    return this.#last;
  }

  /** The first index of the first block; one above the last when there is none. */
  get firstIndex(): number {
    return this.#blocks[0] ?? this.#last.index + 1;
  }

  /**
   * The entries from `from` on are gone. A snapshot's base stays: what is cut at or below it was written before the core learnt
   * that the snapshot is complete, and is covered by it.
   */
  async truncate(from: Index, base: LogBase, operations: DatabaseOperation[]): Promise<void> {
    const keptTo = Math.max(from - 1, base.position.index);
    if (keptTo >= this.#last.index) return;
    let block: number | undefined;
    while ((block = this.#blocks.at(-1)) !== undefined && block > keptTo) {
      this.#blocks.pop();
      operations.push({ type: "del", key: entriesKey(this.#generation, block) });
    }
    if (block === undefined) {
      assert(keptTo === base.position.index, "what is kept of the log ends in a block or at the base");
      this.#last = { ...base.position, chain: base.chain };
      return;
    }
    const { previousChain, entries } = await this.#readBlock(this.#generation, block);
    const kept = entries.slice(0, keptTo - block + 1);
    const last = kept.at(-1);
    assert(last?.index === keptTo, "the last block reaches to the cut");
    this.#last = { index: last.index, term: last.term, chain: last.chain };
    if (kept.length === entries.length) return;
    const key = entriesKey(this.#generation, block);
    operations.push({ type: "put", key, value: encodeBlock(key, { previousChain, entries: kept }) });
  }

  /** Entries at or below the base are dropped: the snapshot that ends with it was completed while they were on their way. */
  append(entries: readonly Entry[], base: LogBase, operations: DatabaseOperation[]): void {
    let start = 0;
    for (let entry = entries[0]; entry !== undefined && entry.index <= base.position.index; entry = entries[start]) {
      if (entry.index === base.position.index) {
        assert(
          entry.term === base.position.term && entry.chain === base.chain,
          "an entry equals the base that covers it",
        );
      }
      start++;
    }
    for (; start < entries.length; start += blockEntriesMax) {
      this.#appendBlock(entries.slice(start, start + blockEntriesMax), operations);
    }
  }

  #appendBlock(entries: readonly Entry[], operations: DatabaseOperation[]): void {
    const previousChain = this.#last.chain;
    const first = this.#last.index + 1;
    for (const entry of entries) {
      assert(entry.index === this.#last.index + 1, "the log has no gap");
      assert(entry.term >= this.#last.term, "terms do not fall along the log");
      const chain = entryCodec.chainFor(this.#last.chain, entry.index, entry.term, entry.kind, entry.payload);
      assert(entry.chain === chain, "each entry is chained to the one before");
      this.#last = { index: entry.index, term: entry.term, chain };
    }
    const key = entriesKey(this.#generation, first);
    operations.push({ type: "put", key, value: encodeBlock(key, { previousChain, entries }) });
    this.#blocks.push(first);
  }

  /**
   * A received snapshot takes the log's place (IncomingChunk in @holdfast/raft). If the log has the base's index with the base's term and
   * chain value, it goes on behind the base: an equal chain value says that log and snapshot agree on everything before. If not, it is
   * empty behind the base.
   */
  async install(base: LogBase, garbage: Garbage): Promise<void> {
    const { index, term } = base.position;
    const at = await this.#positionAt(index);
    if (at !== null && at.term === term && at.chain === base.chain) return;
    garbage.addBlocks(this.#generation, this.#blocks);
    // A new generation empties the log at once, however many blocks it had.
    this.#generation++;
    this.#blocks = [];
    this.#last = { index, term, chain: base.chain };
  }

  /** An own snapshot ends with an entry of this log that is on disk. */
  async assertHolds(base: LogBase): Promise<void> {
    const at = await this.#positionAt(base.position.index);
    assert(
      at !== null && at.term === base.position.term && at.chain === base.chain,
      "an own snapshot ends with an entry of the log",
    );
  }

  async #positionAt(index: Index): Promise<ChainedPosition | null> {
    if (index === this.#last.index) return this.#last;
    const block = this.#blocks.findLast((first) => first <= index);
    if (block === undefined || index > this.#last.index) return null;
    const { entries } = await this.#readBlock(this.#generation, block);
    return entries[index - block] ?? null;
  }

  /** The blocks whose entries are all at or below `through` become garbage. */
  remove(through: Index, garbage: Garbage): void {
    let count = 0;
    while (count < this.#blocks.length && (this.#blocks[count + 1] ?? this.#last.index + 1) - 1 <= through) count++;
    garbage.addBlocks(this.#generation, this.#blocks.splice(0, count));
  }
}
