import assert from "node:assert/strict";
import { test } from "node:test";

import fc from "fast-check";

import { fenceOf, InvalidArgumentError, SequencerError, verifySequencer } from "../src/index.js";
import { doc42, newSigner } from "./signing.js";

const signer = newSigner();
const other = newSigner();
const keys = [other.publicKey, signer.publicKey];

test("what the cluster signed is a fence", () => {
  const verified = verifySequencer(signer.seal(doc42), keys);
  assert.deepEqual(verified, { ...doc42, resource: "doc:42", keyId: signer.publicKey.id });
  assert.deepEqual(fenceOf(verified), { resource: "doc:42", token: 4711 });
});

test("a slot has a register of its own", () => {
  const gpu = { name: "gpu", mode: "slot", slot: 3, token: 7 } as const;
  const { resource, slot } = verifySequencer(signer.seal(gpu), keys);
  assert.deepEqual([resource, slot], ["gpu#3", 3]);
});

test("no letter of a sequencer can be changed", () => {
  const text = signer.seal(doc42);
  fc.assert(
    fc.property(fc.nat(text.length - 1), fc.constantFrom(..."AZaz09-_."), (at, letter) => {
      fc.pre(text[at] !== letter);
      assert.throws(() => verifySequencer(`${text.slice(0, at)}${letter}${text.slice(at + 1)}`, keys), SequencerError);
    }),
    { numRuns: 300 },
  );
});

test("it is refused with the reason", () => {
  const text = signer.seal(doc42);
  const huge = text.replace(".4711.", `.${Number.MAX_SAFE_INTEGER}.`);
  const table: [string, readonly (typeof signer.publicKey)[], string, string | null][] = [
    ["holdfast1.nothing", keys, "malformed", null],
    ["", keys, "malformed", null],
    [huge, keys, "forged", signer.publicKey.id],
    [text.replace(signer.publicKey.id, other.publicKey.id), keys, "forged", other.publicKey.id],
    [text, [other.publicKey], "unknown_key", signer.publicKey.id],
    [text, [], "unknown_key", signer.publicKey.id],
  ];
  for (const [sequencer, known, reason, keyId] of table) {
    assert.throws(
      () => verifySequencer(sequencer, known),
      (error) =>
        error instanceof SequencerError &&
        error.code === "bad_sequencer" &&
        error.reason === reason &&
        error.keyId === keyId &&
        error.retryable === (reason === "unknown_key"),
      `${sequencer} ${reason}`,
    );
  }
});

test("mistakes of the caller are named", () => {
  const text = signer.seal(doc42);
  const { id, publicKey } = signer.publicKey;
  const table: [unknown, unknown, string][] = [
    [undefined, keys, "sequencer"],
    [{ token: 1 }, keys, "sequencer"],
    [text, { id, publicKey }, "publicKeys"],
    [text, [null], "publicKeys[0].publicKey"],
    [text, [{ id, publicKey: `${publicKey}=` }], "publicKeys[0].publicKey"],
    [text, [{ id, publicKey: publicKey.slice(1) }], "publicKeys[0].publicKey"],
    [text, [signer.publicKey, { id: other.publicKey.id, publicKey }], "publicKeys[1].id"],
  ];
  for (const [sequencer, known, argument] of table) {
    assert.throws(
      () => verifySequencer(sequencer as string, known as []),
      (error) => error instanceof InvalidArgumentError && error.argument === argument,
      argument,
    );
  }
});
