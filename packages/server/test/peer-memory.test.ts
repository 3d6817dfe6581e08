import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Index, Position, Term } from "@holdfast/raft";
import type { PeerHello } from "@holdfast/wire";
import { PeerMemory } from "../src/peer-memory.js";

const last = (term: number, index: number): Position => ({ term: term as Term, index: index as Index });

function hello(boot: number, changes: Partial<PeerHello> = {}): PeerHello {
  const ids = { cluster: "c", from: "n2", to: "n1", instance: "i", clusterId: "id" };
  return { kind: "hello", protocol: 1, ...ids, boot, term: 1, last: last(1, 10), ...changes };
}

/** A node that is found here is quarantined for ever: what is no proof must not count as one. */
describe("peer memory: what is no proof of an old copy", () => {
  it("a process whose name didn't come through", () => {
    for (const [first, second] of [
      ["a", ""],
      ["", "a"],
    ] as const) {
      const memory = new PeerMemory();
      memory.noteHello(hello(3), first);
      assert.equal(memory.problemWith(hello(3), second), null);
    }
  });

  it("a tail that was cut in a later term", () => {
    const memory = new PeerMemory();
    memory.noteHello(hello(1), "a");
    memory.notePromise("n2", { term: 2, last: last(2, 50) });
    assert.equal(memory.problemWith(hello(2, { term: 3, last: last(1, 12) }), "b"), null);
  });

  it("a promise of an older term than is known of it", () => {
    const memory = new PeerMemory();
    memory.noteHello(hello(1), "a");
    memory.noteMessage("n2", { kind: "voteAnswer", term: 4 as Term, granted: true });
    memory.notePromise("n2", { term: 3, last: last(3, 50) });
    assert.equal(memory.problemWith(hello(2, { term: 4, last: last(3, 20) }), "b"), null);
  });

  it("another directory under the same id", () => {
    const memory = new PeerMemory();
    memory.noteHello(hello(7, { term: 9 }), "a");
    assert.equal(memory.problemWith(hello(1, { instance: "j", term: null, last: null, clusterId: null }), "b"), null);
  });
});
