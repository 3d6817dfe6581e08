/** Backup files on disk: written whole or not at all, and read with every byte checked. */
import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { link, lstat, open, rename, rm } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { getSystemErrorMap } from "node:util";
import { BackupDecoder } from "./backup-format.js";
import type { BackupHeader, BackupRecord } from "./backup-format.js";
import { syncDirectory } from "./files.js";
import { codeOf } from "./storage-error.js";

/** There is a file of that name, and nobody said that it may be replaced. */
export class BackupExistsError extends Error {
  constructor(path: string) {
    super(`${path} exists already`);
    this.name = "BackupExistsError";
  }
}

/** What has that name is no file, and is never replaced: a device, a folder, a link to what somebody else keeps elsewhere. */
export class NotAFileError extends Error {
  constructor(path: string, kind: string) {
    super(`${path} is ${kind}`);
    this.name = "NotAFileError";
  }
}

/** The operating system refuses to read or write it. */
export class BackupFileError extends Error {
  constructor(path: string, what: "read" | "written", cause: NodeJS.ErrnoException) {
    super(`${path} can't be ${what}: ${systemWords(cause)}`, { cause });
    this.name = "BackupFileError";
  }
}

export interface WrittenBackup {
  readonly header: BackupHeader;
  readonly bytes: number;
  readonly chunks: number;
}

/**
 * Writes what comes, checks it as it comes, and gives it its name when it is whole and synced. Rejects with BackupError for bytes that
 * are no whole backup, BackupExistsError, NotAFileError, BackupFileError, or what the source says; then there is no file of that name but
 * one that was there before.
 */
export async function writeBackupFile(
  path: string,
  source: AsyncIterable<Uint8Array>,
  options: { readonly overwrite: boolean },
): Promise<WrittenBackup> {
  try {
    return await writeFile(path, source, options.overwrite);
  } catch (error) {
    throw isSystemError(error) ? new BackupFileError(path, "written", error) : error;
  }
}

async function writeFile(path: string, source: AsyncIterable<Uint8Array>, overwrite: boolean): Promise<WrittenBackup> {
  // Asked before anything is fetched, and again when the file gets its name.
  await assertFree(path, overwrite);
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  const handle = await open(temporary, "wx", 0o600);
  try {
    let written: WrittenBackup;
    try {
      written = await copyChecked(handle, source);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await assertFree(path, overwrite);
    if (overwrite) await rename(temporary, path);
    else await giveNewName(temporary, path);
    await syncDirectory(dirname(path));
    return written;
  } finally {
    await rm(temporary, { force: true });
  }
}

/** A rename would take the name from whatever has it. */
async function assertFree(path: string, overwrite: boolean): Promise<void> {
  const kind = await kindAt(path);
  if (kind === null) return;
  if (kind !== "a file") throw new NotAFileError(path, kind);
  if (!overwrite) throw new BackupExistsError(path);
}

/** Null when nothing has that name. A link is not followed. */
async function kindAt(path: string): Promise<string | null> {
  const found = await lstat(path).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  });
  if (found === null) return null;
  if (found.isFile()) return "a file";
  if (found.isDirectory()) return "a folder";
  return found.isSymbolicLink() ? "a symbolic link" : "a device, pipe or socket";
}

async function copyChecked(handle: FileHandle, source: AsyncIterable<Uint8Array>): Promise<WrittenBackup> {
  const decoder = new BackupDecoder();
  let header: BackupHeader | null = null;
  let chunks = 0;
  for await (const bytes of source) {
    for (const record of decoder.push(bytes)) {
      if (record.kind === "header") ({ header } = record);
      else if (record.kind === "end") ({ chunks } = record);
    }
    await handle.writeFile(bytes);
  }
  decoder.finish();
  if (header === null) throw new Error("a whole backup has a header");
  return { header, bytes: decoder.checkedBytes, chunks };
}

/** A link, unlike a rename, takes no existing name. Where the file system has no links the name is looked at just before. */
async function giveNewName(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path);
  } catch (error) {
    if (codeOf(error) === "EEXIST" || (await kindAt(path)) !== null) throw new BackupExistsError(path);
    await rename(temporary, path);
  }
}

const readBytes = 262_144;

/** The records of a whole file, each checked; the last one is its end. Throws BackupError, at the latest there, or BackupFileError. */
export async function* readBackupFile(path: string): AsyncGenerator<BackupRecord> {
  const decoder = new BackupDecoder();
  try {
    for await (const bytes of createReadStream(path, { highWaterMark: readBytes })) {
      yield* decoder.push(bytes as Buffer);
    }
  } catch (error) {
    throw isSystemError(error) ? new BackupFileError(path, "read", error) : error;
  }
  decoder.finish();
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "syscall" in error;
}

/** Without the call and the paths of Node's own message, which may be those of a temporary file: "no such file or directory (ENOENT)". */
function systemWords({ errno, code, message }: NodeJS.ErrnoException): string {
  const words = errno === undefined ? undefined : getSystemErrorMap().get(errno)?.[1];
  return words === undefined ? message : `${words} (${code})`;
}
