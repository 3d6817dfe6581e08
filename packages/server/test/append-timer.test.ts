import assert from "node:assert/strict";
import { test } from "node:test";
import type { Entry, Index, Message, Term } from "@holdfast/raft";
import { AppendTimer } from "../src/append-timer.js";

const term = 1 as Term;

function append(...indexes: number[]): Message {
  const entries = indexes.map((index): Entry => {
    return { index: index as Index, term, kind: "command", payload: new Uint8Array(0), chain: 0 };
  });
  return {
    kind: "append",
    term,
    previous: { term, index: 0 as Index },
    previousChain: 0,
    entries,
    commitIndex: 0 as Index,
  };
}

test("each append is timed once, by the answer that covers it", () => {
  const timer = new AppendTimer();
  const seen: number[] = [];
  const accept = (from: string, matchIndex: number, nowMs: number): void =>
    timer.onReceived(from, { kind: "appendAccepted", term, matchIndex: matchIndex as Index }, nowMs, (s) =>
      seen.push(s),
    );
  timer.onSent("n2", append(1, 2), 1_000);
  timer.onSent("n2", append(3), 2_000);
  timer.onSent("n2", append(), 2_500);
  timer.onSent("n3", append(1, 2, 3), 1_000);
  accept("n2", 1, 3_000);
  assert.deepEqual(seen, []);
  accept("n2", 3, 4_000);
  assert.deepEqual(seen, [3, 2]);
  accept("n2", 3, 5_000);
  assert.deepEqual(seen, [3, 2]);
  timer.clear();
  accept("n3", 3, 6_000);
  assert.deepEqual(seen, [3, 2]);
});

test("it keeps no more than its bound for a peer that never answers", () => {
  const timer = new AppendTimer();
  for (let index = 1; index <= 1_000; index += 1) timer.onSent("n2", append(index), index);
  let observed = 0;
  timer.onReceived("n2", { kind: "appendAccepted", term, matchIndex: 1_000 as Index }, 2_000, () => {
    observed += 1;
  });
  assert.equal(observed, 64);
});
