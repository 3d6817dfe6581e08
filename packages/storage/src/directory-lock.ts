/**
 * One process for one data directory. The lock has to be there before anything else is, and has to vanish with its process: so it is one
 * that the kernel keeps. Node itself offers none (a file made with O_EXCL outlives a kill; an abstract socket is Linux only, and is
 * another one in another network namespace although both containers share the volume). LevelDB takes a record lock (fcntl) on
 * its LOCK file on every system, so an empty LevelDB of its own in `lock/` is the lock.
 *
 * Nobody ever reads that database, so its files need no care, but for two rules: its LOCK file is never deleted (a second file of
 * that name would be a second lock), and never opened by our own process (closing any descriptor of a file drops a process's record locks).
 */
import { Level } from "level";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { StorageError, codeOf, rootOf } from "./storage-error.js";

export interface DirectoryLock {
  release(): Promise<void>;
}

const attempts = 5;

/** `directory` must be a real path: LevelDB tells the locks of one process apart by their path. */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  const path = join(directory, "lock");
  const pidFile = join(path, "pid");
  await mkdir(path, { recursive: true, mode: 0o700 });
  for (let attempt = 1; ; attempt++) {
    const database = new Level(path, { createIfMissing: true, cacheSize: 0, writeBufferSize: 65_536 });
    try {
      await database.open();
      await writeFile(pidFile, `${process.pid}\n`);
      return { release: () => database.close() };
    } catch (error) {
      await database.close();
      if (codeOf(rootOf(error)) === "LEVEL_LOCKED") throw await lockedError(directory, pidFile, error);
      if (attempt === attempts) throw error;
      // The database is unusable, after a power loss for example: begin a new one. Another process may be doing the same at this moment.
      for (const name of await readdir(path))
        if (name !== "LOCK") await rm(join(path, name), { force: true, recursive: true });
      await delay(attempt * 5);
    }
  }
}

async function lockedError(directory: string, pidFile: string, cause: unknown): Promise<StorageError> {
  // It may have taken the lock only just now, and not have written its number yet.
  const pid = await readFile(pidFile, "latin1").catch(() => "");
  const holder = /^\d+\n$/.test(pid) ? `process ${pid.trim()}` : "another process";
  return new StorageError("locked", `the data directory ${directory} is in use by ${holder}`, cause);
}
