import type { Entry } from "@holdfast/raft";
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  append,
  baseAt,
  endOf,
  entriesAfter,
  index,
  nothing,
  openFormed,
  payloads,
  readSnapshot,
  writeSnapshot,
} from "./fixture.js";
import { internals, restoreInternals } from "./level-internals.js";
import { expectRestored, rowsOf, storeWith } from "./store-fixture.js";

// A snapshot on disk, own or received.

test("own: chunks, then the log up to it may go", async () => {
  const { directory, opened, store, entries } = await storeWith(4, 4, 4);
  const chunks = payloads(3, 1_000);
  assert.equal(store.snapshot, null);
  await writeSnapshot(store, baseAt(entries[5]), chunks);
  assert.deepEqual(store.snapshot, { base: baseAt(entries[5]), chunks: 3 });
  assert.deepEqual(await readSnapshot(store), chunks);
  assert.equal(await store.readChunk(index(6), 3), null);
  assert.equal(await store.readChunk(index(5), 0), null);
  await store.write({ ...nothing, removeThrough: index(6) });
  await opened.close();
  await expectRestored(directory, { base: baseAt(entries[5]), entries: entries.slice(6) });
  assert.equal((await rowsOf(directory, "entries")).length, 2, "the block that reaches over the base stays");
});

test("an older one can be read until a removal", async () => {
  const { opened, store, entries } = await storeWith(9);
  await writeSnapshot(store, baseAt(entries[2]), payloads(2, 10));
  await writeSnapshot(store, baseAt(entries[5]), payloads(1, 10));
  assert.notEqual(await store.readChunk(index(3), 1), null);
  await store.write({ ...nothing, removeThrough: index(2) });
  assert.equal(await store.readChunk(index(3), 1), null);
  assert.notEqual(await store.readChunk(index(6), 0), null);
  await opened.close();
});

test("a chunk whose rows go while it is read", async () => {
  const { opened, store, entries } = await storeWith(9);
  await writeSnapshot(store, baseAt(entries[2]), payloads(1, 10));
  await writeSnapshot(store, baseAt(entries[5]), payloads(1, 10));
  let answer = (): void => undefined;
  internals._get = async () => {
    await new Promise<void>((resolve) => (answer = resolve));
    return undefined;
  };
  const reading = store.readChunk(index(3), 0);
  restoreInternals();
  await store.write({ ...nothing, removeThrough: index(2) });
  answer();
  assert.equal(await reading, null);
  await opened.close();
});

test("a new attempt begins anew and leaves nothing of the last", async () => {
  const { directory, opened, store, entries } = await storeWith(9);
  const base = baseAt(entries[8]);
  const begun = payloads(5, 10, 100);
  for (const [chunk, bytes] of begun.entries())
    await store.write({ ...nothing, chunk: { base, chunk, bytes, done: false, origin: "received" } });
  await writeSnapshot(store, base, payloads(2, 10), "received");
  await append(store, entriesAfter(endOf(entries), 2, payloads(1, 1)));
  assert.deepEqual(await readSnapshot(store), payloads(2, 10));
  await opened.close();
  assert.equal((await rowsOf(directory, "chunk")).length, 2);
});

test("an own and a received one of the same index don't mix", async () => {
  const { directory, opened, store, entries } = await storeWith(9);
  const base = baseAt(entries[8]);
  await store.write({
    ...nothing,
    chunk: { base, chunk: 0, bytes: new Uint8Array(3).fill(1), done: false, origin: "own" },
  });
  await store.write({
    ...nothing,
    chunk: { base, chunk: 0, bytes: new Uint8Array(4).fill(2), done: false, origin: "received" },
  });
  await store.write({
    ...nothing,
    chunk: { base, chunk: 1, bytes: new Uint8Array(3).fill(3), done: true, origin: "own" },
  });
  await store.write({
    ...nothing,
    chunk: { base, chunk: 1, bytes: new Uint8Array(4).fill(4), done: true, origin: "received" },
  });
  const expected = [new Uint8Array(3).fill(1), new Uint8Array(3).fill(3)];
  assert.deepEqual(await readSnapshot(store), expected, "the first to be complete stays");
  await opened.close();
  const again = await openFormed(directory);
  assert.deepEqual(await readSnapshot(again.store), expected);
  await again.opened.close();
});

test("an older one that completes late doesn't become the newest", async () => {
  const { directory, opened, store, entries } = await storeWith(9);
  await store.write({
    ...nothing,
    chunk: { base: baseAt(entries[3]), chunk: 0, bytes: new Uint8Array(1), done: false, origin: "received" },
  });
  await writeSnapshot(store, baseAt(entries[6]), payloads(1, 10));
  await store.write({
    ...nothing,
    chunk: { base: baseAt(entries[3]), chunk: 1, bytes: new Uint8Array(1), done: true, origin: "received" },
  });
  assert.equal(store.snapshot?.base.position.index, 7);
  assert.notEqual(await store.readChunk(index(4), 1), null);
  await opened.close();
  await expectRestored(directory, { base: baseAt(entries[6]), entries: entries.slice(7) });
});

/** A received snapshot takes the log's place. */
const longer = entriesAfter(endOf([]), 2, payloads(30, 20));
const at = (number: number): Entry => longer[number - 1] as Entry;

test("the log is shorter: it is empty behind the base", async () => {
  const { directory, opened, store } = await storeWith(4, 4);
  await writeSnapshot(store, baseAt(at(20)), payloads(2, 10), "received");
  await append(store, longer.slice(20, 25));
  await opened.close();
  assert.equal((await rowsOf(directory, "entries")).length, 1, "the old log is deleted");
  await expectRestored(directory, { base: baseAt(at(20)), entries: longer.slice(20, 25) });
});

test("the log has the base: it goes on behind it", async () => {
  const { directory, opened, store } = await storeWith();
  await append(store, longer.slice(0, 12));
  await append(store, longer.slice(12, 25));
  await writeSnapshot(store, baseAt(at(20)), payloads(2, 10), "received");
  await append(store, longer.slice(25));
  await opened.close();
  await expectRestored(directory, { base: baseAt(at(20)), entries: longer.slice(20) });
});

test("the log has another entry at the base: it is empty behind the base", async () => {
  const { directory, opened, store } = await storeWith(10, 15);
  await writeSnapshot(store, baseAt(at(20)), payloads(2, 10), "received");
  await append(store, longer.slice(20, 22));
  await opened.close();
  await expectRestored(directory, { base: baseAt(at(20)), entries: longer.slice(20, 22) });
});

test("a log of many blocks is replaced at once, and its rows are deleted by and by", async () => {
  const { directory, opened, store } = await storeWith(...Array.from({ length: 300 }, () => 1));
  await writeSnapshot(store, baseAt(at(20)), payloads(2, 10), "received");
  const anew = entriesAfter(at(20), 2, payloads(2, 7));
  for (const entry of anew) await append(store, [entry]);
  await opened.close();
  assert((await rowsOf(directory, "entries")).length > 100, "most of the old log is still there");
  await expectRestored(directory, { base: baseAt(at(20)), entries: anew });
  assert.equal((await rowsOf(directory, "entries")).length, 2, "the start has deleted it");
});

test("rows of the old log go while the new one grows over their places", async () => {
  const { directory, opened, store } = await storeWith(...Array.from({ length: 300 }, () => 1));
  await writeSnapshot(store, baseAt(at(20)), payloads(2, 10), "received");
  const anew = entriesAfter(at(20), 2, payloads(280, 7));
  for (const entry of anew) await append(store, [entry]);
  await opened.close();
  assert.equal((await rowsOf(directory, "entries")).length, anew.length);
  await expectRestored(directory, { base: baseAt(at(20)), entries: anew });
});

test("the entry at the base comes in the same write", async () => {
  const { directory, opened, store } = await storeWith();
  await append(store, longer.slice(0, 12));
  const base = baseAt(at(20));
  await store.write({
    ...nothing,
    chunk: { base, chunk: 0, bytes: new Uint8Array(2), done: false, origin: "received" },
  });
  await store.write({
    ...nothing,
    entries: longer.slice(12, 23),
    chunk: { base, chunk: 1, bytes: new Uint8Array(2), done: true, origin: "received" },
  });
  await opened.close();
  await expectRestored(directory, { base, entries: longer.slice(20, 23) });
});

test("entries that were under way below and over the base", async () => {
  const { directory, opened, store } = await storeWith();
  await append(store, longer.slice(0, 5));
  await writeSnapshot(store, baseAt(at(20)), payloads(1, 10), "received");
  await append(store, longer.slice(5, 9));
  await store.write({ ...nothing, truncateFrom: index(8), entries: longer.slice(7, 19) });
  await append(store, longer.slice(19, 24));
  await opened.close();
  await expectRestored(directory, { base: baseAt(at(20)), entries: longer.slice(20, 24) });
});

test("a truncation that was under way below the base takes what is behind it", async () => {
  const { directory, opened, store } = await storeWith();
  await append(store, longer);
  await writeSnapshot(store, baseAt(at(20)), payloads(1, 10), "received");
  await store.write({ ...nothing, truncateFrom: index(15), entries: longer.slice(14, 26) });
  await opened.close();
  await expectRestored(directory, { base: baseAt(at(20)), entries: longer.slice(20, 26) });
});

test("an entry at the base that isn't the base's is divergence", async () => {
  const { opened, store } = await storeWith();
  await append(store, longer.slice(0, 5));
  await writeSnapshot(store, { ...baseAt(at(20)), chain: 1 }, payloads(1, 10), "received");
  await assert.rejects(append(store, longer.slice(5, 22)), /an entry equals the base that covers it/);
  await opened.close();
});
