/**
 * The rows of the database. A key is one letter and big-endian numbers, so that LevelDB's order is ours. A value is a format version,
 * the content, and a crc32c over key, version and content: no flipped bit and no swapped row passes, whatever LevelDB thinks of it.
 *
 *     meta      m                                   once; rewritten in every batch
 *     owner     o                                   once; whose database this is
 *     base      b                                   once; the cluster's first base
 *     entries   e  generation(4)  first index(8)    a block of entries; one for each append
 *     complete  c  snapshot index(8)                a snapshot that is all there
 *     chunk     s  snapshot index(8)  attempt(8)  chunk(4)
 *
 * What no meta or complete row speaks of is garbage (the rest of a removal, of an abandoned snapshot, of a log that a snapshot
 * replaced) and is deleted in small pieces, or at the next start.
 */
import type { Entry, HardState, Index, LogBase, Position, Term } from "@holdfast/raft";
import {
  crc32c,
  decodeBase,
  decodeEntries,
  decodeHardState,
  encodeBase,
  encodeEntries,
  encodeHardState,
} from "@holdfast/wire";
import { FormatError, StorageError, codeOf, textOf } from "./storage-error.js";

const rowFormatVersion = 1;

const prefixes = { meta: 0x6d, owner: 0x6f, base: 0x62, entries: 0x65, complete: 0x63, chunk: 0x73 } as const;
const checksumBytes = 4;

export type RowName =
  | { readonly kind: "meta" | "owner" | "base" }
  | { readonly kind: "entries"; readonly generation: number; readonly first: number }
  | { readonly kind: "complete"; readonly index: number }
  | { readonly kind: "chunk"; readonly index: number; readonly attempt: number; readonly chunk: number };

/** A point of the log with the chain value there. */
export interface ChainedPosition extends Position {
  readonly chain: number;
}

/** What every batch says about the whole, so that a batch that went missing shows. */
export interface Meta {
  /** Counted up for ever, by one with each batch. */
  readonly batchNumber: number;
  /** The entries of other generations are garbage: a snapshot took the place of that log. */
  readonly generation: number;
  /** The first index of the first block of entries; one above `last` when there is none. Blocks below are garbage. */
  readonly firstIndex: number;
  readonly last: ChainedPosition;
  /** Index of the newest complete snapshot; null before the first. */
  readonly snapshotIndex: number | null;
  readonly hardState: HardState;
}

export interface Owner {
  readonly nodeId: string;
  readonly instance: string;
  readonly clusterId: string;
}

/** A complete snapshot's row. */
export interface Complete {
  readonly base: LogBase;
  readonly chunks: number;
  /** Which rows hold its chunks: the number of the batch with its first one. */
  readonly attempt: number;
  /** crc32c over the checksums of its chunk rows, in order. */
  readonly checksum: number;
}

/** Entries with the chain value before the first of them: a block can be checked by itself. */
export interface Block {
  readonly previousChain: number;
  readonly entries: readonly Entry[];
}

export const metaKey: Buffer = Buffer.from([prefixes.meta]);
export const ownerKey: Buffer = Buffer.from([prefixes.owner]);
export const baseKey: Buffer = Buffer.from([prefixes.base]);

export function entriesKey(generation: number, first: number): Buffer {
  const key = Buffer.allocUnsafe(13);
  key[0] = prefixes.entries;
  key.writeUInt32BE(generation, 1);
  writeUint64(key, first, 5);
  return key;
}

export function completeKey(index: number): Buffer {
  const key = Buffer.allocUnsafe(9);
  key[0] = prefixes.complete;
  writeUint64(key, index, 1);
  return key;
}

export function chunkKey(index: number, attempt: number, chunk: number): Buffer {
  const key = Buffer.allocUnsafe(21);
  key[0] = prefixes.chunk;
  writeUint64(key, index, 1);
  writeUint64(key, attempt, 9);
  key.writeUInt32BE(chunk, 17);
  return key;
}

/** Null for a key that isn't one of ours. */
export function nameOf(key: Buffer): RowName | null {
  const prefix = key[0];
  if (key.length === 1) {
    if (prefix === prefixes.meta) return { kind: "meta" };
    if (prefix === prefixes.owner) return { kind: "owner" };
    if (prefix === prefixes.base) return { kind: "base" };
  }
  if (key.length === 13 && prefix === prefixes.entries) {
    return { kind: "entries", generation: key.readUInt32BE(1), first: readUint64(key, 5) };
  }
  if (key.length === 9 && prefix === prefixes.complete) return { kind: "complete", index: readUint64(key, 1) };
  if (key.length === 21 && prefix === prefixes.chunk) {
    return { kind: "chunk", index: readUint64(key, 1), attempt: readUint64(key, 9), chunk: key.readUInt32BE(17) };
  }
  return null;
}

/** Version, content and checksum in one buffer. */
export function seal(key: Buffer, ...parts: readonly Uint8Array[]): Buffer {
  let size = 1 + checksumBytes;
  for (const part of parts) size += part.length;
  const value = Buffer.allocUnsafe(size);
  value[0] = rowFormatVersion;
  let at = 1;
  for (const part of parts) {
    value.set(part, at);
    at += part.length;
  }
  value.writeUInt32BE(crc32c(value.subarray(0, at), crc32c(key)), at);
  return value;
}

/** The checksum that a sealed value carries; unchecked. */
export function checksumOf(value: Buffer): number {
  return value.readUInt32BE(value.length - checksumBytes);
}

/** The content of a sealed value. Throws FormatError, or StorageError for a newer format. */
export function unseal(key: Buffer, value: Buffer): Buffer {
  if (value.length < 1 + checksumBytes) throw new FormatError("a row is too short");
  const end = value.length - checksumBytes;
  if (crc32c(value.subarray(0, end), crc32c(key)) !== value.readUInt32BE(end))
    throw new FormatError("a row has a wrong checksum");
  if ((value[0] as number) > rowFormatVersion) {
    throw new StorageError(
      "newer_format",
      `db has a row of format ${value[0]}, and this release knows ${rowFormatVersion} at most`,
    );
  }
  return value.subarray(1, end);
}

const metaFixedBytes = 49;
const noSnapshot = 2 ** 53 - 1;

export function encodeMeta(meta: Meta): Buffer {
  const fixed = Buffer.allocUnsafe(metaFixedBytes - 1);
  writeUint64(fixed, meta.batchNumber, 0);
  fixed.writeUInt32BE(meta.generation, 8);
  writeUint64(fixed, meta.firstIndex, 12);
  writeUint64(fixed, meta.last.index, 20);
  writeUint64(fixed, meta.last.term, 28);
  fixed.writeUInt32BE(meta.last.chain, 36);
  writeUint64(fixed, meta.snapshotIndex ?? noSnapshot, 40);
  return seal(metaKey, fixed, encodeHardState(meta.hardState));
}

export function decodeMeta(value: Buffer): Meta {
  const content = unseal(metaKey, value);
  if (content.length < metaFixedBytes) throw new FormatError("the meta row is too short");
  const snapshotIndex = readUint64(content, 40);
  return {
    batchNumber: readUint64(content, 0),
    generation: content.readUInt32BE(8),
    firstIndex: readUint64(content, 12),
    last: {
      index: readUint64(content, 20) as Index,
      term: readUint64(content, 28) as Term,
      chain: content.readUInt32BE(36),
    },
    snapshotIndex: snapshotIndex === noSnapshot ? null : snapshotIndex,
    hardState: decoded("hard state", () => decodeHardState(content.subarray(metaFixedBytes - 1))),
  };
}

export function encodeOwner(owner: Owner): Buffer {
  return seal(ownerKey, Buffer.from(JSON.stringify([owner.nodeId, owner.instance, owner.clusterId])));
}

export function decodeOwner(value: Buffer): Owner {
  const fields: unknown = decoded("owner", () => JSON.parse(unseal(ownerKey, value).toString("utf8")));
  if (!Array.isArray(fields) || fields.length !== 3 || !fields.every((field) => typeof field === "string")) {
    throw new FormatError("the owner row has not its form");
  }
  const [nodeId, instance, clusterId] = fields as [string, string, string];
  return { nodeId, instance, clusterId };
}

export function encodeFirstBase(base: LogBase): Buffer {
  return seal(baseKey, encodeBase(base));
}

export function decodeFirstBase(value: Buffer): LogBase {
  return decoded("first base", () => decodeBase(unseal(baseKey, value)));
}

export function encodeBlock(key: Buffer, block: Block): Buffer {
  const fixed = Buffer.allocUnsafe(4);
  fixed.writeUInt32BE(block.previousChain, 0);
  return seal(key, fixed, encodeEntries(block.entries));
}

export function decodeBlock(key: Buffer, value: Buffer): Block {
  const content = unseal(key, value);
  if (content.length < 4) throw new FormatError("a block of entries is too short");
  return {
    previousChain: content.readUInt32BE(0),
    entries: decoded("block of entries", () => decodeEntries(content.subarray(4))),
  };
}

export function encodeComplete(complete: Complete): Buffer {
  const fixed = Buffer.allocUnsafe(16);
  writeUint64(fixed, complete.attempt, 0);
  fixed.writeUInt32BE(complete.chunks, 8);
  fixed.writeUInt32BE(complete.checksum, 12);
  return seal(completeKey(complete.base.position.index), fixed, encodeBase(complete.base));
}

export function decodeComplete(key: Buffer, value: Buffer): Complete {
  const content = unseal(key, value);
  if (content.length < 16) throw new FormatError("a snapshot's row is too short");
  return {
    attempt: readUint64(content, 0),
    chunks: content.readUInt32BE(8),
    checksum: content.readUInt32BE(12),
    base: decoded("snapshot's base", () => decodeBase(content.subarray(16))),
  };
}

/** crc32c over the chunk rows' checksums so far and the next one. */
export function foldChecksum(soFar: number, next: number): number {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(next, 0);
  return crc32c(bytes, soFar);
}

/** The codecs of @holdfast/wire throw on what they don't understand; a newer format is no damage. */
function decoded<T>(what: string, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (error instanceof StorageError || error instanceof FormatError) throw error;
    if (codeOf(error) === "newer_format")
      throw new StorageError("newer_format", `db has a ${what} of a newer format`, error);
    throw new FormatError(`the ${what} can't be decoded: ${textOf(error)}`);
  }
}

function writeUint64(bytes: Buffer, value: number, at: number): void {
  bytes.writeUInt32BE(Math.floor(value / 2 ** 32), at);
  bytes.writeUInt32BE(value >>> 0, at + 4);
}

/** Numbers above 2^53 lose digits here; no check they take part in then holds. */
function readUint64(bytes: Buffer, at: number): number {
  return bytes.readUInt32BE(at) * 2 ** 32 + bytes.readUInt32BE(at + 4);
}
