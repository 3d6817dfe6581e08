import { randomUUID } from "node:crypto";
import { open, readFile } from "node:fs/promises";
import path from "node:path";

import { IncompatibleResourceError } from "../errors.js";
import type { FencedRecord } from "../guard.js";

/** A version as it stands in its file: one line of JSON, then the data. */
export interface StoredVersion {
  readonly number: number;
  readonly record: FencedRecord<Buffer>;
  /** The writeId of the version before it; null for the first. */
  readonly previous: string | null;
}

/** Wide enough for 2^53 - 1, so that names sort as numbers do. */
const digits = 16;
const namePattern = /^\d{16}\.v$/;

export function versionName(number: number): string {
  return `${String(number).padStart(digits, "0")}.v`;
}

/** The numbers among a directory's names, ascending. Temporary files are none. */
export function versionNumbers(names: readonly string[]): number[] {
  return names
    .filter((name) => namePattern.test(name))
    .map((name) => Number.parseInt(name, 10))
    .sort((a, b) => a - b);
}

/** Writes a whole, synced file under a name that no reader looks at. Resolves with its path. */
export async function writeTemporary(folder: string, resource: string, version: StoredVersion): Promise<string> {
  const { record, previous } = version;
  const data = record.value;
  const header = {
    holdfast: 1,
    resource,
    token: record.token,
    writeId: record.writeId,
    previous,
    bytes: data === null ? null : data.length,
  };
  const file = path.join(folder, `${randomUUID()}.tmp`);
  const handle = await open(file, "wx");
  try {
    await handle.writeFile(Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), data ?? Buffer.alloc(0)]));
    await handle.sync();
  } finally {
    await handle.close();
  }
  return file;
}

/**
 * Null when there is no such file.
 * @throws IncompatibleResourceError for a file that isn't a version of this resource: two names in one directory, or damage.
 */
export async function readVersion(folder: string, number: number, resource: string): Promise<StoredVersion | null> {
  const file = path.join(folder, versionName(number));
  const bytes = await readFile(file).catch(nullIfMissing);
  if (bytes === null) return null;
  const end = bytes.indexOf(0x0a);
  const header = headerFrom(bytes.subarray(0, end < 0 ? 0 : end).toString("utf8"));
  const data = bytes.subarray(end + 1);
  if (header === null || header.resource !== resource || (header.bytes ?? 0) !== data.length) {
    const problem =
      header === null || header.resource === resource ? "is damaged" : `belongs to ${JSON.stringify(header.resource)}`;
    throw new IncompatibleResourceError(resource, `${file}, where ${resource} should be, ${problem}`);
  }
  const { token, writeId, previous } = header;
  return { number, record: { token, writeId, value: header.bytes === null ? null : data }, previous };
}

export function nullIfMissing(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
  throw error;
}

interface Header {
  readonly resource: string;
  readonly token: number;
  readonly writeId: string;
  readonly previous: string | null;
  readonly bytes: number | null;
}

function headerFrom(text: string): Header | null {
  try {
    const header = JSON.parse(text) as Partial<Header & { holdfast: number }>;
    const isWhole =
      header.holdfast === 1 &&
      typeof header.resource === "string" &&
      typeof header.token === "number" &&
      typeof header.writeId === "string" &&
      (header.previous === null || typeof header.previous === "string") &&
      (header.bytes === null || Number.isSafeInteger(header.bytes));
    return isWhole ? (header as Header) : null;
  } catch {
    return null;
  }
}
