import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { fromBase64url, toBase64url } from "../src/base64url.js";
import { limits, parseSequencer, sealSequencer, sequencerToSign, WireError } from "../src/index.js";
import type { Sequencer, SequencerClaim } from "../src/index.js";
import { refusalOf } from "./wire-errors.js";

const keyId = "0123456789abcdef";
const signature = Uint8Array.from({ length: 64 }, (_, at) => 255 - at);
const claims: fc.Arbitrary<SequencerClaim> = fc
  .record({
    name: fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }).filter((name) => !/\p{Cc}|^\uFEFF/u.test(name)),
    token: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    slot: fc.option(fc.integer({ min: 0, max: limits.slotsMax - 1 })),
    isShared: fc.boolean(),
  })
  .map(({ name, token, slot, isShared }) => ({
    name,
    token,
    slot,
    mode: slot !== null ? ("slot" as const) : isShared ? ("shared" as const) : ("exclusive" as const),
  }));
const doc42: SequencerClaim = { name: "doc:42", mode: "exclusive", slot: null, token: 4711 };
const golden = `holdfast1.${keyId}.ZG9jOjQy.exclusive.-.4711.${Buffer.from(signature).toString("base64url")}`;

function sealed(claim: SequencerClaim): string {
  return sealSequencer(sequencerToSign(keyId, claim), signature);
}

test("a sequencer is one printable text", () => {
  assert.equal(sealed(doc42), golden);
  assert.match(sealed({ name: "gpu ☃", mode: "slot", slot: 3, token: 2 ** 53 - 1 }), /^[\w.-]+$/);
});

test("any sequencer is read back", () => {
  fc.assert(
    fc.property(claims, (claim) => {
      const text = sealed(claim);
      const { signed, signature: read, keyId: id, ...rest } = parseSequencer(text);
      assert.deepEqual(rest, claim);
      assert.deepEqual([id, signed], [keyId, text.slice(0, text.lastIndexOf("."))]);
      assert.deepEqual(read, signature);
    }),
  );
});

test("each sequencer has one text: whatever else is read says something else", () => {
  fc.assert(
    fc.property(claims, fc.nat(), fc.constantFrom(..."AZaz09-_.=+/ \n"), (claim, place, letter) => {
      const text = sealed(claim);
      const at = place % text.length;
      const changed = `${text.slice(0, at)}${letter}${text.slice(at + 1)}`;
      let read: Sequencer;
      try {
        read = parseSequencer(changed);
      } catch (error) {
        assert.ok(error instanceof WireError && error.code === "bad_value", String(error));
        return;
      }
      assert.equal(sealSequencer(sequencerToSign(read.keyId, read), read.signature), changed);
    }),
    { numRuns: 1_000 },
  );
});

test("what is no sequencer is refused with the reason", () => {
  const [, , , , , , end = ""] = golden.split(".");
  const table: [unknown, RegExp][] = [
    [7, /is no text/],
    ["", /does not begin with holdfast1/],
    [`holdfast2${golden.slice(9)}`, /does not begin with holdfast1/],
    [golden.slice(0, golden.lastIndexOf(".")), /has not seven parts/],
    [`${golden}.x`, /has not seven parts/],
    [golden.replace(keyId, keyId.toUpperCase()), /has a key id that is not of lower-case hex digits/],
    [golden.replace("ZG9jOjQy", ""), /has a name that is empty/],
    [golden.replace("ZG9jOjQy", "_w"), /has a name that is no UTF-8/],
    [golden.replace("ZG9jOjQy", "AA"), /has a name that has a control character/],
    [golden.replace("exclusive", "mine"), /has an unknown mode/],
    [golden.replace(".-.", ".0."), /has a slot that its mode has not/],
    [golden.replace("exclusive", "slot"), /lacks the slot that its mode has/],
    [golden.replace("exclusive.-", `slot.${limits.slotsMax}`), /has a slot that is above/],
    [golden.replace("4711", "0"), /has a token that is below 1/],
    [golden.replace("4711", "04711"), /no plain number/],
    [golden.replace("4711", "4711.0"), /has not seven parts/],
    [golden.replace("4711", "9007199254740992"), /has a token that is no whole number in range/],
    [golden.replace(end, end.slice(1)), /has no signature of 64 bytes/],
    [`holdfast1.${"A".repeat(5_000)}`, /is longer than/],
  ];
  for (const [text, problem] of table) {
    assert.match(refusalOf(() => parseSequencer(text)).message, problem, String(text));
  }
});

test("the longest sequencer is read", () => {
  const name = "\u{1F512}".repeat(limits.nameBytesMax / 4);
  const claim = { name, mode: "slot", slot: limits.slotsMax - 1, token: Number.MAX_SAFE_INTEGER } as const;
  assert.equal(parseSequencer(sealed(claim)).name, name);
});

test("base64url is Node's, and its strict reading", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 70 }), (bytes) => {
      const text = toBase64url(bytes);
      assert.equal(text, Buffer.from(bytes).toString("base64url"));
      assert.deepEqual(fromBase64url(text), bytes);
    }),
  );
  for (const text of ["A", "AB", "AAB", "AA==", "A+", "ä"]) assert.equal(fromBase64url(text), null, text);
});
