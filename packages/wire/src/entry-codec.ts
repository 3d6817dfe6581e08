/** What the consensus core needs to know of bytes: the chain over entries, and configurations as payloads. */
import type { Entry, EntryCodec, EntryKind } from "@holdfast/raft";
import { assert } from "./assert.js";
import { configurationFields, configurationFrom } from "./configuration-codec.js";
import { crc32c } from "./crc32c.js";
import { byteString, checksum, count, term, wordsOf } from "./fields.js";
import type { Fields, Words } from "./fields.js";
import { limits } from "./limits.js";
import { copyOf, pack, unpack } from "./msgpack.js";
import { WireError } from "./wire-error.js";

export const entryKinds: Words<EntryKind> = wordsOf<EntryKind>({ noop: 1, command: 2, configuration: 3 });

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

/** Fields of an entry in a flat list of entries. */
const entryFieldCount = 4;

/**
 * Entries as one flat list `[term, kind, payload, chain, term, ...]`: their indexes follow from the first one's, and an append has
 * no array for each entry.
 */
export function entryFields(entries: readonly Entry[], first: number): unknown[] {
  const fields = new Array<unknown>(entries.length * entryFieldCount);
  let at = 0;
  let index = first;
  for (const entry of entries) {
    assert(entry.index === index, "entries that travel together have no gap");
    fields[at++] = term(entry.term);
    fields[at++] = entryKinds.numberFor(entry.kind, "kind");
    fields[at++] = byteString(entry.payload, "payload");
    fields[at++] = checksum(entry.chain, "chain");
    index++;
  }
  return fields;
}

/** The entries of such a list; their chain values are the sender's, and unchecked. */
export function entriesFrom(fields: Fields, first: number): Entry[] {
  if (fields.length % entryFieldCount !== 0) throw new WireError("bad_shape", "entries", "ends in the middle of an entry");
  const entries = new Array<Entry>(fields.length / entryFieldCount);
  count(first + entries.length, "index");
  for (let entry = 0, at = 0; entry < entries.length; entry++, at += entryFieldCount) {
    entries[entry] = {
      index: (first + entry) as Entry["index"],
      term: term(fields[at]),
      kind: entryKinds.wordFor(fields[at + 1], "kind"),
      payload: byteString(fields[at + 2], "payload"),
      chain: checksum(fields[at + 3], "chain"),
    };
  }
  return entries;
}
