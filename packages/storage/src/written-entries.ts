/** What one of a database's own log files says was appended, for those who keep these files beside a node that removes its old entries. */
import { readFile } from "node:fs/promises";
import { scanLog } from "./leveldb/log-records.js";
import { readBatch } from "./leveldb/write-batch.js";
import { decodeBlock, nameOf } from "./rows.js";
import type { Block } from "./rows.js";
import { asStorageError, inFile } from "./storage-error.js";

/**
 * Every block of entries that a `.log` file of `db` holds, in the order of writing: those too that were truncated or removed since. An end
 * that is cut off or still being written is passed over. Rejects with StorageError: "io" when the file can't be read, "damaged" when one of
 * its whole records or a block isn't of this program's form.
 */
export async function readWrittenBlocks(file: string): Promise<readonly Block[]> {
  const bytes = await readFile(file).catch((error: unknown) => {
    throw asStorageError(error, `reading ${file}`);
  });
  return inFile(file, () => {
    const operations = scanLog(bytes).records.flatMap(({ payload }) => readBatch(payload).operations);
    return operations.flatMap(({ key, value }) =>
      value === null || nameOf(key)?.kind !== "entries" ? [] : [decodeBlock(key, value)],
    );
  });
}
