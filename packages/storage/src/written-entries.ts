/** What one of a database's own files says was appended, for those who keep these files beside a node that removes its old entries. */
import { readFile } from "node:fs/promises";
import { scanLog } from "./leveldb/log-records.js";
import { readTable } from "./leveldb/table.js";
import { readBatch } from "./leveldb/write-batch.js";
import { decodeBlock, nameOf } from "./rows.js";
import type { Block } from "./rows.js";
import { asStorageError, inFile } from "./storage-error.js";

/**
 * Every block of entries that a file of `db` holds, a `.log` or else a table: those too that were truncated or removed since. The end of a log
 * that is cut off or still being written is passed over. Rejects with StorageError: "io" when the file can't be read, "damaged" when a whole
 * record of a log, a table or a block isn't of its form; a table is whole only when LevelDB has finished it.
 */
export async function readWrittenBlocks(file: string): Promise<readonly Block[]> {
  const bytes = await readFile(file).catch((error: unknown) => {
    throw asStorageError(error, `reading ${file}`);
  });
  const blocks: Block[] = [];
  const add = (key: Buffer, value: Buffer | null): void => {
    if (value !== null && nameOf(key)?.kind === "entries") blocks.push(decodeBlock(key, value));
  };
  inFile(file, () => {
    if (file.endsWith(".log")) {
      for (const { payload } of scanLog(bytes).records) {
        for (const { key, value } of readBatch(payload).operations) add(key, value);
      }
    } else readTable(bytes, (key, _sequence, value) => add(key, value));
  });
  return blocks;
}
