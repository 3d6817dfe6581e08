import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { AcquireHeap, WaitQueue } from "../src/queue.js";
import { Acquire, Lock, Session } from "../src/records.js";
import type { Claim } from "../src/records.js";

const session = new Session(1, "k", 1, "", 0);
const lock = new Lock("a", 0);

test("a queue is a list: joined at the end, left anywhere, with everybody's place known", () => {
  const step = fc.record({ leaves: fc.boolean(), at: fc.nat(2_000) });
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 500 }), fc.array(step, { maxLength: 400, size: "max" }), (length, steps) => {
      const queue = new WaitQueue();
      const list: Claim[] = [];
      let index = 0;
      const join = () => {
        const claim = acquireOf((index += 1)).first;
        queue.push(claim);
        list.push(claim);
      };
      for (let count = 0; count < length; count += 1) join();
      for (const { leaves, at } of steps) {
        const claim = list[at % Math.max(1, list.length)];
        if (!leaves || claim === undefined) {
          join();
          continue;
        }
        assert.equal(queue.countBefore(claim), list.indexOf(claim));
        queue.remove(claim);
        list.splice(list.indexOf(claim), 1);
        assert.equal(queue.first, list[0] ?? null);
        assert.equal(queue.last, list.at(-1) ?? null);
        assert.equal(queue.count, list.length);
      }
      for (const [place, claim] of list.entries()) assert.equal(queue.countBefore(claim), place);
      const walked = [];
      for (let claim = queue.first; claim !== null; claim = claim.next) walked.push(claim);
      assert.deepEqual(
        walked.map(({ acquire }) => acquire.index),
        list.map(({ acquire }) => acquire.index),
      );
    }),
    { numRuns: 60 },
  );
});

test("whoever comes and goes behind patient waiters leaves no blocks behind", () => {
  const queue = new WaitQueue();
  for (let index = 1; index <= 128; index += 1) queue.push(acquireOf(index).first);
  for (let index = 200; index <= 2_000; index += 1) {
    const { first } = acquireOf(index);
    queue.push(first);
    queue.remove(first);
  }
  queue.push(acquireOf(3_000).first);
  let blocks = 0;
  for (let block = queue.last?.block ?? null; block !== null; block = block.previous) blocks += 1;
  assert.equal(blocks, 2);
});

test("a claim joins once and leaves once", () => {
  const queue = new WaitQueue();
  const { first } = acquireOf(1);
  queue.push(first);
  assert.throws(() => queue.push(first), /joins a queue once/);
  queue.remove(first);
  assert.throws(() => queue.remove(first), /leaves a queue that it is in/);
});

test("a heap gives the oldest request first", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(50), { maxLength: 100 }), (indexes) => {
      const heap = new AcquireHeap();
      const taken = [];
      for (const [at, index] of indexes.entries()) {
        heap.push(acquireOf(index));
        if (at % 5 === 4) taken.push(heap.pop()?.index);
      }
      const rest = [];
      for (let acquire = heap.pop(); acquire !== null; acquire = heap.pop()) rest.push(acquire.index);
      assert.deepEqual(
        rest,
        [...rest].sort((a, b) => a - b),
      );
      const byNumber = (a = 0, b = 0) => a - b;
      assert.deepEqual([...taken, ...rest].sort(byNumber), [...indexes].sort(byNumber));
    }),
  );
});

function acquireOf(index: number): Acquire {
  const terms = { index, mode: "exclusive", lockDelayMs: 0, maxHoldMs: 0, info: "" } as const;
  return new Acquire(session, index, terms, [lock], 0);
}
