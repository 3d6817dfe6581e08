/** Closed directories that the damage and the tail tests copy and then maltreat. */
import { Level } from "level";
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Store } from "../src/index.js";
import { scanLog } from "../src/leveldb/log-records.js";
import type { LogRecord } from "../src/leveldb/log-records.js";
import {
  append,
  baseAt,
  databaseFiles,
  endOf,
  entriesAfter,
  formNew,
  nothing,
  openFormed,
  payloads,
  term,
  writeSnapshot,
} from "./fixture.js";

/** Of the snapshot in each prototype: the number of the batch with its first chunk, its index, its chunks. */
export const snapshot = { attempt: 7, index: 30, chunks: 3 } as const;
/** First indexes of the blocks of entries in each prototype, and the last index. */
export const blocks = [1, 11, 41, 46, 47] as const;
export const lastIndex = 49;

export interface Prototypes {
  /** All batches but the formation's in one log of several blocks. */
  readonly inLog: string;
  /** The same in tables; the log is empty. */
  readonly inTables: string;
  /** As `inTables`, two batches earlier. */
  readonly older: string;
}

export async function makePrototypes(): Promise<Prototypes> {
  const older = await formNew();
  await fill(older.store);
  await older.opened.close();
  await reopen(older.directory);
  const newer = await formNew();
  const last = await fill(newer.store);
  await append(newer.store, entriesAfter(last, 3, payloads(3, 20)));
  await newer.store.write({ ...nothing, hardState: { term: term(4), votedFor: "n2" } });
  await newer.opened.close();
  const inTables = await formNew();
  const lastAgain = await fill(inTables.store);
  await append(inTables.store, entriesAfter(lastAgain, 3, payloads(3, 20)));
  await inTables.store.write({ ...nothing, hardState: { term: term(4), votedFor: "n2" } });
  await inTables.opened.close();
  await reopen(inTables.directory);
  return { inLog: newer.directory, inTables: inTables.directory, older: older.directory };
}

async function fill(store: Store): Promise<{ index: number; chain: number }> {
  await store.write({ ...nothing, hardState: { term: term(1), votedFor: "n1" } });
  const first = entriesAfter({ index: 0, chain: 0 }, 1, payloads(10, 40));
  await append(store, first);
  const second = entriesAfter(endOf(first), 1, payloads(30, 3_000));
  await append(store, second);
  await store.write({ ...nothing, hardState: { term: term(3), votedFor: null } });
  const third = entriesAfter(endOf(second), 3, payloads(5, 40));
  await append(store, third);
  const chunks = [new Uint8Array(5_000).fill(1), new Uint8Array(5_000).fill(2), new Uint8Array(9).fill(3)];
  await writeSnapshot(store, baseAt(second[19]), chunks);
  const fourth = entriesAfter(endOf(third), 3, payloads(1, 20));
  await append(store, fourth);
  return endOf(fourth);
}

/** Opens and closes: LevelDB then moves what is in the log into a table. */
export async function reopen(directory: string, machineBootId?: string): Promise<void> {
  await (await openFormed(directory, machineBootId)).opened.close();
}

export type RowEdit =
  | { readonly type: "put"; readonly key: Buffer; readonly value: Buffer }
  | { readonly type: "del"; readonly key: Buffer };

/** Changes rows as no write of ours would, so that LevelDB's files are sound and their content isn't. */
export async function editRows(
  directory: string,
  edit: (get: (key: Buffer) => Promise<Buffer>) => Promise<RowEdit[]>,
): Promise<void> {
  const options = {
    keyEncoding: "buffer",
    valueEncoding: "buffer",
    compression: false,
    createIfMissing: false,
  } as const;
  for (const isEditing of [true, false]) {
    // The second opening moves the edit from the log, where it would stand out as a batch that isn't ours, into a table.
    const level = new Level<Buffer, Buffer>(join(directory, "db"), options);
    await level.open();
    const get = async (key: Buffer): Promise<Buffer> => {
      const value: Buffer | undefined = await level.get(key);
      assert(value !== undefined, "the row to be edited is there");
      return value;
    };
    if (isEditing) await level.batch(await edit(get), { sync: true });
    await level.close();
  }
}

export async function logOf(
  directory: string,
): Promise<{ path: string; bytes: Buffer; records: readonly LogRecord[] }> {
  const path = (await databaseFiles(directory, /\.log$/)).at(-1);
  assert(path !== undefined);
  const bytes = await readFile(path);
  return { path, bytes, records: scanLog(bytes).records };
}
