/**
 * Makes the data directory of a cluster that a restore begins: formed, with one snapshot and no entries. All of it is built in a folder
 * inside, and moved to its place with `identity` last: a crash leaves a directory that no node starts from, or the whole one.
 */
import type { LogBase } from "@holdfast/raft";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { openDataDirectory, prepareDirectory } from "./data-directory.js";
import { syncDirectory } from "./files.js";
import { buildingName } from "./formation.js";
import { identityFile } from "./identity.js";
import { markFile } from "./mark.js";
import { databaseName } from "./open-store.js";
import { asStorageError, StorageError } from "./storage-error.js";
import type { Store } from "./types.js";

export interface RestoredDirectoryOptions {
  readonly directory: string;
  readonly nodeId: string;
  readonly instance: string;
  readonly clusterId: string;
  readonly machineBootId: string;
  /** What the snapshot ends with; its term is the first of the new cluster. */
  readonly base: LogBase;
  /** The state at `base`; at least one. */
  readonly chunks: Iterable<Uint8Array>;
}

/** The directory is somebody's, or the rest of a restore that was cut off. */
export class DirectoryNotEmptyError extends Error {
  constructor(directory: string, name: string) {
    super(`${directory} is not empty: it has ${name}`);
    this.name = "DirectoryNotEmptyError";
  }
}

/** What the root of a file system of its own may have. */
const harmlessNames: readonly string[] = ["lost+found"];

/** Durable when it resolves. Rejects with DirectoryNotEmptyError or StorageError. */
export async function makeRestoredDirectory(options: RestoredDirectoryOptions): Promise<void> {
  try {
    const directory = await prepareDirectory(options.directory);
    await assertEmpty(directory);
    const building = join(directory, buildingName);
    await mkdir(building, { mode: 0o700 });
    await syncDirectory(directory);
    await build(building, options);
    for (const name of [databaseName, markFile]) await rename(join(building, name), join(directory, name));
    await syncDirectory(directory);
    await rename(join(building, identityFile), join(directory, identityFile));
    await syncDirectory(directory);
    await rm(building, { recursive: true });
  } catch (error) {
    if (error instanceof DirectoryNotEmptyError) throw error;
    throw asStorageError(error, `making the data directory ${options.directory}`);
  }
}

/** Rejects with DirectoryNotEmptyError, or StorageError when it can't be read; a directory that isn't there is empty. */
export async function assertEmpty(directory: string): Promise<void> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    if (error.code === "ENOTDIR") throw new StorageError("io", `${directory} is no directory`, error);
    throw asStorageError(error, `reading the directory ${directory}`);
  });
  const name = names.find((each) => !harmlessNames.includes(each));
  if (name !== undefined) throw new DirectoryNotEmptyError(directory, name);
}

async function build(building: string, options: RestoredDirectoryOptions): Promise<void> {
  const { nodeId, instance, clusterId, machineBootId, base, chunks } = options;
  const opened = await openDataDirectory({
    directory: building,
    nodeId,
    machineBootId,
    randomInstance: () => instance,
  });
  try {
    const { store } = await opened.form(clusterId, base);
    await writeSnapshot(store, base, chunks);
  } finally {
    await opened.close();
  }
}

async function writeSnapshot(store: Store, base: LogBase, chunks: Iterable<Uint8Array>): Promise<void> {
  const nothing = { hardState: null, truncateFrom: null, entries: [], removeThrough: null };
  const all = chunks[Symbol.iterator]();
  let next = all.next();
  for (let chunk = 0; next.done !== true; chunk += 1) {
    const bytes = next.value;
    next = all.next();
    await store.write({ ...nothing, chunk: { base, chunk, bytes, done: next.done === true, origin: "own" } });
  }
}
