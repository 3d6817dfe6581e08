import { link, mkdir, open, readdir, stat, unlink } from "node:fs/promises";
import path from "node:path";

import { IncompatibleResourceError } from "../errors.js";
import type { FenceRegister, FencedRecord, VersionedRecord } from "../guard.js";
import { nullIfMissing, readVersion, versionName, versionNumbers, writeTemporary } from "./version-file.js";
import type { StoredVersion } from "./version-file.js";

/**
 * Older versions stay for readers that have seen their name and not yet opened them, and to tell a late writer that it is late. So
 * few that a directory's names come in one system call.
 */
const versionsKept = 16;

/** What it needs of a version to follow it. */
type Seen = Pick<StoredVersion, "number"> & { readonly writeId: string };

/** Temporary files of writers that died. A writer that still works on one after this time finds it gone and fails. */
const temporaryAgeMsMax = 24 * 60 * 60_000;

/**
 * Versions are numbered files that never change. link(2) makes the next number whole, and fails when somebody has it already: that
 * is the compare-and-set. The highest number counts.
 */
export class VersionRegister implements FenceRegister<Buffer, Seen> {
  readonly #folderOf: (resource: string) => string;

  constructor(folderOf: (resource: string) => string) {
    this.#folderOf = folderOf;
  }

  async read(resource: string): Promise<VersionedRecord<Buffer, Seen> | null> {
    const folder = this.#folderOf(resource);
    for (;;) {
      const newest = (await numbersIn(folder)).at(-1);
      if (newest === undefined) return null;
      const found = await readVersion(folder, newest, resource);
      // It was there, and is gone: at least `versionsKept` newer ones have come since.
      if (found === null) continue;
      return { record: found.record, version: { number: newest, writeId: found.record.writeId } };
    }
  }

  async compareAndSet(resource: string, expected: Seen | null, record: FencedRecord<Buffer>): Promise<boolean | Error> {
    const folder = this.#folderOf(resource);
    const version = { number: (expected?.number ?? 0) + 1, record, previous: expected?.writeId ?? null };
    const isLinked = await publish(folder, resource, version);
    if (isLinked !== true) return isLinked;
    await syncFolder(folder);
    if (!(await this.#isInPlace(resource, expected, version))) {
      await unlink(path.join(folder, versionName(version.number))).catch(nullIfMissing);
      return false;
    }
    await removeOld(folder, version.number);
    return true;
  }

  /**
   * A number is free because it is the next one, or because it was removed long ago: a writer that slept between its look and its link
   * must tell the two apart. Versions are removed in ascending order and the highest never is, so readers never see the late one.
   */
  async #isInPlace(resource: string, expected: Seen | null, version: StoredVersion): Promise<boolean> {
    const folder = this.#folderOf(resource);
    if (expected !== null) {
      // While the one before is there, the number after it was never removed. It must be that one, and no late writer's.
      const before = await readVersion(folder, expected.number, resource);
      if (before?.record.writeId === expected.writeId) return true;
    }
    for (;;) {
      const numbers = await numbersIn(folder);
      if (numbers.at(-1) === version.number) return true;
      if (!numbers.includes(version.number)) {
        throw new Error(`${versionsKept} versions of ${resource} were written while this one was looked after`);
      }
      // Higher ones are there. In place, this one would have been removed before the next.
      if (!numbers.includes(version.number + 1)) return false;
      const next = await readVersion(folder, version.number + 1, resource);
      if (next !== null) return next.previous === version.record.writeId;
    }
  }
}

async function numbersIn(folder: string): Promise<number[]> {
  return versionNumbers((await readdir(folder).catch(nullIfMissing)) ?? []);
}

/** True when the version has its name; else it surely hasn't: false when the name is taken, or what stood in the way. */
async function publish(folder: string, resource: string, version: StoredVersion): Promise<boolean | Error> {
  let temporary: string | null = null;
  try {
    if (version.previous === null) await makeFolder(folder);
    temporary = await writeTemporary(folder, resource, version);
    await link(temporary, path.join(folder, versionName(version.number)));
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return false;
    if (code === "EPERM" || code === "ENOTSUP" || code === "ENOSYS" || code === "EOPNOTSUPP") {
      return new IncompatibleResourceError(resource, `the file system of ${folder} has no hard links (${code})`);
    }
    if (error instanceof Error) return error;
    throw error;
  } finally {
    // What can't be removed now is removed as too old some day.
    if (temporary !== null) await unlink(temporary).catch(() => undefined);
  }
}

/** A new directory's own name must be on the disk, too. */
async function makeFolder(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true });
  if (first === undefined) return;
  for (let made = folder; made.length >= first.length; made = path.dirname(made)) await syncFolder(path.dirname(made));
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** In ascending order: isInPlace rests on it. Not synced: what comes back after a power failure is older than the newest. */
async function removeOld(folder: string, newest: number): Promise<void> {
  const names = await readdir(folder);
  for (const number of versionNumbers(names).filter((each) => each <= newest - versionsKept)) {
    await unlink(path.join(folder, versionName(number))).catch(nullIfMissing);
  }
  for (const name of names.filter((each) => each.endsWith(".tmp"))) {
    const file = path.join(folder, name);
    const found = await stat(file).catch(nullIfMissing);
    if (found !== null && Date.now() - found.mtimeMs > temporaryAgeMsMax) await unlink(file).catch(nullIfMissing);
  }
}
