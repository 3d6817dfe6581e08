import assert from "node:assert/strict";
import { test } from "node:test";
import {
  decodeBase,
  decodeEntries,
  decodeHardState,
  decodeSnapshotPiece,
  encodeBase,
  encodeEntries,
  encodeHardState,
  encodeSnapshotPiece,
  limits,
  WireError,
} from "../src/index.js";
import type { WireErrorCode } from "../src/index.js";
import { base, entries, indexOf, snapshotPiece, termOf } from "./peer-samples.js";
import { codeOf } from "./wire-errors.js";

const stored: readonly [string, Uint8Array, (bytes: Uint8Array) => unknown][] = [
  ["a block of entries", new Uint8Array(encodeEntries(entries)), decodeEntries],
  ["a hard state", new Uint8Array(encodeHardState({ term: termOf(9), votedFor: "n1" })), decodeHardState],
  ["a base", new Uint8Array(encodeBase(base)), decodeBase],
  ["a snapshot piece", new Uint8Array(encodeSnapshotPiece(snapshotPiece)), decodeSnapshotPiece],
];

for (const [what, bytes, decode] of stored) {
  test(`${what}: a flipped bit anywhere is seen`, () => {
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const damaged = new Uint8Array(bytes);
      damaged[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7));
      const code = codeOf(() => decode(damaged));
      assert.ok(bit >= 8 ? code === "bad_checksum" : code === "newer_format" || code === "bad_shape");
    }
  });

  test(`${what}: cut short at any length is seen`, () => {
    for (let length = 0; length < bytes.length; length++)
      assert.throws(() => decode(bytes.subarray(0, length)), WireError);
  });

  test(`${what}: a newer format is refused as such`, () => {
    const newer = new Uint8Array(bytes);
    newer[0] = limits.formatVersion + 1;
    assert.equal(
      codeOf(() => decode(newer)),
      "newer_format",
    );
  });
}

test("one kind of stored value is not read as another", () => {
  for (const [what, bytes] of stored) {
    for (const [reader, , decode] of stored) {
      // A snapshot piece may be any array.
      if (reader === what || reader === "a snapshot piece") continue;
      assert.throws(() => decode(bytes), WireError, `${what} as ${reader}`);
    }
  }
});

test("a block larger than any frame is read back", () => {
  const many = Array.from({ length: 30_000 }, (_, at) => ({
    index: indexOf(at + 1),
    term: termOf(1),
    kind: "command" as const,
    payload: new Uint8Array([at & 0xff]),
    chain: at,
  }));
  assert.ok(many.length * 4 > limits.frameItemsMax);
  assert.deepEqual(decodeEntries(new Uint8Array(encodeEntries(many))), many);
});

test("a block has an entry, and no gap", () => {
  assert.throws(() => encodeEntries([]), /broken invariant/);
  assert.throws(() => encodeEntries(entries.filter((_, at) => at !== 1)), /broken invariant/);
});

test("a snapshot piece that can't be read back is not written", () => {
  let deepest: unknown[] = [];
  for (let depth = 1; depth < limits.frameDepthMax; depth++) deepest = [deepest];
  assert.deepEqual(decodeSnapshotPiece(encodeSnapshotPiece(deepest)), deepest);
  const odd: readonly [unknown[], WireErrorCode][] = [
    [[deepest], "too_deep"],
    [[1.5], "bad_value"],
    [[Number.NaN], "bad_value"],
    [[-0], "bad_value"],
    [[2 ** 53], "bad_value"],
    [[undefined], "bad_value"],
    [[1n], "bad_value"],
    [[{}], "bad_value"],
    [[new Map()], "bad_value"],
    [[new Uint8Array(1)], "bad_value"],
    [[["a", ["\uD800"]]], "bad_value"],
    [["\uFEFFname"], "bad_value"],
    [[() => 1], "bad_value"],
  ];
  for (const [piece, code] of odd)
    assert.equal(
      codeOf(() => encodeSnapshotPiece(piece)),
      code,
    );
});

test("more names than a frame has items, in one piece", () => {
  const piece = Array.from({ length: 200_000 }, (_, at) => `name-${at}`);
  assert.deepEqual(decodeSnapshotPiece(encodeSnapshotPiece(piece)), piece);
});
