import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { maskedCrc32c } from "../../src/leveldb/checksum.js";
import { recordBeginsBehind, scanLog } from "../../src/leveldb/log-records.js";

const blockBytes = 32_768;

function piece(type: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.concat([Buffer.alloc(7), payload]);
  bytes.writeUInt16LE(payload.length, 4);
  bytes[6] = type;
  bytes.writeUInt32LE(maskedCrc32c(bytes.subarray(6)), 0);
  return bytes;
}

/** As LevelDB's own writer does it (doc/log_format.md there). */
function writeLog(payloads: readonly Uint8Array[]): Buffer {
  const parts: Buffer[] = [];
  let at = 0;
  const add = (part: Buffer): void => {
    parts.push(part);
    at += part.length;
  };
  for (const payload of payloads) {
    let rest = payload;
    for (let isFirst = true; isFirst || rest.length > 0; isFirst = false) {
      const left = blockBytes - (at % blockBytes);
      if (left < 7) add(Buffer.alloc(left));
      const room = blockBytes - (at % blockBytes) - 7;
      const part = rest.subarray(0, room);
      rest = rest.subarray(part.length);
      add(piece(isFirst ? (rest.length === 0 ? 1 : 2) : rest.length === 0 ? 4 : 3, part));
    }
  }
  return Buffer.concat(parts);
}

const payload = (length: number, fill = length): Buffer => Buffer.alloc(length, fill);

test("what is written is read", () => {
  const length = fc.oneof(
    fc.integer({ min: 0, max: 300 }),
    fc.integer({ min: 32_700, max: 32_800 }),
    fc.integer({ min: 0, max: 120_000 }),
  );
  fc.assert(
    fc.property(fc.array(length, { maxLength: 12 }), (lengths) => {
      const payloads = lengths.map((each, at) => payload(each, at));
      const bytes = writeLog(payloads);
      const { records, end, tail } = scanLog(bytes);
      assert.equal(tail, null);
      assert.equal(end, bytes.length);
      assert.deepEqual(
        records.map((record) => Buffer.from(record.payload)),
        payloads,
      );
    }),
    { numRuns: 60 },
  );
});

test("each record has its offset, and filler stands before a header that doesn't fit", () => {
  for (let missing = 0; missing <= 8; missing++) {
    const bytes = writeLog([payload(blockBytes - 7 - missing), payload(5)]);
    const { records } = scanLog(bytes);
    // Seven bytes are room for a header: the record then begins with an empty piece.
    assert.equal(records[1]?.offset, missing >= 7 || missing === 0 ? blockBytes - missing : blockBytes);
    assert.equal(records[1]?.payload.length, 5);
  }
});

test("a cut anywhere is a cut, and the records before it stand", () => {
  const bytes = writeLog([payload(50), payload(40_000), payload(30)]);
  for (const cutAt of [1, 6, 7, 20, 56, 58, 60, 32_767, 32_768, 32_770, 40_000, bytes.length - 1]) {
    const scan = scanLog(bytes.subarray(0, cutAt));
    assert.equal(scan.tail?.kind, "cut", `cut at ${cutAt}`);
    assert.equal(scan.records.length, cutAt < 57 ? 0 : cutAt < 40_071 ? 1 : 2);
    assert.equal(scan.end, scan.records.length === 0 ? 0 : scan.records.length === 1 ? 57 : bytes.length - 37);
  }
  assert.equal(scanLog(bytes.subarray(0, 57)).tail, null, "a cut between records doesn't show");
  assert.equal(scanLog(new Uint8Array(0)).tail, null);
});

describe("what no writer leaves", () => {
  const first = writeLog([payload(50)]);
  const filled = writeLog([payload(blockBytes - 7 - 3), payload(5)]);
  const cases: readonly [string, Buffer, RegExp][] = [
    ["filler that isn't zero", Buffer.from(filled).fill(1, blockBytes - 2, blockBytes - 1), /filler bytes at 32765/],
    [
      "a piece that goes on with nothing",
      Buffer.concat([first, piece(3, payload(blockBytes - 64))]),
      /a piece out of place at 57/,
    ],
    ["an end without a begin", Buffer.concat([first, piece(4, payload(5))]), /a piece out of place at 57/],
    [
      "a begin in a record",
      Buffer.concat([piece(2, payload(blockBytes - 7)), piece(1, payload(5))]),
      /a piece out of place at 32768/,
    ],
    [
      "a first piece in mid-block",
      Buffer.concat([piece(2, payload(9)), piece(4, payload(5))]),
      /the piece at 0 doesn't fill its block/,
    ],
    [
      "a length over the block",
      Buffer.concat([first, Buffer.from("00000000ffff01", "hex"), payload(90)]),
      /runs over its block/,
    ],
    ["an unknown type", Buffer.concat([first, piece(5, payload(5))]), /unknown type 5 at 57/],
    ["zeros", Buffer.concat([first, Buffer.alloc(7)]), /unknown type 0 at 57/],
  ];
  for (const [name, bytes, found] of cases) {
    test(name, () => {
      const { tail } = scanLog(bytes);
      assert.equal(tail?.kind, "damaged");
      assert.match(tail.found, found);
    });
  }
});

test("a record behind a damaged one is found wherever it begins", () => {
  const bytes = writeLog([payload(50, 1), payload(40_000, 2), payload(30, 3)]);
  const isAny = (): boolean => true;
  assert.equal(recordBeginsBehind(bytes, 1, isAny), true, "the large one at 57");
  assert.equal(recordBeginsBehind(bytes, 58, isAny), true, "the small one at the end");
  assert.equal(recordBeginsBehind(bytes, bytes.length - 36, isAny), false, "nothing behind it");
  assert.equal(recordBeginsBehind(bytes.subarray(0, -37), 58, isAny), false, "a last piece is no begin");
  assert.equal(recordBeginsBehind(bytes.subarray(0, -1), 58, isAny), false, "one that is cut short doesn't count");
  assert.equal(
    recordBeginsBehind(bytes, 58, (found) => found[0] === 9),
    false,
    "nor one that isn't plausible",
  );
  const damaged = Buffer.from(bytes);
  damaged[bytes.length - 1] = 0;
  assert.equal(recordBeginsBehind(damaged, 58, isAny), false, "nor one with a wrong checksum");
});
