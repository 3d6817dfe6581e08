/** What a node that doesn't run has in its data directory, for making a backup out of it when the majority is lost. */
import type { Restored } from "@holdfast/raft";
import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { openDataDirectory } from "./data-directory.js";
import { lockDirectory } from "./directory-lock.js";
import { readIdentity } from "./identity.js";
import { mergedRows, readDatabaseFiles } from "./leveldb/database-files.js";
import { databaseName } from "./open-store.js";
import { readRow, recover } from "./recovery.js";
import type { ReadRow } from "./recovery.js";
import { chunkKey, unseal } from "./rows.js";
import { StorageError, asStorageError } from "./storage-error.js";
import type { Identity, StorageLogger, Store } from "./types.js";

export interface StoppedDirectoryOptions {
  readonly directory: string;
  /** From readMachineBootId(). */
  readonly machineBootId: string;
  /**
   * Take what can be read, although the directory is in quarantine or holds less than was promised. Nothing in it is changed then, but
   * for its lock.
   */
  readonly force: boolean;
  readonly logger?: StorageLogger;
}

export interface StoppedDirectory {
  readonly nodeId: string;
  readonly clusterId: string;
  readonly restored: Restored;
  readonly store: Pick<Store, "snapshot" | "readChunk">;
  /** Why no node starts from it; null when one would. */
  readonly problem: string | null;
  /** Gives the directory free. */
  close(): Promise<void>;
}

/** Rejects with StorageError. Without `force` the checks are those of a start, and damage is put into quarantine as it does. */
export async function openStoppedDirectory(options: StoppedDirectoryOptions): Promise<StoppedDirectory> {
  try {
    // A start would make what is missing.
    const directory = await realpath(options.directory);
    return options.force ? await openForced(directory) : await openSound(directory, options);
  } catch (error) {
    throw asStorageError(error, `opening the data directory ${options.directory}`);
  }
}

async function openSound(directory: string, options: StoppedDirectoryOptions): Promise<StoppedDirectory> {
  const identity = await readIdentity(directory);
  if (identity === null) throw new StorageError("io", `${directory} is no data directory: it has no identity`);
  const opened = await openDataDirectory({
    directory,
    nodeId: identity.nodeId,
    machineBootId: options.machineBootId,
    randomInstance: () => identity.instance,
    ...(options.logger === undefined ? {} : { logger: options.logger }),
  });
  const { restored, store } = opened;
  const { nodeId, clusterId } = opened.identity;
  if (restored === null || store === null || clusterId === null) {
    await opened.close();
    throw new StorageError("io", `${directory} was never part of a cluster: there is nothing in it`);
  }
  return { nodeId, clusterId, restored, store, problem: null, close: () => opened.close() };
}

/** Reads the files without LevelDB, and without asking how far they should reach. */
async function openForced(directory: string): Promise<StoppedDirectory> {
  const lock = await lockDirectory(directory);
  try {
    const identity = await identityOrProblem(directory);
    const path = join(directory, databaseName);
    const files = await readDatabaseFiles({ path, name: databaseName, machineRestarted: true }, readWholeRow);
    const rows = mergedRows(files, readWholeRow);
    const { owner, restored, complete } = recover(databaseName, rows);
    const readChunk: Store["readChunk"] = (index, chunk) => {
      const key = chunkKey(index, complete?.attempt ?? 0, chunk);
      const value = rows.get(key.toString("latin1"))?.value ?? null;
      return Promise.resolve(value === null ? null : unseal(key, value));
    };
    const snapshot = complete === null ? null : { base: complete.base, chunks: complete.chunks };
    const { nodeId, clusterId } = owner;
    const problem = typeof identity === "string" ? identity : (identity?.quarantine ?? null);
    return { nodeId, clusterId, restored, store: { snapshot, readChunk }, problem, close: () => lock.release() };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function identityOrProblem(directory: string): Promise<Identity | string | null> {
  try {
    return await readIdentity(directory);
  } catch (error) {
    if (error instanceof StorageError && error.code === "damaged") return error.reason;
    throw error;
  }
}

/** The chunks of snapshots too: nothing else will read them. */
function readWholeRow(key: Buffer, value: Buffer): ReadRow {
  const row = readRow(key, value);
  return row.problem === null ? { ...row, value } : row;
}
