/**
 * What can still be read of a damaged database, without its MANIFEST: the sound blocks of every table, and every log up to its first bad
 * record. Only for taking out what is left: a table that should have been deleted may bring old rows back, so whoever uses the rows must
 * see from themselves that they fit together.
 */
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { FormatError } from "../storage-error.js";
import { addVersion, newestRows } from "./database-files.js";
import type { Keep, Version } from "./database-files.js";
import { scanLog } from "./log-records.js";
import { readTable } from "./table.js";
import { readBatch } from "./write-batch.js";

export interface RemainingRows<R> {
  /** By key, each byte one character (latin1). */
  readonly rows: ReadonlyMap<string, R>;
  /** What could not be read, with the file's name. */
  readonly problems: readonly string[];
}

/** `name` is how messages call the database. Rejects with what the operating system says. */
export async function readRemains<R>(path: string, name: string, keep: Keep<R>): Promise<RemainingRows<R>> {
  const versions = new Map<string, Version<R>>();
  const problems: string[] = [];
  for (const file of (await readdir(path)).sort()) {
    const read = /^\d+\.ldb$/.test(file) ? readTable : /^\d+\.log$/.test(file) ? readLog : null;
    if (read === null) continue;
    const bytes = await readFile(join(path, file));
    const skip = (problem: FormatError): void => void problems.push(`${name}/${file}: ${problem.message}`);
    try {
      read(bytes, (key, sequence, value) => addVersion(versions, key, sequence, value, keep), skip);
    } catch (error) {
      if (!(error instanceof FormatError)) throw error;
      skip(error);
    }
  }
  return { rows: newestRows(versions), problems };
}

type VisitRow = Parameters<typeof readTable>[1];

function readLog(bytes: Buffer, visit: VisitRow, skip: (problem: FormatError) => void): void {
  const { records, tail } = scanLog(bytes);
  for (const { payload } of records) {
    let { sequence } = readBatch(payload);
    for (const { key, value } of readBatch(payload).operations) visit(key, sequence++, value);
  }
  if (tail !== null) skip(new FormatError(`${tail.found} at ${tail.at}`));
}
