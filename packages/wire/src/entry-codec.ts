/** What the consensus core needs to know of bytes: the chain over entries, and configurations as payloads. */
import type { Entry, EntryCodec, EntryKind } from "@holdfast/raft";
import { assert } from "./assert.js";
import { configurationFields, configurationFrom } from "./configuration-codec.js";
import { crc32c } from "./crc32c.js";
import { byteString, checksum, count, integer, term, wordsOf } from "./fields.js";
import type { Fields } from "./fields.js";
import { limits } from "./limits.js";
import { copyOf, pack, unpack } from "./msgpack.js";
import { WireError } from "./wire-error.js";

const entryKinds = wordsOf<EntryKind>({ noop: 1, command: 2, configuration: 3 });

/** Index and term of 8 bytes each, the previous chain value of 4, the kind of 1; big-endian. Then comes the payload. */
const chainHeader = new Uint8Array(21);

function writeUint32(value: number, at: number): void {
  chainHeader[at] = value >>> 24;
  chainHeader[at + 1] = value >>> 16;
  chainHeader[at + 2] = value >>> 8;
  chainHeader[at + 3] = value;
}

function writeUint64(value: number, at: number): void {
  assert(Number.isSafeInteger(value) && value >= 0, "index and term are safe integers");
  writeUint32(Math.floor(value / 0x1_0000_0000), at);
  writeUint32(value >>> 0, at + 4);
}

export const entryCodec: EntryCodec = {
  chainFor(previousChain, index, entryTerm, kind, payload) {
    writeUint64(index, 0);
    writeUint64(entryTerm, 8);
    writeUint32(previousChain, 16);
    chainHeader[20] = entryKinds.numberFor(kind, "kind");
    return crc32c(payload, crc32c(chainHeader));
  },
  encodeConfiguration(configuration) {
    return copyOf(pack(configurationFields(configuration)));
  },
  decodeConfiguration(payload) {
    return configurationFrom(unpack(payload, 0, limits.frameItemsMax));
  },
};

/** Of each entry in `heads`. */
const headFieldCount = 4;

/**
 * Entries without gaps, as two values: one flat list `[term, kind, payload's length, chain, term, ...]`, and all
 * payloads as one byte string. An array and a byte string for each entry would cost several times as much on both
 * sides. Indexes follow from the first.
 */
export function entryFields(entries: readonly Entry[], first: number): [heads: unknown[], payloads: Uint8Array] {
  const heads = new Array<unknown>(entries.length * headFieldCount);
  let at = 0;
  let index = first;
  let bytes = 0;
  for (const entry of entries) {
    assert(entry.index === index, "entries that travel together have no gap");
    const length = byteString(entry.payload, "payload").length;
    heads[at++] = term(entry.term);
    heads[at++] = entryKinds.numberFor(entry.kind, "kind");
    heads[at++] = length;
    heads[at++] = checksum(entry.chain, "chain");
    bytes += length;
    index++;
  }
  return [heads, joinPayloads(entries, bytes)];
}

function joinPayloads(entries: readonly Entry[], bytes: number): Uint8Array {
  const joined = new Uint8Array(bytes);
  let at = 0;
  for (const entry of entries) {
    joined.set(entry.payload, at);
    at += entry.payload.length;
  }
  return joined;
}

/**
 * The entries of such two values; their chain values are the sender's, and unchecked. The payloads are parts of
 * `payloads`, which is a copy made for them: entries that came together are in memory together.
 */
export function entriesFrom(heads: Fields, payloads: Uint8Array, first: number): Entry[] {
  if (heads.length % headFieldCount !== 0)
    throw new WireError("bad_shape", "entries", "ends in the middle of an entry");
  const entries = new Array<Entry>(heads.length / headFieldCount);
  count(first + entries.length, "index");
  let begin = 0;
  for (let entry = 0, at = 0; entry < entries.length; entry++, at += headFieldCount) {
    const end = begin + integer(heads[at + 2], 0, payloads.length - begin, "payload's length");
    entries[entry] = {
      index: (first + entry) as Entry["index"],
      term: term(heads[at]),
      kind: entryKinds.wordFor(heads[at + 1], "kind"),
      payload: payloads.subarray(begin, end),
      chain: checksum(heads[at + 3], "chain"),
    };
    begin = end;
  }
  if (begin !== payloads.length) throw new WireError("bad_shape", "entries", "has bytes that belong to no entry");
  return entries;
}
