/**
 * What is stored: blocks of entries, the hard state, a log's base, pieces of a snapshot. Each value is a format version
 * of one byte, a crc32c of 4 bytes over the rest, and one msgpack array. LevelDB hands out damaged values without an
 * error, so every value vouches for itself; that all values are there is for the chain and the batch numbers to say
 * (@holdfast/storage).
 */
import type { Entry, HardState, LogBase, Term } from "@holdfast/raft";
import { assert } from "./assert.js";
import { readChecksum, writeChecksum } from "./checksum.js";
import { crc32c } from "./crc32c.js";
import { entriesFrom, entryFields } from "./entry-codec.js";
import { badValue, byteString, count, exactFieldsOf, id, list, nullable, term } from "./fields.js";
import { limits } from "./limits.js";
import { packBehind, unpack } from "./msgpack.js";
import { encodingProblem } from "./problems.js";
import { baseFields, baseFrom } from "./raft-codec.js";
import { WireError } from "./wire-error.js";

const checksumAt = 1;
const bodyAt = 5;

function seal(body: readonly unknown[]): Uint8Array {
  const bytes = packBehind(bodyAt, body);
  bytes[0] = limits.formatVersion;
  writeChecksum(bytes, checksumAt, crc32c(bytes, 0, bodyAt));
  return bytes;
}

/** No limit but the value's own length: it was written by this node, or checked when it came from a peer. */
function unseal(bytes: Uint8Array): unknown[] {
  if (bytes.length <= bodyAt) throw new WireError("truncated", null, "is shorter than its header");
  const version = bytes[0] as number;
  if (version > limits.formatVersion)
    throw new WireError("newer_format", null, `has format ${version}, and ${limits.formatVersion} is known`);
  if (version === 0) throw new WireError("bad_shape", null, "has no format version");
  if (readChecksum(bytes, checksumAt) !== crc32c(bytes, 0, bodyAt))
    throw new WireError("bad_checksum", null, "has a wrong checksum");
  return unpack(bytes, bodyAt, bytes.length);
}

/** A block: at least one entry, without gaps. The bytes are part of a larger buffer. */
export function encodeEntries(entries: readonly Entry[]): Uint8Array {
  const first = entries[0];
  assert(first !== undefined, "a block has an entry");
  return seal([count(first.index, "index"), ...entryFields(entries, first.index)]);
}

/** The entries of a block, which share no memory with it. Chain values are as stored: the reader compares them. */
export function decodeEntries(bytes: Uint8Array): Entry[] {
  const fields = exactFieldsOf(unseal(bytes), 3, "block");
  const entries = entriesFrom(list(fields[1], "entries"), byteString(fields[2], "payloads"), count(fields[0], "index"));
  if (entries.length === 0) throw new WireError("bad_shape", "entries", "is empty");
  return entries;
}

export function encodeHardState(hardState: HardState): Uint8Array {
  return seal([term(hardState.term), nullable(hardState.votedFor, "votedFor", id)]);
}

export function decodeHardState(bytes: Uint8Array): HardState {
  const fields = exactFieldsOf(unseal(bytes), 2, "hard state");
  return { term: count(fields[0], "term") as Term, votedFor: nullable(fields[1], "votedFor", id) };
}

export function encodeBase(base: LogBase): Uint8Array {
  return seal(baseFields(base));
}

export function decodeBase(bytes: Uint8Array): LogBase {
  return baseFrom(exactFieldsOf(unseal(bytes), 3, "base"));
}

/**
 * A piece of a snapshot of the lock machine: arrays, safe integers, texts, booleans and null, up to 16 arrays deep.
 * Throws a WireError on anything else, so that no snapshot is stored that can't be read back. The bytes are part of a
 * larger buffer.
 */
export function encodeSnapshotPiece(piece: readonly unknown[]): Uint8Array {
  checkPiece(piece, 1);
  return seal(piece);
}

export function decodeSnapshotPiece(bytes: Uint8Array): unknown[] {
  const piece = unseal(bytes);
  checkPiece(piece, 1);
  return piece;
}

/** Recursion ends at the depth that the pre-scan allows. */
function checkPiece(values: readonly unknown[], depth: number): void {
  if (depth > limits.frameDepthMax) throw new WireError("too_deep", null, "nests arrays too deep");
  for (const value of values) {
    switch (typeof value) {
      case "number":
        if (!Number.isSafeInteger(value) || Object.is(value, -0))
          throw badValue("piece", "has a number that is no safe integer");
        break;
      case "string": {
        const problem = encodingProblem(value);
        if (problem !== null) throw badValue("piece", problem);
        break;
      }
      case "boolean":
        break;
      default:
        if (Array.isArray(value)) checkPiece(value, depth + 1);
        else if (value !== null)
          throw badValue("piece", "has a value that is neither array, number, text, boolean nor null");
    }
  }
}
