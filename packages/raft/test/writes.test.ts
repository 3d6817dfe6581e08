import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { HardState, Index, Term } from "../src/index.js";
import { Writes } from "../src/writes.js";
import { appendOf, entriesOf, Solo } from "./support/solo.js";

const start: HardState = { term: 1 as Term, votedFor: null };

type Action =
  | { readonly kind: "append"; readonly count: number }
  | { readonly kind: "truncate" | "persist"; readonly at: number };

const actions: fc.Arbitrary<Action[]> = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant("append" as const), count: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ kind: fc.constantFrom("truncate" as const, "persist" as const), at: fc.nat(50) }),
  ),
  { maxLength: 40 },
);

test("persistedIndex is what the disk and the log in memory have in common", () => {
  fc.assert(
    fc.property(actions, (list) => {
      const writes = new Writes(start, 0 as Index);
      // Each entry is a fresh number: entries are equal if and only if they are the same.
      let log: number[] = [];
      let disk: number[] = [];
      const queue: number[][] = [];
      let fresh = 0;
      let finished = 0;
      for (const action of list) {
        if (action.kind === "persist") {
          const count = action.at % (queue.length + 1);
          for (const state of queue.splice(0, count)) disk = state;
          finished += count;
          writes.onPersisted(finished);
        } else {
          if (action.kind === "append") {
            for (let count = 0; count < action.count; count += 1) log = [...log, (fresh += 1)];
          } else {
            const from = 1 + (action.at % (log.length + 1));
            log = log.slice(0, from - 1);
            writes.onTruncated(from as Index);
          }
          queue.push(log);
          writes.onTaken(finished + queue.length, 0, null, log.length as Index, null);
        }
        let common = 0;
        while (common < log.length && log[common] === disk[common]) common += 1;
        assert.equal(writes.persistedIndex, common);
      }
    }),
    { numRuns: 1_000 },
  );
});

test("the hard state is durable when the output that carried it is, and the oldest write is the one that may be overdue", () => {
  const writes = new Writes(start, 0 as Index);
  assert.equal(writes.oldestMs, Number.POSITIVE_INFINITY);
  writes.onTaken(1, 100, { term: 2 as Term, votedFor: "n1" }, 0 as Index, null);
  writes.onTaken(4, 200, null, 3 as Index, null);
  assert.deepEqual([writes.hardState.term, writes.oldestMs], [1, 100]);
  writes.onPersisted(3);
  assert.deepEqual([writes.hardState, writes.oldestMs, writes.persistedIndex], [{ term: 2, votedFor: "n1" }, 200, 0]);
  writes.onPersisted(9);
  assert.deepEqual([writes.persistedIndex, writes.oldestMs], [3, Number.POSITIVE_INFINITY]);
});

test("one report of the disk may cover several outputs, and a late one says nothing new", () => {
  const solo = new Solo();
  const log = entriesOf("1/1 2/1 3/1");
  for (let at = 0; at < 3; at += 1) solo.receive("n2", appendOf(1, log.slice(0, at), log.slice(at, at + 1)));
  const numbers = solo.unpersisted.map(({ number }) => number);
  solo.step({ kind: "persisted", number: numbers[1] ?? 0 });
  assert.equal(solo.raft.persistedIndex, 2);
  solo.step({ kind: "persisted", number: numbers[0] ?? 0 });
  assert.equal(solo.raft.persistedIndex, 2);
  assert.throws(() => solo.step({ kind: "persisted", number: 99 }), /was taken/);
});

test("a truncation lowers what writes in flight vouch for, though their entries reach the disk", () => {
  const solo = new Solo();
  solo.receive("n2", appendOf(1, [], entriesOf("1/1 2/1 3/1")));
  const others = entriesOf("1/1 2/2");
  solo.receive("n3", appendOf(2, others.slice(0, 1), others.slice(1)));
  assert.equal(solo.unpersisted.length, 2);
  solo.persist(1);
  assert.equal(solo.raft.persistedIndex, 1, "entries 2 and 3 of the first write are gone");
  solo.persist(1);
  assert.equal(solo.raft.persistedIndex, 2);
});
