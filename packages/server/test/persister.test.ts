import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Entry, HardState, Index, Outbound, Output, Term } from "@holdfast/raft";
import type { Store, StoreWrite } from "@holdfast/storage";
import { Persister } from "../src/persister.js";

const nothing: Output = {
  number: 0,
  hardState: null,
  truncateFrom: null,
  entries: [],
  chunk: null,
  send: [],
  sendAfterPersist: [],
  committed: [],
  install: null,
  confirmed: [],
  unconfirmed: [],
  refused: [],
  snapshotReads: [],
  roleChanges: [],
  configuration: null,
  changes: [],
  isRemoved: false,
};

const entry = (index: number, term = 1): Entry => ({
  index: index as Index,
  term: term as Term,
  kind: "command",
  payload: new Uint8Array(10),
  chain: index,
});
const vote = (to: string): Outbound => ({ to, message: { kind: "voteAnswer", term: 1 as Term, granted: true } });
const hardState = (term: number): HardState => ({ term: term as Term, votedFor: null });

class Bench {
  readonly writes: StoreWrite[] = [];
  readonly told: string[] = [];
  private readonly ends: { resolve: () => void; reject: (error: Error) => void }[] = [];
  readonly persister: Persister;

  constructor(writeBytesMax = 1_000) {
    const store: Store = {
      snapshot: null,
      write: (write) => {
        this.writes.push(write);
        return new Promise((resolve, reject) => this.ends.push({ resolve, reject }));
      },
      readChunk: async () => null,
      close: async () => {},
    };
    const clock = { monotonicMs: () => 0, wallMs: () => 0, setTimer: () => ({ cancel() {} }), setImmediate() {} };
    this.persister = new Persister({ writeBytesMax }, store, clock, {
      onPersisted: (number, send) => this.told.push(`persisted ${number}${send.map(({ to }) => ` ${to}`).join("")}`),
      onOwnChunk: (chunk) => this.told.push(`chunk ${chunk.chunk}`),
      onFailed: () => this.told.push("failed"),
      onSynced: () => {},
    });
  }

  async finish(error?: Error): Promise<void> {
    const end = this.ends.shift();
    if (error === undefined) end?.resolve();
    else end?.reject(error);
    await new Promise(setImmediate);
  }
}

describe("persister", () => {
  it("keeps one write in flight and merges what queued meanwhile", async () => {
    const bench = new Bench();
    bench.persister.enqueue({ ...nothing, number: 1, entries: [entry(1)], sendAfterPersist: [vote("a")] });
    bench.persister.enqueue({
      ...nothing,
      number: 2,
      entries: [entry(2)],
      hardState: hardState(2),
      sendAfterPersist: [vote("b")],
    });
    bench.persister.enqueue({
      ...nothing,
      number: 3,
      entries: [entry(3)],
      hardState: hardState(3),
      sendAfterPersist: [vote("c")],
    });
    assert.equal(bench.writes.length, 1);
    await bench.finish();
    assert.deepEqual(bench.told, ["persisted 1 a"]);
    assert.equal(bench.writes.length, 2);
    assert.deepEqual(
      bench.writes[1]?.entries.map(({ index }) => index),
      [2, 3],
    );
    assert.deepEqual(bench.writes[1]?.hardState, hardState(3));
    await bench.finish();
    assert.deepEqual(bench.told, ["persisted 1 a", "persisted 3 b c"]);
  });

  it("an output with nothing to write waits behind the write in flight, and goes at once when there is none", async () => {
    const bench = new Bench();
    bench.persister.enqueue({ ...nothing, number: 1, sendAfterPersist: [vote("idle")] });
    assert.deepEqual(bench.told, ["persisted 1 idle"]);
    bench.persister.enqueue({ ...nothing, number: 2, entries: [entry(1)] });
    bench.persister.enqueue({ ...nothing, number: 3, sendAfterPersist: [vote("behind")] });
    assert.equal(bench.told.length, 1);
    await bench.finish();
    assert.deepEqual(bench.told.slice(1), ["persisted 2", "persisted 3 behind"]);
    assert.equal(bench.writes.length, 1);
  });

  it("a truncation drops what was queued behind it and not yet written", async () => {
    const bench = new Bench();
    bench.persister.enqueue({ ...nothing, number: 1, hardState: hardState(1) });
    bench.persister.enqueue({ ...nothing, number: 2, entries: [entry(4), entry(5), entry(6)] });
    bench.persister.enqueue({ ...nothing, number: 3, truncateFrom: 5 as Index, entries: [entry(5, 2)] });
    bench.persister.enqueue({ ...nothing, number: 4, truncateFrom: 3 as Index, entries: [entry(3, 3)] });
    await bench.finish();
    const write = bench.writes[1];
    assert.equal(write?.truncateFrom, 3);
    assert.deepEqual(
      write?.entries.map(({ index, term }) => [index, term]),
      [[3, 3]],
    );
  });

  it("a truncation behind entries that start above it keeps the order", async () => {
    const bench = new Bench();
    bench.persister.enqueue({ ...nothing, number: 1, hardState: hardState(1) });
    bench.persister.enqueue({ ...nothing, number: 2, entries: [entry(4), entry(5)] });
    bench.persister.enqueue({ ...nothing, number: 3, truncateFrom: 5 as Index, entries: [entry(5, 2), entry(6, 2)] });
    await bench.finish();
    assert.equal(bench.writes[1]?.truncateFrom, 5);
    assert.deepEqual(
      bench.writes[1]?.entries.map(({ index, term }) => [index, term]),
      [
        [4, 1],
        [5, 2],
        [6, 2],
      ],
    );
  });

  it("bounds a write by its bytes, and puts one chunk or removal in each", async () => {
    const bench = new Bench(25);
    const base = {
      position: { term: 1 as Term, index: 9 as Index },
      chain: 0,
      configuration: { voters: [], outgoing: [], learners: [], removed: [] },
    };
    const chunk = { base, bytes: new Uint8Array(1), done: false };
    bench.persister.enqueue({ ...nothing, number: 1, entries: [entry(1), entry(2), entry(3)] });
    bench.persister.enqueue({ ...nothing, number: 2, entries: [entry(4)] });
    bench.persister.enqueueOwnChunk({ ...chunk, chunk: 0 });
    bench.persister.enqueueOwnChunk({ ...chunk, chunk: 1, done: true });
    bench.persister.enqueueRemoval(9 as Index);
    for (let count = 0; count < 5; count += 1) await bench.finish();
    const shapes = bench.writes.map((w) => `${w.entries.length} ${w.chunk?.chunk ?? "-"} ${w.removeThrough ?? "-"}`);
    assert.deepEqual(shapes, ["3 - -", "1 0 -", "0 1 -", "0 - 9"]);
    assert.deepEqual(bench.told, ["persisted 1", "chunk 0", "persisted 2", "chunk 1"]);
  });

  it("after a failed write nothing is written or acknowledged any more", async () => {
    const bench = new Bench();
    bench.persister.enqueue({ ...nothing, number: 1, entries: [entry(1)], sendAfterPersist: [vote("a")] });
    bench.persister.enqueue({ ...nothing, number: 2, entries: [entry(2)] });
    const written = bench.persister.whenWritten();
    await bench.finish(new Error("EIO"));
    await written;
    bench.persister.enqueue({ ...nothing, number: 3, entries: [entry(3)] });
    bench.persister.enqueue({ ...nothing, number: 4, sendAfterPersist: [vote("b")] });
    assert.deepEqual(bench.told, ["failed"]);
    assert.equal(bench.writes.length, 1);
  });

  it("waits for what is queued now, whatever comes after it", async () => {
    const bench = new Bench();
    bench.persister.enqueue({ ...nothing, number: 1, entries: [entry(1)] });
    bench.persister.enqueue({ ...nothing, number: 2, entries: [entry(2)] });
    let isWritten = false;
    void bench.persister.whenWritten().then(() => {
      isWritten = true;
    });
    await bench.finish();
    bench.persister.enqueue({ ...nothing, number: 3, entries: [entry(3)] });
    assert.equal(isWritten, false);
    await bench.finish();
    assert.equal(isWritten, true, "the third write is under way");
    assert.equal(bench.persister.isIdle, false);
  });
});
