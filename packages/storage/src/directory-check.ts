/**
 * Everything that a start would look at in a node's directory, and more: each problem rather than the first, and nothing is changed, not even
 * for a quarantine. LevelDB is never asked to open it. Only the directory's lock is taken, whose own files nobody reads.
 */
import type { Entry, Restored } from "@holdfast/raft";
import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { assertNew } from "./data-directory.js";
import { lockDirectory } from "./directory-lock.js";
import { isThere } from "./files.js";
import { assertHalfFormed, buildingName } from "./formation.js";
import { identityFile, readIdentity } from "./identity.js";
import { markFile, readMark } from "./mark.js";
import { databaseName, verifyDatabase } from "./open-store.js";
import type { Verified } from "./open-store.js";
import type { ReadRows } from "./recovery.js";
import { chunkKey, decodeBlock, entriesKey, unseal } from "./rows.js";
import { StorageError, asStorageError, damaged } from "./storage-error.js";
import { readWholeRow, remainingRows } from "./stopped-directory.js";
import type { Identity, Store } from "./types.js";

export interface DirectoryCheck {
  /** Its real path. */
  readonly directory: string;
  /** Null when there is none, or none that can be read. */
  readonly identity: Identity | null;
  /** The newest batch that was finished, by the `mark` file; null when it is missing or can't be read. */
  readonly markedBatch: number | null;
  /** Why no node starts from it; empty when one would. */
  readonly problems: readonly StorageError[];
  /** Null when there is none, or when it is damaged. */
  readonly database: CheckedDatabase | null;
  /** What a restore by force would find in a damaged one; null when the database is sound, or nothing is left. */
  readonly remains: DirectoryRemains | null;
}

/** Every checksum and every chain value in it has been looked at. */
export interface CheckedDatabase {
  readonly batchNumber: number;
  readonly restored: Restored;
  /** All entries on the disk, in order; those that the snapshot covers too. Each is read when it is asked for. */
  entries(): Iterable<Entry>;
  readonly store: Pick<Store, "snapshot" | "readChunk">;
  /** Harmless ends of files, which the next start cuts off: the last write was interrupted before anybody was told of it. */
  readonly tails: readonly { readonly file: string; readonly found: string }[];
}

export interface DirectoryRemains {
  /** Null when the log's beginning is there. */
  readonly snapshotIndex: number | null;
  readonly lastIndex: number;
  /** What could not be read, each with its file. */
  readonly unreadable: readonly string[];
}

export interface DirectoryCheckOptions {
  readonly directory: string;
  /** From readMachineBootId(). */
  readonly machineBootId: string;
}

/** Rejects with StorageError: "locked" while a node runs there, "io" when it isn't a data directory, or its lock can't be taken. */
export async function checkDirectory(options: DirectoryCheckOptions): Promise<DirectoryCheck> {
  try {
    const directory = await realpath(options.directory);
    await assertDataDirectory(directory);
    const lock = await lockDirectory(directory);
    try {
      return await checkLocked(directory, options.machineBootId);
    } finally {
      await lock.release();
    }
  } catch (error) {
    throw asStorageError(error, `checking the data directory ${options.directory}`);
  }
}

/** Asked before its lock is made: somebody may have mistyped the name of any directory. */
async function assertDataDirectory(directory: string): Promise<void> {
  for (const name of [identityFile, databaseName, markFile, buildingName]) {
    if (await isThere(join(directory, name))) return;
  }
  throw new StorageError("io", `${directory} is no data directory: there is neither an identity nor a database in it`);
}

async function checkLocked(directory: string, machineBootId: string): Promise<DirectoryCheck> {
  const problems = new Problems();
  const identity = await problems.in(() => readIdentity(directory));
  if (identity === null && problems.found.length === 0) await problems.in(() => assertNew(directory));
  if (identity !== null && identity.quarantine !== null) problems.add(quarantined(directory, identity.quarantine));
  const instance = identity?.instance ?? null;
  // What a slot that is torn means is judged with the database.
  const markedBatch = instance === null ? null : await new Problems().in(() => readMark(directory, instance, true));
  const facts = { directory, identity, markedBatch };
  if (identity !== null && identity.clusterId === null) {
    await problems.in(() => assertHalfFormed(directory, identity));
    return { ...facts, problems: problems.found, database: null, remains: null };
  }
  const database = identity === null ? null : await problems.in(() => checkFormed(directory, identity, machineBootId));
  const remains = database === null ? await remainsIn(directory, identity) : null;
  return { ...facts, problems: problems.found, database, remains };
}

function quarantined(directory: string, reason: string): StorageError {
  return new StorageError("quarantined", `the data directory ${directory} was put into quarantine: ${reason}`);
}

async function checkFormed(directory: string, identity: Identity, machineBootId: string): Promise<CheckedDatabase> {
  const { nodeId, instance, clusterId } = identity;
  if (!(await isThere(join(directory, databaseName)))) throw damaged(databaseName, "the directory is missing");
  const owner = { nodeId, instance, clusterId: clusterId ?? "" };
  const machineRestarted = identity.machineBootId !== machineBootId;
  const verified = await verifyDatabase({ directory, owner, machineRestarted }, readWholeRow);
  const { complete, meta, restored } = verified.recovered;
  const readChunk: Store["readChunk"] = (index, chunk) => {
    const key = chunkKey(index, complete?.attempt ?? 0, chunk);
    const value = verified.rows.get(key.toString("latin1"))?.value ?? null;
    return Promise.resolve(value === null ? null : unseal(key, value));
  };
  return {
    batchNumber: meta.batchNumber,
    restored,
    entries: () => entriesIn(verified),
    store: { snapshot: complete === null ? null : { base: complete.base, chunks: complete.chunks }, readChunk },
    tails: verified.tails.map(({ file, found }) => ({ file, found })),
  };
}

function* entriesIn({ recovered, rows }: Verified): Generator<Entry, undefined> {
  const { blocks, meta } = recovered;
  for (const first of blocks) yield* blockAt(rows, entriesKey(meta.generation, first));
}

function blockAt(rows: ReadRows, key: Buffer): readonly Entry[] {
  const value = rows.get(key.toString("latin1"))?.value ?? null;
  return value === null ? [] : decodeBlock(key, value).entries;
}

/** Only for telling what is left; whatever goes wrong here has been found before. */
async function remainsIn(directory: string, identity: Identity | null): Promise<DirectoryRemains | null> {
  const path = join(directory, databaseName);
  const rest = await new Problems().in(async () => ((await isThere(path)) ? remainingRows(path, identity) : null));
  if (rest === null) return null;
  const { restored, complete, problems } = rest;
  return {
    snapshotIndex: complete?.base.position.index ?? null,
    lastIndex: restored.entries.at(-1)?.index ?? restored.base.position.index,
    unreadable: problems,
  };
}

/** Collects what is wrong with a directory. */
class Problems {
  readonly found: StorageError[] = [];

  add(problem: StorageError): void {
    this.found.push(problem);
  }

  /** Null when it has a problem; that the operating system refuses to read is one. */
  async in<T>(read: () => Promise<T>): Promise<T | null> {
    try {
      return await read();
    } catch (error) {
      this.add(asStorageError(error, "reading the data directory"));
      return null;
    }
  }
}
