import type { LogBase, Restored } from "@holdfast/raft";
import assert from "node:assert/strict";
import { mkdir, realpath, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { lockDirectory } from "./directory-lock.js";
import type { DirectoryLock } from "./directory-lock.js";
import { isThere, syncDirectory } from "./files.js";
import { buildDatabase, buildingName, removeHalfFormed } from "./formation.js";
import {
  identityFile,
  identityFormatVersion,
  readIdentity,
  unknownInstance,
  writeIdentity,
  writeIdentityInstead,
} from "./identity.js";
import { markFile } from "./mark.js";
import { databaseName, openStore } from "./open-store.js";
import { StorageError, asStorageError, damaged } from "./storage-error.js";
import type { DataDirectory, DataDirectoryOptions, Identity, StorageLogger, Store } from "./types.js";

const silent: StorageLogger = { info: () => undefined, warn: () => undefined };

/**
 * Locks a node's data directory, checks everything in it, and opens it. Rejects with a StorageError; damage is by then written into
 * `identity`, and the directory refused for ever.
 */
export async function openDataDirectory(options: DataDirectoryOptions): Promise<DataDirectory> {
  let lock: DirectoryLock | null = null;
  try {
    const directory = await prepareDirectory(options.directory);
    lock = await lockDirectory(directory);
    const parts = { lock, logger: options.logger ?? silent, quarantining: quarantiningIn(directory, options) };
    return await parts.quarantining(async () => {
      const { before, now } = await takeIdentity(directory, options);
      const opened = new OpenedDirectory(directory, now, parts);
      await opened.start(before);
      return opened;
    });
  } catch (error) {
    await lock?.release();
    throw asStorageError(error, `opening the data directory ${options.directory}`);
  }
}

/** Makes it durably if it is missing. Returns its real path. */
export async function prepareDirectory(path: string): Promise<string> {
  const made = await mkdir(path, { recursive: true, mode: 0o700 });
  const directory = await realpath(path);
  if (made === undefined) return directory;
  // Each new name on the way there, or a power loss takes the whole directory.
  const first = await realpath(made);
  for (let name = directory; ; name = dirname(name)) {
    await syncDirectory(dirname(name));
    if (name === first) return directory;
  }
}

interface TakenIdentity {
  /** As it is on disk; null at the first start. */
  readonly before: Identity | null;
  readonly now: Identity;
}

async function takeIdentity(directory: string, options: DataDirectoryOptions): Promise<TakenIdentity> {
  const { nodeId, machineBootId } = options;
  const before = await readIdentity(directory);
  if (before === null) {
    await assertNew(directory);
    const instance = options.randomInstance();
    const formatVersion = identityFormatVersion;
    return {
      before,
      now: { formatVersion, nodeId, instance, clusterId: null, boot: 1, machineBootId, quarantine: null },
    };
  }
  if (before.nodeId !== nodeId) {
    throw new StorageError(
      "other_node",
      `the data directory ${directory} belongs to node ${before.nodeId}, and this is node ${nodeId}`,
    );
  }
  if (before.quarantine !== null) {
    throw new StorageError(
      "quarantined",
      `the data directory ${directory} was put into quarantine: ${before.quarantine}`,
    );
  }
  return { before, now: { ...before, boot: before.boot + 1, machineBootId } };
}

/** Throws damage when there is no identity, and something else says that there was one. */
export async function assertNew(directory: string): Promise<void> {
  if (await isThere(join(directory, buildingName)))
    throw damaged(identityFile, "the file is missing, and a restore into this directory was not finished");
  for (const name of [databaseName, markFile]) {
    if (await isThere(join(directory, name)))
      throw damaged(identityFile, `the file is missing, and there is a ${name}`);
  }
}

type Quarantining = <T>(run: () => Promise<T>) => Promise<T>;

/** Damage that `run` finds is written into `identity` before it is thrown on. */
function quarantiningIn(directory: string, options: DataDirectoryOptions): Quarantining {
  return async (run) => {
    try {
      return await run();
    } catch (error) {
      if (error instanceof StorageError && error.code === "damaged") {
        await writeQuarantine(directory, options, error.reason).catch((failure: unknown) => {
          // The damage stays, and the next start finds it again.
          options.logger?.warn({ err: failure }, "the quarantine could not be written");
        });
      }
      throw error;
    }
  };
}

async function writeQuarantine(directory: string, options: DataDirectoryOptions, quarantine: string): Promise<void> {
  const identity = await readIdentity(directory).catch((error: unknown) => {
    if (error instanceof StorageError && error.code === "damaged") return null;
    throw error;
  });
  if (identity !== null) {
    await writeIdentity(directory, { ...identity, quarantine });
    return;
  }
  const { nodeId, machineBootId } = options;
  const formatVersion = identityFormatVersion;
  await writeIdentityInstead(directory, {
    formatVersion,
    nodeId,
    instance: unknownInstance,
    clusterId: null,
    boot: 0,
    machineBootId,
    quarantine,
  });
}

interface DirectoryParts {
  readonly lock: DirectoryLock;
  readonly logger: StorageLogger;
  readonly quarantining: Quarantining;
}

class OpenedDirectory implements DataDirectory {
  readonly #directory: string;
  readonly #parts: DirectoryParts;
  #identity: Identity;
  #store: Store | null = null;
  #restored: Restored | null = null;

  constructor(directory: string, identity: Identity, parts: DirectoryParts) {
    this.#directory = directory;
    this.#identity = identity;
    this.#parts = parts;
  }

  get identity(): Identity {
    return this.#identity;
  }

  get restored(): Restored | null {
    return this.#restored;
  }

  get store(): Store | null {
    return this.#store;
  }

  /** Writes the identity of this start, once everything is known to be sound. */
  async start(before: Identity | null): Promise<void> {
    if (before !== null && before.clusterId !== null) {
      if (!(await isThere(join(this.#directory, databaseName))))
        throw damaged(databaseName, "the directory is missing");
      await this.#open(before.machineBootId !== this.#identity.machineBootId);
      return;
    }
    if (before !== null) await removeHalfFormed(this.#directory, before);
    // Left by a write of an identity or a mark that died; the next one would overwrite it.
    for (const name of [identityFile, markFile]) await rm(join(this.#directory, `${name}.tmp`), { force: true });
    await this.#writeIdentity(this.#identity);
    this.#parts.logger.info(
      { boot: this.#identity.boot, instance: this.#identity.instance },
      "data directory opened, not formed yet",
    );
  }

  async form(clusterId: string, base: LogBase): Promise<{ readonly store: Store; readonly restored: Restored }> {
    assert(this.#identity.clusterId === null && this.#store === null, "a node is formed once");
    const { nodeId, instance } = this.#identity;
    try {
      return await this.#parts.quarantining(async () => {
        await buildDatabase(this.#directory, { nodeId, instance, clusterId }, base);
        await this.#writeIdentity({ ...this.#identity, clusterId });
        return await this.#open(false);
      });
    } catch (error) {
      throw asStorageError(error, `forming the data directory ${this.#directory}`);
    }
  }

  async #open(machineRestarted: boolean): Promise<{ readonly store: Store; readonly restored: Restored }> {
    const { nodeId, instance, clusterId } = this.#identity;
    assert(clusterId !== null, "only a formed node has a database");
    const { store, restored } = await openStore(
      { directory: this.#directory, owner: { nodeId, instance, clusterId }, machineRestarted },
      {
        quarantine: (reason) => this.quarantine(reason),
        logger: this.#parts.logger,
        onSound: () => this.#writeIdentity(this.#identity),
        onFirstWrite: () => (this.#restored = null),
      },
    );
    this.#store = store;
    this.#restored = restored;
    const last = restored.entries.at(-1)?.index ?? restored.base.position.index;
    this.#parts.logger.info(
      { boot: this.#identity.boot, term: restored.hardState.term, base: restored.base.position.index, last },
      "database opened",
    );
    return { store, restored };
  }

  async quarantine(reason: string): Promise<void> {
    await this.#writeIdentity({ ...this.#identity, quarantine: reason });
  }

  async #writeIdentity(identity: Identity): Promise<void> {
    await writeIdentity(this.#directory, identity);
    this.#identity = identity;
  }

  async close(): Promise<void> {
    await this.#store?.close();
    await this.#parts.lock.release();
  }
}
