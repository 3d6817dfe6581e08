import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { limits, WireError } from "../src/index.js";
import type { WireErrorCode } from "../src/index.js";
import { unpack } from "../src/msgpack.js";
import { prescan } from "../src/prescan.js";
import { bytesOf } from "./samples.js";

function codeOf(run: () => unknown): WireErrorCode | "passes" {
  try {
    run();
    return "passes";
  } catch (error) {
    assert.ok(error instanceof WireError, String(error));
    return error.code;
  }
}

function scan(hex: string, itemsMax = 100): WireErrorCode | "passes" {
  const bytes = bytesOf(hex.replaceAll(" ", ""));
  return codeOf(() => prescan(bytes, 0, bytes.length, itemsMax));
}

/** What it is, its bytes, the verdict. */
const table: readonly [string, string, WireErrorCode | "passes"][] = [
  ["nothing", "", "truncated"],
  ["an empty array", "90", "passes"],
  ["small numbers, nil, booleans", "97 00 7f e0 ff c0 c2 c3", "passes"],
  [
    "all number widths",
    "9a cc01 cd0102 ce01020304 cf0102030405060708 d001 d10102 d201020304 d30102030405060708 ca3f800000 cb3ff0000000000000",
    "passes",
  ],
  ["texts of all widths", "94 a161 d90161 da000161 db0000000161", "passes"],
  ["byte strings of all widths", "93 c401ff c50001ff c600000001ff", "passes"],
  ["arrays of all widths", "93 90 dc000101 dd0000000101", "passes"],
  ["bytes that look like an extension inside a byte string", "91 c403 c70072", "passes"],
  ["a missing member", "92 01", "truncated"],
  ["an array of 2^32-1 members", "dd ffffffff", "truncated"],
  ["an array of 2^16-1 members", "dc ffff 0000", "truncated"],
  ["a text past the end", "91 a3 6161", "truncated"],
  ["a text of 2^32-1 bytes", "91 db ffffffff 61", "truncated"],
  ["a byte string past the end", "91 c4 02 ff", "truncated"],
  ["a length cut short", "91 c6 0000", "truncated"],
  ["a number cut short", "91 cb 3ff0", "truncated"],
  ["an array's count cut short", "91 dd 000000", "truncated"],
  ["two values", "90 90", "trailing_bytes"],
  ["a byte behind a nested array", "91 90 00", "trailing_bytes"],
  ["an empty map", "91 80", "map"],
  ["a map 16", "91 de0000", "map"],
  ["a map 32", "91 df00000000", "map"],
  ["the reserved byte", "91 c1", "extension"],
  ["ext 8", "91 c7 01 05 00", "extension"],
  ["ext 16", "91 c8 0001 05 00", "extension"],
  ["ext 32", "91 c9 00000001 05 00", "extension"],
  ["fixext 1: undefined", "91 d4 00 00", "extension"],
  ["fixext 1: a record definition", "91 d4 72 40 91 a161 01", "extension"],
  ["fixext 2", "91 d5 05 0000", "extension"],
  ["fixext 4: a timestamp", "91 d6 ff 00000000", "extension"],
  ["fixext 8", "91 d7 ff 0000000000000000", "extension"],
  ["fixext 16", "91 d8 05 00000000000000000000000000000000", "extension"],
  ["two, three, four bytes of UTF-8", "91 a9 c3a9 e282ac f09f9880", "passes"],
  ["the highest code point", "91 a4 f48fbfbf", "passes"],
  ["a byte of continuation alone", "91 a1 80", "bad_text"],
  ["a lead byte alone", "91 a1 c3", "bad_text"],
  ["an overlong slash", "91 a2 c0af", "bad_text"],
  ["an overlong slash in three bytes", "91 a3 e080af", "bad_text"],
  ["an overlong slash in four bytes", "91 a4 f08080af", "bad_text"],
  ["a surrogate", "91 a3 eda080", "bad_text"],
  ["above U+10FFFF", "91 a4 f4908080", "bad_text"],
  ["a lead byte of five", "91 a5 f888808080", "bad_text"],
  ["ff", "91 a1 ff", "bad_text"],
  ["a sequence cut by the text's end", "92 a2 e282 ac", "bad_text"],
  ["a sequence cut by the text's end, in four bytes", "91 a3 f09f98", "bad_text"],
  ["a byte order mark in front", "91 a4 efbbbf61", "bad_text"],
  ["a byte order mark alone", "91 a3 efbbbf", "bad_text"],
  ["a byte order mark later", "91 a4 61efbbbf", "passes"],
];

for (const [what, hex, verdict] of table) {
  test(`pre-scan of ${what}: ${verdict}`, () => {
    assert.equal(scan(hex), verdict);
  });
}

test("every first byte has its verdict", () => {
  const refused = new Map<number, string>();
  for (let byte = 0; byte < 256; byte++) {
    // Behind it, zeros enough for any width; counts and lengths are then 0.
    const bytes = new Uint8Array(20);
    bytes[0] = byte;
    const verdict = codeOf(() => prescan(bytes, 0, bytes.length, 100));
    if (verdict === "map" || verdict === "extension") refused.set(byte, verdict);
  }
  const maps = [...Array(16).keys()].map((at) => 0x80 + at).concat([0xde, 0xdf]);
  const extensions = [0xc1, 0xc7, 0xc8, 0xc9, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8];
  const expected = [...maps.map((byte) => [byte, "map"]), ...extensions.map((byte) => [byte, "extension"])];
  assert.deepEqual([...refused].sort(), expected.sort());
});

test("nesting ends at the limit", () => {
  const deepest = limits.frameDepthMax;
  assert.equal(scan("91".repeat(deepest - 1) + "90"), "passes");
  assert.equal(scan("91".repeat(deepest) + "90"), "too_deep");
  assert.equal(scan("91".repeat(100_000) + "90", 200_000), "too_deep");
});

test("the number of values ends at the limit", () => {
  assert.equal(scan("93 01 02 90", 4), "passes");
  assert.equal(scan("93 01 02 90", 3), "too_many_items");
  // An array of 65,535 members is one value too: 65,536 in all. One member more is refused.
  const full = new Uint8Array(5 + 65_535);
  full.set([0xdd, 0x00, 0x00, 0xff, 0xff]);
  assert.equal(
    codeOf(() => prescan(full, 0, full.length, limits.frameItemsMax)),
    "passes",
  );
  const tooMany = new Uint8Array(5 + 65_536);
  tooMany.set([0xdd, 0x00, 0x01, 0x00, 0x00]);
  assert.equal(
    codeOf(() => prescan(tooMany, 0, tooMany.length, limits.frameItemsMax)),
    "too_many_items",
  );
});

test("a range is scanned, and nothing beside it", () => {
  const bytes = bytesOf("c1c1" + "9101" + "c1");
  prescan(bytes, 2, 4, 10);
  assert.equal(
    codeOf(() => prescan(bytes, 1, 4, 10)),
    "extension",
  );
  assert.equal(
    codeOf(() => prescan(bytes, 2, 3, 10)),
    "truncated",
  );
});

test("what passes, msgpackr decodes; the top must be an array", () => {
  for (const [, hex, verdict] of table) {
    const bytes = bytesOf(hex.replaceAll(" ", ""));
    assert.equal(
      codeOf(() => unpack(bytes, 0, 100)),
      verdict,
    );
  }
  for (const hex of ["01", "c0", "c3", "a161", "c40161", "cb3ff0000000000000"]) {
    const bytes = bytesOf(hex);
    assert.equal(
      codeOf(() => unpack(bytes, 0, 100)),
      "bad_shape",
      hex,
    );
  }
});

test("random bytes pass or are refused, and what passes msgpackr never finds undecodable", () => {
  // Made of the bytes that start values, so that more than a few get far.
  const byte = fc.oneof(
    fc.nat(255),
    fc.constantFrom(0x90, 0x91, 0x92, 0x93, 0xa1, 0xa2, 0xc4, 0xcc, 0xcd, 0xd9, 0xdc, 0xe0, 1, 2, 0x61),
  );
  fc.assert(
    fc.property(fc.array(byte, { maxLength: 40 }), (raw) => {
      const bytes = new Uint8Array([0x90 + (raw.length % 6), ...raw]);
      assert.notEqual(
        codeOf(() => unpack(bytes, 0, 100)),
        "undecodable",
      );
    }),
    { numRuns: 5_000 },
  );
});

test("the text check agrees with the platform's decoder", () => {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const byte = fc.oneof(
    fc.nat(255),
    fc.constantFrom(0xc2, 0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xbb),
  );
  fc.assert(
    fc.property(fc.array(byte, { maxLength: 12 }), (raw) => {
      const bytes = new Uint8Array(raw);
      let expected: string;
      try {
        expected = decoder.decode(bytes).startsWith("\uFEFF") ? "bad_text" : "passes";
      } catch {
        expected = "bad_text";
      }
      const framed = new Uint8Array([0x91, 0xd9, raw.length, ...raw]);
      assert.equal(
        codeOf(() => prescan(framed, 0, framed.length, 10)),
        expected,
      );
    }),
    { numRuns: 20_000 },
  );
});
