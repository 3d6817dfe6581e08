/** What the virtual disk does in health, and what it refuses of its writer. */
import type { Index } from "@holdfast/raft";
import type { StoreWrite } from "@holdfast/storage";
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Bench, at, bytes, indexes, isIo, log, refusalOf, told } from "./disk-bench.js";
import { baseOf, entriesAfter, nothing, termOf } from "./disk-fixture.js";

describe("a disk in health", () => {
  test("a write returns after the time of a sync, and is there only then", async () => {
    const bench = new Bench();
    bench.disk.syncMs = () => 7;
    const { state } = bench.begin({ entries: log, hardState: { ...termOf(3), votedFor: "n2" } });
    await told();
    assert.deepEqual([state(), bench.clock.delays, bench.disk.durable().last.index], ["pending", [7], 0]);
    bench.clock.run();
    await told();
    assert.equal(state(), "done");
    const durable = bench.disk.durable();
    assert.deepEqual([durable.last, durable.hardState.votedFor], [{ term: 0, index: 4 }, "n2"]);
    assert.deepEqual([durable.chainAt(at(2).index), durable.termAt(at(2).index)], [at(2).chain, 0]);
    assert.deepEqual([durable.chainAt(5 as Index), durable.chainAt(0 as Index)], [null, 0]);
  });

  test("a write of nothing returns at once", async () => {
    const bench = new Bench();
    await bench.store.write(nothing);
    assert.deepEqual(bench.clock.delays, []);
  });

  test("the boot is counted, and only one process has the directory", async () => {
    const bench = new Bench();
    assert.equal(bench.disk.boot, 1);
    assert.equal(
      refusalOf(() => bench.reopen()),
      "locked",
    );
    bench.disk.kill();
    bench.reopen();
    assert.equal(bench.disk.boot, 2);
    await bench.store.close();
    await assert.rejects(bench.store.write({ ...nothing, entries: log }), isIo);
    bench.reopen();
    assert.equal(bench.disk.boot, 3);
  });

  test("closing waits for the write in flight", async () => {
    const bench = new Bench();
    const { state } = bench.begin({ entries: log });
    const closed = bench.store.close();
    assert.equal(
      refusalOf(() => bench.reopen()),
      "locked",
    );
    bench.clock.run();
    await closed;
    assert.equal(state(), "done");
    assert.deepEqual(indexes(bench.reopen().entries), [1, 2, 3, 4]);
  });

  test("an unfinished snapshot and older ones are gone after a start", async () => {
    const bench = new Bench();
    await bench.write({ entries: log });
    await bench.writeSnapshot(at(1), [bytes(11), bytes(12)]);
    await bench.writeSnapshot(at(3), [bytes(31)]);
    assert.deepEqual(await bench.store.readChunk(at(1).index, 1), bytes(12));
    await bench.write({ chunk: { base: baseOf(9, 0, 5), chunk: 0, bytes: bytes(9), done: false, origin: "received" } });
    bench.disk.kill();
    assert.deepEqual(indexes(bench.reopen().entries), [4]);
    assert.equal(await bench.store.readChunk(at(1).index, 1), null);
    assert.deepEqual(await bench.store.readChunk(at(3).index, 0), bytes(31));
    bench.disk.onBroken = () => undefined;
    const second = { base: baseOf(9, 0, 5), chunk: 1, bytes: bytes(9), done: true, origin: "received" as const };
    await assert.rejects(bench.write({ chunk: second }), /come in order/);
  });

  test("a received snapshot takes the place of a log that doesn't hold its end", async () => {
    const bench = new Bench();
    await bench.write({ entries: log });
    await bench.writeSnapshot({ ...at(2), chain: 77 }, [bytes(1)], "received");
    const durable = bench.disk.durable();
    assert.deepEqual([durable.last.index, durable.lastChain, durable.firstIndex], [2, 77, 3]);
  });

  test("a removal takes the entries and the older snapshots that are covered", async () => {
    const bench = new Bench();
    await bench.write({ entries: log });
    await bench.writeSnapshot(at(1), [bytes(1)]);
    await bench.writeSnapshot(at(3), [bytes(3)]);
    assert.deepEqual(bench.disk.durable().entryAt(at(1).index), at(1));
    await bench.write({ removeThrough: at(2).index });
    const durable = bench.disk.durable();
    assert.deepEqual([durable.firstIndex, durable.entryAt(at(2).index), durable.last.index], [3, null, 4]);
    assert.equal(await bench.store.readChunk(at(1).index, 0), null);
    await bench.write({ removeThrough: at(3).index, truncateFrom: at(4).index });
    assert.deepEqual([durable.firstIndex, durable.last.index, durable.lastChain], [4, 3, at(3).chain]);
  });

  test("a second snapshot of one index changes nothing", async () => {
    const bench = new Bench();
    await bench.write({ entries: log });
    await bench.writeSnapshot(at(2), [bytes(1)]);
    await bench.writeSnapshot(at(2), [bytes(5), bytes(6)], "received");
    assert.deepEqual(await bench.store.readChunk(at(2).index, 0), bytes(1));
    assert.equal(bench.store.snapshot?.chunks, 1);
  });

  test("a chunk is read after the time of a read", async () => {
    const bench = new Bench();
    bench.disk.readMs = () => 4;
    await bench.write({ entries: log });
    await bench.writeSnapshot(at(2), [bytes(5)]);
    const read = bench.store.readChunk(at(2).index, 0);
    assert.deepEqual(bench.clock.delays, [4]);
    bench.clock.run();
    assert.deepEqual(await read, bytes(5));
  });

  test("a snapshot that is completed by the write in flight can't be read yet", async () => {
    const bench = new Bench();
    await bench.write({ entries: log });
    bench.begin({ chunk: { base: baseOf(2, 0, at(2).chain), chunk: 0, bytes: bytes(1), done: true, origin: "own" } });
    assert.equal(bench.store.snapshot?.base.position.index, 2);
    await assert.rejects(bench.store.readChunk(at(2).index, 0), /is missing/);
    assert(bench.disk.isQuarantined);
  });
});

describe("what the real store refuses is refused", () => {
  const chunk = { base: baseOf(2, 0, at(2).chain), chunk: 0, bytes: bytes(1), done: true, origin: "own" as const };
  const cases: readonly [string, Partial<StoreWrite>, RegExp][] = [
    ["a term that falls", { hardState: termOf(1) }, /does not fall/],
    ["another vote", { hardState: { ...termOf(2), votedFor: "n2" } }, /stands for its whole term/],
    ["a gap", { entries: entriesAfter({ index: 5, chain: 0 }, 2, [bytes(1)]) }, /no gap/],
    ["a broken chain", { entries: entriesAfter({ index: 4, chain: 0 }, 2, [bytes(1)]) }, /chained/],
    ["a term above the hard state's", { entries: entriesAfter(at(4), 3, [bytes(1)]) }, /not older than the log's/],
    ["a chunk too soon", { chunk: { ...chunk, chunk: 1 } }, /come in order/],
    ["an own snapshot of another log", { chunk: { ...chunk, base: baseOf(2, 0, 1) } }, /ends with an entry/],
    ["an own snapshot of what is cut", { chunk, truncateFrom: at(2).index }, /ends with an entry/],
    ["a removal without a snapshot", { removeThrough: at(1).index }, /covers is removed/],
  ];
  for (const [name, write, found] of cases) {
    test(name, async () => {
      const bench = new Bench();
      await bench.write({ entries: log, hardState: { ...termOf(2), votedFor: "n1" } });
      assert.throws(() => bench.store.write({ ...nothing, ...write }), found);
      await assert.rejects(bench.write({ hardState: termOf(9) }), found);
      assert.equal(bench.disk.durable().batchNumber, 2);
    });
  }

  test("two writes in flight", () => {
    const bench = new Bench();
    bench.begin({ entries: log });
    assert.throws(() => bench.store.write({ ...nothing, entries: log }), /one write/);
  });
});
