import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { encodeClientFrame, limits, WireError } from "../src/index.js";
import { payloadsIn } from "../src/command-frames.js";
import { pack, unpack } from "../src/msgpack.js";

const payload = fc.oneof(
  { weight: 8, arbitrary: fc.uint8Array({ maxLength: 300 }) },
  { weight: 1, arbitrary: fc.constantFrom(255, 256, 65_535, 65_536).map((length) => new Uint8Array(length).fill(7)) },
);
const payloads = fc.oneof(
  { weight: 8, arbitrary: fc.array(payload, { minLength: 1, maxLength: 20 }) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(15, 16, 255, 256, 4_096)
      .map((count) => Array.from({ length: count }, () => new Uint8Array(3))),
  },
);

/** What the general decoder makes of it: the payloads, when it is a frame of commands with no more than that. */
function slowly(bytes: Uint8Array): Uint8Array[] | null {
  let values: unknown[];
  try {
    values = unpack(bytes, 0, limits.frameItemsMax);
  } catch (error) {
    assert.ok(error instanceof WireError);
    return null;
  }
  if (values.length === 0 || values.length > limits.messagesPerFrameMax) return null;
  const found = values.map((value) =>
    Array.isArray(value) && value.length === 2 && value[0] === 2 && value[1] instanceof Uint8Array ? value[1] : null,
  );
  return found.includes(null) ? null : (found as Uint8Array[]);
}

test("what is read by hand is what the general decoder reads, and nearly all of it is read by hand", () => {
  fc.assert(
    fc.property(payloads, (content) => {
      const bytes = encodeClientFrame(content.map((each) => ({ kind: "command", payload: each })));
      const found = payloadsIn(bytes);
      if (content.some(({ length }) => length > 65_535)) assert.equal(found, null);
      else assert.deepEqual(found, content);
    }),
  );
});

test("damaged frames are never read otherwise than the general decoder does", () => {
  const damage = fc.array(
    fc.record({
      at: fc.nat(),
      to: fc.oneof(fc.nat(255), fc.constantFrom(0x90, 0x92, 0x93, 0xc4, 0xc5, 0xc6, 0xdc, 2)),
    }),
    {
      minLength: 1,
      maxLength: 3,
    },
  );
  const few = fc.array(fc.uint8Array({ maxLength: 20 }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(few, damage, fc.nat(40), (content, changes, cut) => {
      const whole = encodeClientFrame(content.map((each) => ({ kind: "command", payload: each })));
      const bytes = new Uint8Array(cut < 20 ? whole.subarray(0, Math.max(0, whole.length - cut)) : whole);
      if (bytes.length > 0) for (const { at, to } of changes) bytes[at % bytes.length] = to;
      const found = payloadsIn(bytes);
      if (found !== null) assert.deepEqual(found, slowly(bytes));
    }),
    { numRuns: 2_000 },
  );
});

test("frames with anything else are left to the general decoder", () => {
  const command = [2, new Uint8Array([1])];
  for (const values of [
    [],
    [[5, 1, 1]],
    [command, [5, 1, 1]],
    [[...command, "later"]],
    [[3, new Uint8Array(1)]],
    [[2, "text"]],
  ]) {
    assert.equal(payloadsIn(pack(values)), null);
  }
  assert.equal(payloadsIn(new Uint8Array()), null);
  assert.equal(payloadsIn(new Uint8Array([0xdc])), null);
  const many = pack(Array.from({ length: limits.messagesPerFrameMax + 1 }, () => command));
  assert.equal(payloadsIn(many), null);
  assert.deepEqual(payloadsIn(pack([command]))?.length, 1);
});
