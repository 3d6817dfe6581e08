import { strict as assert } from "node:assert";
import { describe, test } from "node:test";
import type { Index, Message, Position, Term } from "@holdfast/raft";
import type { PeerHello } from "@holdfast/wire";
import { PeerMemory } from "../src/peer-memory.js";

function at(term: number, index: number): Position {
  return { term: term as Term, index: index as Index };
}

function hello(boot: number, term: number | null, last: Position | null, changes: Partial<PeerHello> = {}): PeerHello {
  const clusterId = term === null ? null : "c";
  return {
    kind: "hello",
    protocol: 1,
    cluster: "test",
    from: "n2",
    to: "n1",
    instance: "i",
    clusterId,
    boot,
    term,
    last,
    versions: { min: 1, max: 1 },
    ...changes,
  };
}

function voteAnswer(term: number): Message {
  return { kind: "voteAnswer", term: term as Term, granted: true };
}

describe("what a peer has promised", () => {
  test("nothing is held against a stranger, nor against another directory with its id", () => {
    const memory = new PeerMemory();
    assert.equal(memory.problemWith(hello(1, 0, at(0, 0)), "a"), null);
    memory.notePromise("n2", { term: 9, last: at(9, 99) });
    memory.noteMessage("n2", voteAnswer(9));
    assert.equal(
      memory.problemWith(hello(1, 0, at(0, 0)), "a"),
      null,
      "promises of nobody who said hello count for nobody",
    );
    memory.noteHello(hello(7, 5, at(5, 50)), "a");
    assert.equal(
      memory.problemWith(hello(1, 0, at(0, 0), { instance: "another" }), "b"),
      null,
      "that is the configuration's business",
    );
  });

  test("a vote's term is durable, a heartbeat's answer may be ahead of the disk", () => {
    const memory = new PeerMemory();
    memory.noteHello(hello(1, 3, at(3, 10)), "a");
    memory.noteMessage("n2", { kind: "heartbeatAnswer", term: 8 as Term, round: 1 });
    memory.noteMessage("n2", { kind: "preVote", term: 9 as Term, last: at(3, 10) });
    assert.equal(memory.problemWith(hello(2, 3, at(3, 10)), "b"), null);
    for (const [term, message] of [
      [4, voteAnswer(4)],
      [5, { kind: "vote", term: 5 as Term, last: at(3, 10), transfer: false }],
      [6, { kind: "appendAccepted", term: 6 as Term, matchIndex: 10 as Index }],
    ] as const) {
      memory.noteMessage("n2", message);
      assert.match(memory.problemWith(hello(2, term - 1, at(3, 10)), "b") ?? "", new RegExp(`has promised ${term}`));
      assert.equal(memory.problemWith(hello(2, term, at(3, 10)), "b"), null);
    }
  });

  test("a log's end counts within one term: a later leader may cut what was never committed", () => {
    const memory = new PeerMemory();
    memory.noteHello(hello(1, 3, at(3, 10)), "a");
    memory.notePromise("n2", { term: 3, last: at(3, 40) });
    memory.notePromise("n2", { term: 3, last: at(3, 20) });
    assert.match(
      memory.problemWith(hello(2, 3, at(3, 39)), "b") ?? "",
      /promised index 40/,
      "the highest promise counts",
    );
    assert.equal(memory.problemWith(hello(2, 3, at(3, 40)), "b"), null);
    memory.noteMessage("n2", voteAnswer(4));
    assert.equal(memory.problemWith(hello(2, 4, at(3, 15)), "b"), null);
    memory.notePromise("n2", { term: 3, last: at(3, 60) });
    assert.equal(
      memory.problemWith(hello(2, 4, at(3, 15)), "b"),
      null,
      "a promise of an earlier term that is told late",
    );
    memory.notePromise("n2", { term: 4, last: at(4, 16) });
    assert.match(
      memory.problemWith(hello(2, 4, at(3, 99)), "b") ?? "",
      /promised index 16/,
      "the term of the entry comes first",
    );
  });
});

describe("what is no proof of an old copy", () => {
  test("a process whose name a proxy has taken away", () => {
    for (const [first, second] of [
      ["a", ""],
      ["", "a"],
    ] as const) {
      const memory = new PeerMemory();
      memory.noteHello(hello(3, 1, at(1, 10)), first);
      assert.equal(memory.problemWith(hello(3, 1, at(1, 10)), second), null);
    }
  });
});
