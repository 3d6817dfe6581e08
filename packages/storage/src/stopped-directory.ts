/** What a node that doesn't run has in its data directory, for making a backup out of it when the majority is lost. */
import type { Restored } from "@holdfast/raft";
import { readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { assertNew, openDataDirectory } from "./data-directory.js";
import { lockDirectory } from "./directory-lock.js";
import { readIdentity } from "./identity.js";
import { mergedRows, readDatabaseFiles } from "./leveldb/database-files.js";
import { readRemains } from "./leveldb/remains.js";
import { readMark } from "./mark.js";
import { databaseName } from "./open-store.js";
import { readRow, recover } from "./recovery.js";
import type { ReadRow, ReadRows } from "./recovery.js";
import { recoverRemains } from "./remains.js";
import type { Remains } from "./remains.js";
import { chunkKey, unseal } from "./rows.js";
import { StorageError, asStorageError, codeOf } from "./storage-error.js";
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

/**
 * Unix milliseconds when something in it was written last, by the clock of then: no later than now unless a clock went back. To be asked
 * before the directory is opened, which writes. Rejects with StorageError.
 */
export async function newestWriteMs(directory: string): Promise<number> {
  try {
    let newest = 0;
    for (const file of await readdir(directory, { recursive: true, withFileTypes: true })) {
      const found = await stat(join(file.parentPath, file.name)).catch((error: unknown) => {
        // Of a node that runs after all: its lock will say so.
        if (codeOf(error) === "ENOENT") return null;
        throw error;
      });
      newest = Math.max(newest, Math.floor(found?.mtimeMs ?? 0));
    }
    return newest;
  } catch (error) {
    throw asStorageError(error, `reading the data directory ${directory}`);
  }
}

async function openSound(directory: string, options: StoppedDirectoryOptions): Promise<StoppedDirectory> {
  const identity = await readIdentity(directory);
  if (identity === null) {
    await assertNew(directory);
    throw new StorageError(
      "io",
      `${directory} is no data directory: there is neither an identity nor a database in it`,
    );
  }
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
    const { identity, problem } = await identityIn(directory);
    const path = join(directory, databaseName);
    const found = await soundRows(directory).catch(async (error: unknown) => {
      if (!(error instanceof StorageError) || error.code !== "damaged") throw error;
      return remainingRows(path, identity);
    });
    const { rows, owner, restored, complete, problems } = found;
    const readChunk: Store["readChunk"] = (index, chunk) => {
      const key = chunkKey(index, complete?.attempt ?? 0, chunk);
      const value = rows.get(key.toString("latin1"))?.value ?? null;
      return Promise.resolve(value === null ? null : unseal(key, value));
    };
    const snapshot = complete === null ? null : { base: complete.base, chunks: complete.chunks };
    const all = distinct([...(problem === null ? [] : [problem]), ...problems]);
    return {
      nodeId: owner.nodeId,
      clusterId: owner.clusterId,
      restored,
      store: { snapshot, readChunk },
      problem: all.length === 0 ? null : all.join("; "),
      close: () => lock.release(),
    };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

interface ForcedRows extends Omit<Remains, "missing"> {
  readonly rows: ReadRows;
  readonly problems: readonly string[];
}

/** A last record that is torn is dropped here; only the mark knows whether it had been finished. */
async function soundRows(directory: string): Promise<ForcedRows> {
  const path = join(directory, databaseName);
  const files = await readDatabaseFiles({ path, name: databaseName, machineRestarted: true }, readWholeRow);
  const rows = mergedRows(files, readWholeRow);
  const { owner, meta, restored, complete } = recover(databaseName, rows);
  const problem = await markProblem(directory, owner.instance, meta.batchNumber);
  return { rows, owner, restored, complete, problems: problem === null ? [] : [problem] };
}

async function markProblem(directory: string, instance: string, batchNumber: number): Promise<string | null> {
  try {
    const mark = await readMark(directory, instance, true);
    if (mark === null) return "the mark is missing: nobody knows how many batches there were";
    return mark <= batchNumber ? null : `it ends with batch ${batchNumber}, and batch ${mark} was finished`;
  } catch (error) {
    if (error instanceof StorageError && error.code === "damaged") return error.reason;
    throw error;
  }
}

export async function remainingRows(path: string, identity: Identity | null): Promise<ForcedRows> {
  const { rows, problems } = await readRemains(path, databaseName, readWholeRow);
  const clusterId = identity?.clusterId ?? null;
  const known = identity === null || clusterId === null ? null : { nodeId: identity.nodeId, clusterId };
  const { missing, ...remains } = recoverRemains(databaseName, rows, known);
  return { ...remains, rows, problems: missing === null ? problems : [...problems, missing] };
}

/** A quarantine says again what was found at that start, and is there still. */
function distinct(problems: readonly string[]): readonly string[] {
  return problems.filter((one, at) => !problems.slice(0, at).some((earlier) => earlier.includes(one)));
}

/** A quarantine, or an identity that is missing or can't be read, is the `problem`. */
async function identityIn(
  directory: string,
): Promise<{ readonly identity: Identity | null; readonly problem: string | null }> {
  try {
    const identity = await readIdentity(directory);
    if (identity === null) await assertNew(directory);
    return { identity, problem: identity?.quarantine ?? null };
  } catch (error) {
    if (error instanceof StorageError && error.code === "damaged") return { identity: null, problem: error.reason };
    throw error;
  }
}

/** The chunks of snapshots too: nothing else will read them. */
export function readWholeRow(key: Buffer, value: Buffer): ReadRow {
  const row = readRow(key, value);
  return row.problem === null ? { ...row, value } : row;
}
