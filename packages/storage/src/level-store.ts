import type { HardState, Index, LogBase } from "@holdfast/raft";
import assert from "node:assert/strict";
import type { Database, DatabaseOperation } from "./database.js";
import { Garbage } from "./garbage.js";
import { LogRows } from "./log-rows.js";
import type { Mark } from "./mark.js";
import type { NewNames } from "./new-names.js";
import type { Recovered } from "./recovery.js";
import { chunkKey, decodeBlock, encodeMeta, entriesKey, metaKey, unseal } from "./rows.js";
import type { Block } from "./rows.js";
import { SnapshotRows } from "./snapshot-rows.js";
import { FormatError, StorageError, asStorageError, damaged } from "./storage-error.js";
import type { SnapshotInfo, Store, StoreWrite } from "./types.js";

/** Deletions that go along with a batch: about 0.1 ms of it. */
const garbageRowsPerWrite = 64;
/** At a start nothing else waits. */
const garbageRowsPerCleaning = 1_024;
/** Fewer deleted rows than this aren't worth a compaction of their own: LevelDB's own ones come by. */
const compactedRowsMin = 1_024;

interface LevelStoreParts {
  readonly database: Database;
  readonly mark: Mark;
  readonly newNames: NewNames;
  /** Puts the directory into quarantine, durably. */
  readonly quarantine: (reason: string) => Promise<void>;
  /** What was recovered is the caller's by then. */
  readonly onFirstWrite: () => void;
}

/** The state in memory is that after the batch under way. A failure is final, so it never has to go back. */
export class LevelStore implements Store {
  readonly #parts: LevelStoreParts;
  readonly #firstBase: LogBase;
  readonly #log: LogRows;
  readonly #snapshots: SnapshotRows;
  readonly #garbage = new Garbage();
  #hardState: HardState;
  #batchNumber: number;
  /** The batch that is being put together: a block in it can't be read from the database yet. */
  #operations: DatabaseOperation[] = [];
  #writing: Promise<void> | null = null;
  #compacting: Promise<void> | null = null;
  #failure: Error | null = null;
  #isWrittenTo = false;

  constructor(recovered: Recovered, parts: LevelStoreParts) {
    const { meta, restored, blocks, complete } = recovered;
    this.#parts = parts;
    this.#firstBase = restored.base;
    this.#log = new LogRows({ generation: meta.generation, blocks, last: meta.last }, (generation, first) =>
      this.#readBlock(generation, first),
    );
    this.#snapshots = new SnapshotRows(complete);
    this.#hardState = meta.hardState;
    this.#batchNumber = meta.batchNumber;
  }

  get snapshot(): SnapshotInfo | null {
    const { newest } = this.#snapshots;
    return newest === null ? null : { base: newest.base, chunks: newest.chunks };
  }

  get #base(): LogBase {
    return this.#snapshots.newest?.base ?? this.#firstBase;
  }

  async write(write: StoreWrite): Promise<void> {
    if (!this.#isWrittenTo) this.#parts.onFirstWrite();
    this.#isWrittenTo = true;
    await this.#exclusively(() => this.#writeBatch(write));
  }

  /** Deletes rows that a crash left behind, before anything else is written. */
  async clean(keys: readonly Buffer[]): Promise<void> {
    for (let start = 0; start < keys.length; start += garbageRowsPerCleaning) {
      const part = keys.slice(start, start + garbageRowsPerCleaning);
      await this.#exclusively(async () => {
        this.#operations = part.map((key) => ({ type: "del", key }));
        await this.#commit();
      });
    }
  }

  async #exclusively(run: () => Promise<void>): Promise<void> {
    if (this.#failure !== null) throw this.#failure;
    assert(this.#writing === null, "one write is in flight at a time");
    const writing = run();
    this.#writing = writing;
    try {
      await writing;
      this.#writing = null;
    } catch (error) {
      throw await this.#fail(error, "a write to the database");
    }
  }

  async #writeBatch(write: StoreWrite): Promise<void> {
    const { hardState, truncateFrom, entries, chunk, removeThrough } = write;
    if (hardState === null && truncateFrom === null && entries.length === 0 && chunk === null && removeThrough === null)
      return;
    const operations: DatabaseOperation[] = [];
    this.#operations = operations;
    if (hardState !== null) this.#setHardState(hardState);
    if (truncateFrom !== null) await this.#log.truncate(truncateFrom, this.#base, operations);
    if (entries.length > 0) this.#log.append(entries, this.#base, operations);
    if (chunk !== null) {
      const base = this.#snapshots.addChunk(chunk, this.#batchNumber + 1, operations, this.#garbage);
      if (base !== null && chunk.origin === "received") await this.#log.install(base, this.#garbage);
      else if (base !== null) await this.#log.assertHolds(base);
    }
    if (removeThrough !== null) this.#remove(removeThrough);
    this.#garbage.take(garbageRowsPerWrite, operations);
    assert(this.#hardState.term >= this.#log.last.term, "the term is not older than the log's");
    await this.#commit();
    this.#maybeCompact();
  }

  #setHardState(next: HardState): void {
    const { term, votedFor } = this.#hardState;
    assert(next.term >= term, "the term does not fall");
    assert(next.term > term || votedFor === null || next.votedFor === votedFor, "a vote stands for its whole term");
    this.#hardState = next;
  }

  #remove(through: Index): void {
    assert(
      through <= (this.#snapshots.newest?.base.position.index ?? -1),
      "only what a complete snapshot covers is removed",
    );
    this.#log.remove(through, this.#garbage);
    this.#snapshots.removeOlder(this.#garbage);
  }

  async #commit(): Promise<void> {
    const { database, mark, newNames } = this.#parts;
    const batchNumber = ++this.#batchNumber;
    const value = encodeMeta({
      batchNumber,
      generation: this.#log.generation,
      firstIndex: this.#log.firstIndex,
      last: this.#log.last,
      snapshotIndex: this.#snapshots.newest?.base.position.index ?? null,
      hardState: this.#hardState,
    });
    this.#operations.push({ type: "put", key: metaKey, value });
    await database.writeSynced(this.#operations);
    this.#operations = [];
    const isNewLog = await newNames.syncIfChanged();
    await mark.write(batchNumber);
    // So the mark on disk is never older than the newest log file: the loss of that file shows even after a power loss.
    if (isNewLog) await mark.sync();
  }

  #maybeCompact(): void {
    if (this.#compacting !== null) return;
    const ranges = this.#garbage.takeCleared(compactedRowsMin);
    if (ranges.length === 0) return;
    const compact = async (): Promise<void> => {
      for (const { first, last } of ranges) await this.#parts.database.compact(first, last);
    };
    this.#compacting = compact().then(
      () => void (this.#compacting = null),
      async (error: unknown) => void (await this.#fail(error, "a compaction of the database")),
    );
  }

  async #readBlock(generation: number, first: number): Promise<Block> {
    const key = entriesKey(generation, first);
    const fresh = this.#operations.findLast((operation) => operation.key.equals(key));
    const value = fresh === undefined ? await this.#parts.database.get(key) : fresh.type === "put" ? fresh.value : null;
    const what = `the block of entries at index ${first}`;
    if (value === null) throw damaged("db", `${what} is missing`);
    try {
      return decodeBlock(key, value);
    } catch (error) {
      throw error instanceof FormatError ? damaged("db", `${what}: ${error.message}`, error) : error;
    }
  }

  async readChunk(snapshotIndex: Index, chunk: number): Promise<Uint8Array | null> {
    if (this.#failure !== null) throw this.#failure;
    const snapshot = this.#snapshots.at(snapshotIndex);
    if (snapshot === null || chunk >= snapshot.chunks) return null;
    const key = chunkKey(snapshotIndex, snapshot.attempt, chunk);
    try {
      const value = await this.#parts.database.get(key);
      // A removal that overtook this read may have begun to delete the rows.
      if (this.#snapshots.at(snapshotIndex) !== snapshot) return null;
      if (value === null) throw new FormatError("it is missing");
      return unseal(key, value);
    } catch (error) {
      const found = `chunk ${chunk} of the snapshot of index ${snapshotIndex}`;
      const problem = error instanceof FormatError ? damaged("db", `${found}: ${error.message}`, error) : error;
      throw await this.#fail(problem, `reading ${found}`);
    }
  }

  /** Final: what memory says and what the disk holds may differ from here on. */
  async #fail(error: unknown, doing: string): Promise<Error> {
    const failure = error instanceof assert.AssertionError ? error : asStorageError(error, doing);
    this.#failure ??= failure;
    if (failure instanceof StorageError && failure.code === "damaged") {
      await this.#parts.quarantine(failure.reason).catch(() => {
        // The disk refuses this too. The damage is still there at the next start, and is found again.
      });
    }
    return failure;
  }

  async close(): Promise<void> {
    this.#failure ??= new StorageError("io", "the store is closed");
    await this.#writing?.catch(() => undefined);
    await this.#compacting;
    await this.#parts.database.close();
    await this.#parts.newNames.close();
    await this.#parts.mark.close();
  }
}
