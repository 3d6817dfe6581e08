import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { crc32c } from "../src/index.js";

/** Bit by bit, straight from the definition. */
function crc32cSlow(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ 0x82f63b78;
  }
  return ~crc >>> 0;
}

const vectors: readonly [string, Uint8Array, number][] = [
  ["nothing", new Uint8Array(), 0],
  ["the check value of the catalogue", new TextEncoder().encode("123456789"), 0xe3069283],
  ["32 zeros (RFC 3720 B.4)", new Uint8Array(32), 0x8a9136aa],
  ["32 ones (RFC 3720 B.4)", new Uint8Array(32).fill(0xff), 0x62a8ab43],
  ["32 rising bytes (RFC 3720 B.4)", Uint8Array.from({ length: 32 }, (_, at) => at), 0x46dd794e],
  ["32 falling bytes (RFC 3720 B.4)", Uint8Array.from({ length: 32 }, (_, at) => 31 - at), 0x113fdb5c],
];

for (const [what, bytes, expected] of vectors) {
  test(`crc32c of ${what}`, () => {
    assert.equal(crc32c(bytes), expected);
  });
}

test("crc32c is what the definition says, at every length and alignment", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(20), (bytes, skipped) => {
      assert.equal(crc32c(bytes.subarray(skipped)), crc32cSlow(bytes.subarray(skipped)));
      assert.equal(crc32c(bytes, 0, Math.min(skipped, bytes.length)), crc32cSlow(bytes.subarray(skipped)));
    }),
    { numRuns: 500 },
  );
});

test("a checksum goes on from a seed", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), fc.uint8Array({ maxLength: 60 }), (first, second) => {
      assert.equal(crc32c(second, crc32c(first)), crc32c(new Uint8Array([...first, ...second])));
    }),
  );
});
