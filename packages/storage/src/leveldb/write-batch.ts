import { FormatError } from "../storage-error.js";
import { ByteReader } from "./byte-reader.js";

interface Operation {
  readonly key: Buffer;
  /** Null: the key is deleted. */
  readonly value: Buffer | null;
}

/** One record of a .log file. Its operations have the sequence numbers from `sequence` on. */
export interface WriteBatch {
  readonly sequence: number;
  readonly operations: readonly Operation[];
}

/** Sequence and count, 8 and 4 bytes. */
export const batchHeaderBytes = 12;

const deletion = 0;
const put = 1;

export function readBatch(payload: Uint8Array): WriteBatch {
  const reader = new ByteReader(payload);
  const sequence = reader.uint64();
  const count = reader.uint32();
  const operations: Operation[] = [];
  while (!reader.done) {
    const type = reader.byte();
    if (type !== put && type !== deletion) throw new FormatError(`a batch with an operation of unknown type ${type}`);
    const key = reader.text();
    operations.push({ key, value: type === put ? reader.text() : null });
  }
  if (operations.length !== count) throw new FormatError(`a batch of ${count} operations has ${operations.length}`);
  return { sequence, operations };
}

/** Whether `payload` may be the begin of a batch that comes after `sequence`: a cheap look before its checksum is computed. */
export function mayFollow(payload: Uint8Array, sequence: number): boolean {
  if (payload.length < batchHeaderBytes) return false;
  // The upper two bytes of a sequence number are zero: 2^48 operations are beyond any disk's life.
  if (payload[6] !== 0 || payload[7] !== 0) return false;
  const reader = new ByteReader(payload);
  const found = reader.uint64();
  return found > sequence && found <= sequence + 2 ** 32 && reader.uint32() > 0;
}
