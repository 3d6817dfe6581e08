import type { DatabaseOperation } from "./database.js";
import { chunkKey, completeKey, entriesKey } from "./rows.js";

/** Keys in the order of the database, made one by one: a removal may be of many thousands. */
type Keys = Iterator<Buffer, undefined>;

/** What a compaction gives back the space of. */
interface KeyRange {
  readonly first: Buffer;
  readonly last: Buffer;
}

/**
 * Rows that are out of force and wait to be deleted. They go in small pieces along with later batches: one removal of everything
 * would hold up the log for hundreds of milliseconds. What is left at a crash is found at the next start.
 */
export class Garbage {
  readonly #queue: { readonly keys: Keys; range: KeyRange | null }[] = [];
  readonly #cleared: KeyRange[] = [];
  #rowsCleared = 0;

  /** Blocks of entries with these first indexes. */
  addBlocks(generation: number, firsts: readonly number[]): void {
    if (firsts.length > 0) this.#add(blockKeys(generation, firsts));
  }

  /** The chunks from 0 to `chunks` - 1 of one attempt at a snapshot. */
  addChunks(index: number, attempt: number, chunks: number): void {
    if (chunks > 0) this.#add(chunkKeys(index, attempt, chunks));
  }

  addComplete(index: number): void {
    this.#add([completeKey(index)].values());
  }

  #add(keys: Keys): void {
    this.#queue.push({ keys, range: null });
  }

  get isEmpty(): boolean {
    return this.#queue.length === 0;
  }

  /** Adds deletions of up to `rowsMax` rows to a batch. */
  take(rowsMax: number, operations: DatabaseOperation[]): void {
    for (let taken = 0; taken < rowsMax; ) {
      const part = this.#queue[0];
      if (part === undefined) return;
      const next = part.keys.next();
      if (next.done === true) {
        this.#queue.shift();
        if (part.range !== null) this.#cleared.push(part.range);
        continue;
      }
      operations.push({ type: "del", key: next.value });
      part.range = { first: part.range?.first ?? next.value, last: next.value };
      this.#rowsCleared++;
      taken++;
    }
  }

  /** The ranges whose rows have all been deleted since the last call, when they are `rowsMin` rows or more and nothing waits. */
  takeCleared(rowsMin: number): readonly KeyRange[] {
    if (!this.isEmpty || this.#rowsCleared < rowsMin) return [];
    this.#rowsCleared = 0;
    return this.#cleared.splice(0);
  }
}

function* blockKeys(generation: number, firsts: readonly number[]): Generator<Buffer, undefined> {
  for (const first of firsts) yield entriesKey(generation, first);
}

function* chunkKeys(index: number, attempt: number, chunks: number): Generator<Buffer, undefined> {
  for (let chunk = 0; chunk < chunks; chunk++) yield chunkKey(index, attempt, chunk);
}
