import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { EntryKind } from "@holdfast/raft";
import { crc32c, entryCodec, limits, WireError } from "../src/index.js";
import { configuration, indexOf, termOf } from "./peer-samples.js";

/** The chain as its description says it, written a second way. */
function chainByHand(previous: number, index: number, term: number, kind: EntryKind, payload: Uint8Array): number {
  const bytes = Buffer.alloc(21 + payload.length);
  bytes.writeBigUInt64BE(BigInt(index), 0);
  bytes.writeBigUInt64BE(BigInt(term), 8);
  bytes.writeUInt32BE(previous, 16);
  bytes.writeUInt8({ noop: 1, command: 2, configuration: 3 }[kind], 20);
  bytes.set(payload, 21);
  return crc32c(bytes);
}

test("the chain covers index, term, previous value, kind and payload", () => {
  fc.assert(
    fc.property(
      fc.nat(0xffffffff),
      fc.maxSafeNat(),
      fc.maxSafeNat(),
      fc.constantFrom<EntryKind>("noop", "command", "configuration"),
      fc.uint8Array({ maxLength: 50 }),
      (previous, index, term, kind, payload) => {
        const chain = entryCodec.chainFor(previous, indexOf(index), termOf(term), kind, payload);
        assert.equal(chain, chainByHand(previous, index, term, kind, payload));
      },
    ),
  );
});

test("chain values as they were decided", () => {
  assert.equal(entryCodec.chainFor(0, indexOf(1), termOf(1), "noop", new Uint8Array()), 0x8706ddcd);
  assert.equal(
    entryCodec.chainFor(0xfedcba98, indexOf(2 ** 40 + 1), termOf(7), "command", new Uint8Array([1, 2, 3])),
    0x6a27275,
  );
});

test("a change of any part changes the chain", () => {
  const payload = new Uint8Array([1, 2, 3]);
  const chain = entryCodec.chainFor(5, indexOf(6), termOf(7), "command", payload);
  const others = [
    entryCodec.chainFor(4, indexOf(6), termOf(7), "command", payload),
    entryCodec.chainFor(5, indexOf(6 + 2 ** 32), termOf(7), "command", payload),
    entryCodec.chainFor(5, indexOf(6), termOf(7 + 2 ** 32), "command", payload),
    entryCodec.chainFor(5, indexOf(7), termOf(6), "command", payload),
    entryCodec.chainFor(5, indexOf(6), termOf(7), "noop", payload),
    entryCodec.chainFor(5, indexOf(6), termOf(7), "command", payload.subarray(0, 2)),
    entryCodec.chainFor(5, indexOf(6), termOf(7), "command", new Uint8Array([1, 2, 3, 0])),
  ];
  assert.equal(new Set([chain, ...others]).size, others.length + 1);
});

test("an index that is no safe integer is a broken invariant", () => {
  for (const index of [-1, 0.5, Number.NaN, 2 ** 53]) {
    assert.throws(
      () => entryCodec.chainFor(0, indexOf(index), termOf(1), "noop", new Uint8Array()),
      /broken invariant/,
    );
  }
});

test("a configuration that no cluster may have is refused", () => {
  const [first] = configuration.voters;
  assert.ok(first !== undefined);
  const many = Array.from({ length: limits.membersMax + 1 }, (_, at) => ({ ...first, id: `n${at}` }));
  const bad = [
    { ...configuration, voters: [first, first] },
    { ...configuration, voters: [{ ...first, id: "" }] },
    { ...configuration, voters: [{ ...first, instance: "" }] },
    { ...configuration, voters: [{ ...first, peer: "x".repeat(limits.addressBytesMax + 1) }] },
    { ...configuration, learners: many },
    { ...configuration, removed: Array.from({ length: limits.removedMax + 1 }, (_, at) => `n${at}`) },
  ];
  for (const each of bad) assert.throws(() => entryCodec.encodeConfiguration(each), WireError);
  const full = {
    ...configuration,
    voters: many.slice(1),
    removed: Array.from({ length: limits.removedMax }, (_, at) => `n${at}`),
  };
  assert.deepEqual(entryCodec.decodeConfiguration(entryCodec.encodeConfiguration(full)), full);
});

test("bytes that are no configuration are refused", () => {
  for (const bytes of [
    [],
    [0x90],
    [0x94, 0x90, 0x90, 0x90],
    [0x95, 0x90, 0x90, 0x90, 0x90, 0x90],
    [0x94, 0x91, 0x90, 0x90, 0x90, 0x90],
  ]) {
    assert.throws(() => entryCodec.decodeConfiguration(new Uint8Array(bytes)), WireError);
  }
});
