/** A command's place in its caller's trace, in the frame. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeClientFrame, encodeClientFrame, encodeCommand, isTraceparent } from "../src/index.js";
import { pack } from "../src/msgpack.js";

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const payload = encodeCommand({ kind: "openSession", key: "1".repeat(32), ttlMs: 10_000, info: "" });

test("a traceparent is one of W3C Trace Context, of whatever version", () => {
  for (const good of [traceparent, `cc${traceparent.slice(2)}`, `${traceparent.slice(0, -2)}00`]) {
    assert.equal(isTraceparent(good), true, good);
  }
  const zeros = "0".repeat(32);
  for (const bad of [
    "",
    `ff${traceparent.slice(2)}`,
    traceparent.toUpperCase(),
    `${traceparent}-more`,
    traceparent.slice(0, -1),
    `00-${zeros}-b7ad6b7169203331-01`,
    `00-0af7651916cd43dd8448eb211c80319c-${zeros.slice(16)}-01`,
    `${traceparent}\n`,
    7,
    null,
    undefined,
  ]) {
    assert.equal(isTraceparent(bad), false, String(bad));
  }
});

test("a command bears it, and without one its frame is what it always was", () => {
  const [traced] = decodeClientFrame(encodeClientFrame([{ kind: "command", payload, traceparent }]));
  assert.deepEqual(traced, { kind: "command", payload, traceparent });
  const plain = encodeClientFrame([{ kind: "command", payload }]);
  assert.deepEqual(decodeClientFrame(plain), [{ kind: "command", payload }]);
  assert.deepEqual(encodeClientFrame([{ kind: "command", payload, traceparent: "broken" }]), plain);
});

test("one that is broken is passed over, and so is what a later release adds behind it", () => {
  const kind = 2;
  const messages = [
    [kind, payload, "broken"],
    [kind, payload, 7, "more"],
    [kind, payload, traceparent, "more"],
  ];
  assert.deepEqual(decodeClientFrame(pack(messages)), [
    { kind: "command", payload },
    { kind: "command", payload },
    { kind: "command", payload, traceparent },
  ]);
});
