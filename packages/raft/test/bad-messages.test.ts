/** Messages of the right shape with any values at all, from anybody: the state stays sound, or the node stops for true divergence. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { InvariantError } from "../src/index.js";
import type { Entry, Index, Message, Position, Term } from "../src/index.js";
import { bytesOf, configurationOf } from "./support/codec.js";
import { appendOf, baseOf, entriesOf, entryOf, Solo } from "./support/solo.js";

const number = fc.oneof(
  { weight: 5, arbitrary: fc.nat(8) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(-1, 0.5, Number.NaN, 2 ** 31, 2 ** 32 + 1, 1e12, 2 ** 53 - 1, 2 ** 53, Infinity),
  },
);
const term = number as fc.Arbitrary<Term>;
const index = number as fc.Arbitrary<Index>;
const position: fc.Arbitrary<Position> = fc.record({ term, index });
const chain = fc.oneof(fc.nat(100), fc.constantFrom(...entriesOf("1/1 2/1 3/2 4/2").map((entry) => entry.chain), 7));
const entry: fc.Arbitrary<Entry> = fc.record({
  index,
  term,
  chain,
  kind: fc.constantFrom("noop", "command", "configuration"),
  payload: fc.constantFrom(bytesOf(""), bytesOf("n1,n2;;;"), bytesOf("x")),
});
/** Entries that are right as far as they go: those that do get in. */
const log = entriesOf("1/1 2/1 3/2 4/2 5/3");
const soundAppend = fc.record({ from: fc.nat(4), count: fc.nat(3), term, commitIndex: index }).map(
  (each): Message => ({
    ...appendOf(each.term, log.slice(0, each.from), log.slice(each.from, each.from + each.count)),
    commitIndex: each.commitIndex,
  }),
);
const message: fc.Arbitrary<Message> = fc.oneof(
  soundAppend,
  fc.record({ kind: fc.constantFrom("preVote"), term, last: position }),
  fc.record({ kind: fc.constantFrom("preVoteAnswer", "voteAnswer"), term, granted: fc.boolean() }),
  fc.record({ kind: fc.constantFrom("vote"), term, last: position, transfer: fc.boolean() }),
  fc.record({
    kind: fc.constantFrom("append"),
    term,
    previous: position,
    previousChain: chain,
    entries: fc.array(entry, { maxLength: 3 }),
    commitIndex: index,
  }),
  fc.record({ kind: fc.constantFrom("appendAccepted"), term, matchIndex: index }),
  fc.record({ kind: fc.constantFrom("appendRejected"), term, rejected: index, hint: position }),
  fc.record({ kind: fc.constantFrom("heartbeat"), term, commitIndex: index, round: number }),
  fc.record({ kind: fc.constantFrom("heartbeatAnswer"), term, round: number }),
  fc.record({
    kind: fc.constantFrom("snapshotChunk"),
    term,
    base: fc.record({
      position,
      chain,
      configuration: fc.constantFrom(configurationOf(["n1", "n2", "n3"]), configurationOf([])),
    }),
    chunk: number,
    bytes: fc.constant(bytesOf("x")),
    done: fc.boolean(),
  }),
  fc.record({
    kind: fc.constantFrom("snapshotAnswer"),
    term,
    snapshotIndex: index,
    next: number,
    installed: fc.boolean(),
  }),
  fc.record({ kind: fc.constantFrom("timeoutNow"), term }),
);
const sender = fc.constantFrom("n1", "n2", "n3", "n9");

/** What may stop a node here: two leaders in one term, or another entry where it has one already. */
const isTrueDivergence = (error: unknown): boolean =>
  error instanceof InvariantError &&
  /at most one leader in a term|agree at a position agree before it/.test(error.invariant);

function prepared(kind: "follower" | "leader"): Solo {
  const solo = new Solo({ log: "1/1 2/1 3/2", hardState: { term: 2, votedFor: null } });
  if (kind === "leader") return solo.lead().accept("n2", 4);
  return solo.receive("n2", appendOf(2, log.slice(0, 3), [], 2)).persist();
}

for (const kind of ["follower", "leader"] as const) {
  test(`a ${kind} stays sound under any messages`, () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(sender, message, fc.nat(300)), { maxLength: 30 }), (list) => {
        const solo = prepared(kind);
        const { commitIndex } = solo.raft;
        const committed = solo.raft.chainAt(commitIndex);
        try {
          for (const [from, each, ms] of list) {
            solo.receive(from, each);
            if (ms < 100) solo.persist();
            if (ms > 250) solo.pass(ms);
          }
        } catch (error) {
          if (!isTrueDivergence(error)) throw error;
        }
        assert.ok(Number.isSafeInteger(solo.raft.term) && Number.isSafeInteger(solo.raft.lastIndex));
        assert.ok(solo.raft.commitIndex >= commitIndex);
        const now = solo.raft.chainAt(commitIndex);
        assert.ok(now === null || now === committed, "what was committed is there, or below an installed snapshot");
      }),
      { numRuns: 1_500 },
    );
  });
}

test("numbers that could not be counted on from are as if they were lost", () => {
  const solo = new Solo();
  for (const odd of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER]) {
    solo.receive("n2", { kind: "heartbeat", term: odd as Term, commitIndex: 0 as Index, round: 0 });
    solo.receive("n2", {
      kind: "vote",
      term: odd as Term,
      last: { index: 9 as Index, term: 1 as Term },
      transfer: true,
    });
    solo.receive("n2", {
      kind: "snapshotChunk",
      term: 1 as Term,
      base: baseOf(odd, 1, 1),
      chunk: 0,
      bytes: bytesOf(""),
      done: true,
    });
  }
  assert.deepEqual([solo.raft.term, solo.raft.lastIndex], [0, 0]);
});

test("a term far ahead is adopted, and an election from there is still possible", () => {
  const solo = new Solo();
  solo.receive("n2", { kind: "heartbeat", term: 1e15 as Term, commitIndex: 0 as Index, round: 0 }).persist();
  assert.equal(solo.lead().raft.term, 1e15 + 1);
});

test("a commitIndex beyond what was verified commits nothing that is not known to be the leader's", () => {
  const solo = new Solo({ log: "1/1 2/1 3/2" });
  solo.receive("n2", { kind: "heartbeat", term: 2 as Term, commitIndex: 1e15 as Index, round: 0 });
  assert.equal(solo.raft.commitIndex, 0);
  solo.receive("n2", { ...appendOf(2, [], log.slice(0, 1)), commitIndex: 1e15 as Index });
  assert.equal(solo.raft.commitIndex, 1);
});

test("entries that don't follow each other, or are of a later term than their leader, are as if they were lost", () => {
  const [first] = log as [Entry];
  const bad: Entry[][] = [[entryOf(2, 1, 7)], [first, entryOf(3, 1, first.chain)], [first, entryOf(2, 9, first.chain)]];
  for (const entries of bad) {
    const solo = new Solo();
    solo.receive("n2", appendOf(1, [], entries)).persist();
    assert.deepEqual([solo.raft.lastIndex, solo.sent], [0, []]);
  }
  const falling = new Solo();
  const [one, two] = entriesOf("1/2 2/2") as [Entry, Entry];
  falling.receive("n2", appendOf(2, [], [one, { ...two, term: 1 as Term }])).persist();
  assert.equal(falling.raft.lastIndex, 0);
});

test("a node's own id as the sender is no peer", () => {
  const solo = new Solo();
  solo.receive("n1", { kind: "heartbeat", term: 5 as Term, commitIndex: 0 as Index, round: 0 });
  assert.equal(solo.raft.term, 0);
});
