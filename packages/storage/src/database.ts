/**
 * The only door to LevelDB. What passes it is always one synced batch, one at a time, and always opens what is there already:
 * LevelDB's defaults would lose writes at a power loss, reorder them, and make an empty database where one is missing.
 */
import { Level } from "level";
import assert from "node:assert/strict";

export type DatabaseOperation =
  | { readonly type: "put"; readonly key: Buffer; readonly value: Buffer }
  | { readonly type: "del"; readonly key: Buffer };

export interface Database {
  /** Durable when it resolves. Not while another write is under way. */
  writeSynced(operations: readonly DatabaseOperation[]): Promise<void>;
  get(key: Buffer): Promise<Buffer | null>;
  /** All rows in the order of their keys. */
  rows(): AsyncIterable<readonly [Buffer, Buffer]>;
  /** Gives back the space of deleted rows from `first` to `last`; takes long, and may run beside writes. */
  compact(first: Buffer, last: Buffer): Promise<void>;
  close(): Promise<void>;
}

/** `level` declares what all its platforms share; on Node it is classic-level. */
interface Compacting {
  compactRange(start: Buffer, end: Buffer): Promise<void>;
}

// Not compressed, so that the table files can be checked without Snappy; entries are short, and snapshots are read rarely.
const openOptions = { compression: false, multithreading: false } as const;
const encodings = { keyEncoding: "buffer", valueEncoding: "buffer" } as const;
const synced = { sync: true, ...encodings } as const;

/** Opens an existing database. */
export async function openDatabase(path: string): Promise<Database> {
  return await open(path, { createIfMissing: false });
}

/** Makes a new one. */
export async function createDatabase(path: string): Promise<Database> {
  return await open(path, { createIfMissing: true, errorIfExists: true });
}

async function open(path: string, mode: { createIfMissing: boolean; errorIfExists?: boolean }): Promise<Database> {
  const level = new Level<Buffer, Buffer>(path, { ...encodings, ...openOptions, ...mode });
  try {
    await level.open();
  } catch (error) {
    await level.close();
    throw error;
  }
  let isWriting = false;
  return {
    async writeSynced(operations) {
      assert(!isWriting, "one write is in flight at a time");
      isWriting = true;
      // After a failure it stays set: memory and disk may differ, and nothing may be written on top.
      await level.batch(operations as DatabaseOperation[], synced);
      isWriting = false;
    },
    async get(key) {
      const value: Buffer | undefined = await level.get(key);
      return value ?? null;
    },
    rows: () => level.iterator({ ...encodings, highWaterMarkBytes: 1_048_576 }),
    compact: (first, last) => (level as unknown as Compacting).compactRange(first, last),
    close: () => level.close(),
  };
}
