/** Backup files on disk: written whole or not at all, and read with every byte checked. */
import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { link, open, rename, rm } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { BackupDecoder } from "./backup-format.js";
import type { BackupHeader, BackupRecord } from "./backup-format.js";
import { isThere, syncDirectory } from "./files.js";
import { codeOf } from "./storage-error.js";

/** There is a file of that name, and nobody said that it may be replaced. */
export class BackupExistsError extends Error {
  constructor(path: string) {
    super(`${path} exists already`);
    this.name = "BackupExistsError";
  }
}

export interface WrittenBackup {
  readonly header: BackupHeader;
  readonly bytes: number;
  readonly chunks: number;
}

/**
 * Writes what comes, checks it as it comes, and gives it its name when it is whole and synced. Rejects with BackupError for bytes that
 * are no whole backup, BackupExistsError, or what the disk says; then there is no file of that name but one that was there before.
 */
export async function writeBackupFile(
  path: string,
  source: AsyncIterable<Uint8Array>,
  options: { readonly overwrite: boolean },
): Promise<WrittenBackup> {
  // Asked before anything is fetched, and again when the file gets its name.
  if (!options.overwrite && (await isThere(path))) throw new BackupExistsError(path);
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
    if (options.overwrite) await rename(temporary, path);
    else await giveNewName(temporary, path);
    await syncDirectory(dirname(path));
    return written;
  } finally {
    await rm(temporary, { force: true });
  }
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
    if (codeOf(error) === "EEXIST" || (await isThere(path))) throw new BackupExistsError(path);
    await rename(temporary, path);
  }
}

const readBytes = 262_144;

/** The records of a whole file, each checked; the last one is its end. Throws BackupError, at the latest there. */
export async function* readBackupFile(path: string): AsyncGenerator<BackupRecord> {
  const decoder = new BackupDecoder();
  for await (const bytes of createReadStream(path, { highWaterMark: readBytes })) {
    yield* decoder.push(bytes as Buffer);
  }
  decoder.finish();
}
