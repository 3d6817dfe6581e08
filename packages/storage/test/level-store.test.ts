import type { Entry } from "@holdfast/raft";
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { StoreWrite } from "../src/index.js";
import { verifyDatabase } from "../src/open-store.js";
import {
  append,
  baseAt,
  endOf,
  entriesAfter,
  firstBase,
  formNew,
  index,
  nothing,
  openFormed,
  owner,
  payloads,
  term,
} from "./fixture.js";
import { expectRestored, hardState, rowsOf, storeWith } from "./store-fixture.js";

describe("the log", () => {
  test("a truncation inside a block keeps the block's first part", async () => {
    const { directory, opened, store, entries } = await storeWith(5, 5, 5);
    const kept = entries.slice(0, 7);
    const more = entriesAfter(endOf(kept), 2, payloads(2, 3));
    await store.write({ ...nothing, truncateFrom: index(8), entries: more });
    await opened.close();
    await expectRestored(directory, { entries: [...kept, ...more] });
    assert.equal((await rowsOf(directory, "entries")).length, 3);
  });

  test("a truncation between blocks, of everything, and of nothing", async () => {
    const { directory, opened, store, entries } = await storeWith(5, 5);
    await store.write({ ...nothing, truncateFrom: index(11) });
    await store.write({ ...nothing, truncateFrom: index(6) });
    await opened.close();
    await expectRestored(directory, { entries: entries.slice(0, 5) });
    const again = await openFormed(directory);
    await again.store.write({ ...nothing, truncateFrom: index(1) });
    const anew = entriesAfter(endOf([]), 2, payloads(1, 1));
    await append(again.store, anew);
    await again.opened.close();
    await expectRestored(directory, { entries: anew });
  });

  test("a flood of entries in one write", async () => {
    const { directory, opened, store } = await storeWith();
    const entries = entriesAfter(endOf([]), 2, payloads(10_000, 1));
    await append(store, entries);
    await store.write({ ...nothing, truncateFrom: index(9_001) });
    await opened.close();
    await expectRestored(directory, { entries: entries.slice(0, 9_000) });
  });

  test("kinds and payloads of every size come back", async () => {
    const { directory, opened, store } = await storeWith();
    const entries = entriesAfter(endOf([]), 2, [
      new Uint8Array(0),
      new Uint8Array(1),
      new Uint8Array(1_000_000).fill(9),
    ]);
    await append(store, entries);
    await opened.close();
    await expectRestored(directory, { entries });
  });
});

describe("what a caller must not do is a broken invariant", () => {
  const good = entriesAfter(endOf([]), 2, payloads(3, 5));
  const [one, two, three] = good as [Entry, Entry, Entry];
  const cases: readonly [string, Partial<StoreWrite>, RegExp][] = [
    ["a gap", { entries: [one, three] }, /the log has no gap/],
    ["a gap after the last entry", { entries: [two] }, /the log has no gap/],
    ["a broken chain", { entries: [one, { ...two, chain: 5 }] }, /each entry is chained/],
    ["a falling term", { entries: [one, ...entriesAfter(one, 1, payloads(1, 1))] }, /terms do not fall/],
    [
      "an entry of a term to come",
      { entries: entriesAfter(endOf([]), 3, payloads(1, 1)) },
      /the term is not older than the log's/,
    ],
    ["a falling hard state", { hardState: { term: term(1), votedFor: null } }, /the term does not fall/],
    ["a second vote", { hardState: { term: term(2), votedFor: "n2" } }, /a vote stands for its whole term/],
    [
      "a removal without a snapshot",
      { entries: good, removeThrough: index(1) },
      /only what a complete snapshot covers/,
    ],
    [
      "a snapshot that begins in its middle",
      { chunk: { base: firstBase, chunk: 1, bytes: one.payload, done: false, origin: "own" } },
      /come in order/,
    ],
    [
      "an own snapshot beyond the log",
      { chunk: { base: baseAt(three), chunk: 0, bytes: one.payload, done: true, origin: "own" } },
      /ends with an entry of the log/,
    ],
  ];
  for (const [name, write, message] of cases) {
    test(name, async () => {
      const { directory, opened, store } = await storeWith();
      await assert.rejects(store.write({ ...nothing, ...write }), message);
      await assert.rejects(store.write({ ...nothing, entries: good }), message, "nothing is written any more");
      await opened.close();
      await expectRestored(directory, {});
    });
  }

  test("two writes at once", async () => {
    const { directory, opened, store, entries } = await storeWith(1);
    const first = append(store, entriesAfter(endOf(entries), 2, payloads(1, 1)));
    await assert.rejects(append(store, []), /one write is in flight at a time/);
    await first;
    await opened.close();
    await expectRestored(directory, { entries: [...entries, ...entriesAfter(endOf(entries), 2, payloads(1, 1))] });
  });
});

test("a write of nothing makes no batch", async () => {
  const { directory, opened, store } = await storeWith(1);
  await store.write(nothing);
  await opened.close();
  const { recovered } = await verifyDatabase({ directory, owner, machineRestarted: false });
  assert.equal(recovered.meta.batchNumber, 3);
});

test("the mark is written before a write resolves", async () => {
  const { directory, opened, store } = await formNew();
  await store.write({ ...nothing, hardState });
  for (let batch = 3; batch < 8; batch++) {
    await store.write({ ...nothing, hardState });
    const mark = await readFile(join(directory, "mark"));
    assert.equal(Math.max(mark.readUInt32BE(12), mark.readUInt32BE(4_096 + 12)), batch);
  }
  await opened.close();
});
