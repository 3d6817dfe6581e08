/** The bytes of a backup: as they were in the first release, and refused by name wherever one of them is another. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { BackupDecoder, BackupEncoder, BackupError } from "../src/index.js";
import type { BackupHeader, BackupRecord } from "../src/index.js";
import { clusterId, configuration, index, nodeId, term } from "./fixture.js";

const header: BackupHeader = {
  clusterId,
  nodeId,
  base: { position: { term: term(3), index: index(2 ** 40) }, chain: 0xdeadbeef, configuration },
  takenAtMs: 1_900_000_000_123,
  closingMs: 30_000,
};
const chunks = [Buffer.from("first chunk"), Buffer.alloc(0), Buffer.from([0, 1, 2, 255])];

function encode(these: readonly Uint8Array[] = chunks): Buffer {
  const encoder = new BackupEncoder();
  return Buffer.concat([encoder.header(header), ...these.map((chunk) => encoder.chunk(chunk)), encoder.end()]);
}

function decode(bytes: Uint8Array, pieceBytes = bytes.length): BackupRecord[] {
  const decoder = new BackupDecoder();
  const records: BackupRecord[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes)
    records.push(...decoder.push(bytes.subarray(at, at + pieceBytes)));
  decoder.finish();
  assert.equal(decoder.checkedBytes, bytes.length);
  return records;
}

function refusalOf(bytes: Uint8Array): BackupError {
  try {
    decode(bytes);
  } catch (error) {
    assert.ok(error instanceof BackupError, String(error));
    return error;
  }
  return assert.fail("it was taken for a backup");
}

const expected: BackupRecord[] = [
  { kind: "header", header },
  ...chunks.map((bytes) => ({ kind: "chunk", bytes }) as const),
  { kind: "end", chunks: 3 },
];

describe("backup format", () => {
  it("is what it was: `UPDATE_GOLDEN=1` writes it anew, with a new format version", () => {
    const file = fileURLToPath(new URL("../../test/golden/backup-1.hex", import.meta.url));
    const lines = encode().toString("hex").replace(/.{64}/g, "$&\n");
    if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(file, `${lines}\n`);
    assert.equal(`${lines}\n`, readFileSync(file, "utf8"));
    assert.deepEqual(decode(Buffer.from(readFileSync(file, "utf8").replaceAll("\n", ""), "hex")), expected);
  });

  it("comes back in pieces of any size", () => {
    const bytes = encode();
    for (const size of [1, 2, 7, 64, bytes.length]) assert.deepEqual(decode(bytes, size), expected);
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 })), fc.integer({ min: 1, max: 400 }), (some, size) => {
        const found = decode(encode(some), size).flatMap((record) => (record.kind === "chunk" ? [record.bytes] : []));
        assert.deepEqual(
          found.map((chunk) => Buffer.from(chunk)),
          some.map((chunk) => Buffer.from(chunk)),
        );
      }),
      { numRuns: 100 },
    );
  });

  it("refuses any single changed byte, and says where", () => {
    const bytes = encode();
    for (let at = 0; at < bytes.length; at += 1) {
      for (const flip of [0x01, 0x80, 0xff]) {
        const changed = Buffer.from(bytes);
        changed[at] = (changed[at] as number) ^ flip;
        const { code, at: where, message } = refusalOf(changed);
        assert.ok(where <= at, `byte ${at}: ${message}`);
        const codes = at < 8 ? ["not_a_backup"] : at === 8 ? ["newer_format", "damaged"] : ["damaged", "cut_short"];
        assert.ok(codes.includes(code), `byte ${at}: ${code}`);
      }
    }
  });

  it("refuses each of its beginnings, and more behind its end", () => {
    const bytes = encode();
    for (let length = 0; length < bytes.length; length += 1) {
      assert.equal(refusalOf(bytes.subarray(0, length)).code, "cut_short", `${length} bytes`);
    }
    const { code, at } = refusalOf(Buffer.concat([bytes, Buffer.from([0])]));
    assert.deepEqual([code, at], ["damaged", bytes.length]);
    assert.equal(refusalOf(Buffer.concat([bytes, bytes])).code, "damaged");
  });

  it("refuses a chunk that is missing, doubled or moved, though each record's own checksum is right", () => {
    const encoder = new BackupEncoder();
    const start = encoder.header(header);
    const [a, b] = [encoder.chunk(Buffer.from("a")), encoder.chunk(Buffer.from("b"))];
    const end = encoder.end();
    assert.match(refusalOf(Buffer.concat([start, b, a, end])).message, /another sha256/);
    assert.match(refusalOf(Buffer.concat([start, a, end])).message, /should have 2 chunks/);
    assert.match(refusalOf(Buffer.concat([start, a, b, b, end])).message, /should have 2 chunks/);
    assert.match(refusalOf(Buffer.concat([start, start.subarray(9), a, b, end])).message, /header is not where/);
  });

  it("allocates nothing for a length that can't be", () => {
    const bytes = encode();
    bytes.writeUInt32BE(2 ** 31, 10);
    assert.match(refusalOf(bytes).message, /longer than any/);
  });

  it("tells a newer format from damage", () => {
    const bytes = encode();
    bytes[8] = 2;
    const { code, message } = refusalOf(bytes);
    assert.equal(code, "newer_format");
    assert.match(message, /format 2, and this release knows 1/);
  });
});
