import assert from "node:assert/strict";
import { test } from "node:test";
import type { Index, Term } from "../src/index.js";
import { bytesOf, configurationOf, testCodec } from "./support/codec.js";
import { appendOf, entriesOf, entryOf, firstBase, heartbeatOf, Solo } from "./support/solo.js";

/** A leader whose peers have acknowledged its first entry. */
function settledLeader(options: ConstructorParameters<typeof Solo>[0] = {}): Solo {
  const solo = new Solo(options).lead();
  const first = solo.raft.lastIndex;
  return solo.accept("n2", first).accept("n3", first).clear();
}

function proposeAll(solo: Solo, texts: readonly string[]): Solo {
  return solo.stepAll(
    texts.map((text, at) => {
      const proposal = { id: at, payload: bytesOf(text), reserved: false, decidedInTerm: null };
      return { kind: "propose" as const, proposal };
    }),
  );
}

test("the entries of one turn leave in one append per peer, and are cut once for peers in step", () => {
  const solo = proposeAll(settledLeader(), ["a", "b", "c"]);
  const appends = solo.sentOf("append");
  assert.deepEqual(
    appends.map(({ to, message }) => [to, message.entries.length]),
    [
      ["n2", 3],
      ["n3", 3],
    ],
  );
  assert.equal(appends[0]?.message.entries, appends[1]?.message.entries);
});

test("appends are batched by entries and by bytes, and pipelined up to the window", () => {
  const limits = { appendsInFlightMax: 2, appendEntriesMax: 3, appendBytesMax: 100 };
  const solo = proposeAll(settledLeader({ limits }), ["a", "b", "c", "d", "x".repeat(90), "e"]);
  const sizes = (): number[] =>
    solo
      .sentOf("append")
      .filter(({ to }) => to === "n2")
      .map(({ message }) => message.entries.length);
  assert.deepEqual(sizes(), [2, 2], "two of 41 bytes fit in 100, and two appends in the window");
  solo.accept("n2", 3);
  assert.deepEqual(sizes(), [1], "a large entry goes alone");
  solo.accept("n2", 6);
  assert.deepEqual(sizes(), [1]);
});

test("proposals wait in no queue of their own: a full window holds them back, and one acknowledgement lets all go", () => {
  const solo = settledLeader({ limits: { appendsInFlightMax: 1 } });
  for (const text of ["a", "b", "c"]) solo.propose(text);
  assert.equal(solo.sentOf("append").length, 2);
  solo.accept("n2", 2);
  assert.deepEqual(
    solo.sentOf("append").map(({ to, message }) => [to, message.entries.length]),
    [["n2", 2]],
  );
});

test("terms are skipped: with 10,000 entries in conflict there are at most as many rounds as terms, plus two", () => {
  const terms = 20;
  const leaderLog: string[] = ["1/1"];
  const followerLog: string[] = ["1/1"];
  for (let index = 2; index <= 10_000; index += 1) {
    // Odd terms here, even terms there: nothing agrees but the first entry.
    const step = Math.floor((index * terms) / 10_001);
    leaderLog.push(`${index}/${2 * step + 1}`);
    followerLog.push(`${index}/${2 * step + 2}`);
  }
  const limits = { appendEntriesMax: 100_000, appendBytesMax: 10_000_000 };
  const leader = new Solo({
    id: "n1",
    log: leaderLog.join(" "),
    hardState: { term: 99, votedFor: null },
    limits,
  }).lead();
  const follower = new Solo({ id: "n2", log: followerLog.join(" "), hardState: { term: 99, votedFor: null }, limits });
  let rounds = 0;
  while (leader.raft.status().peers[0]?.matchIndex !== leader.raft.lastIndex) {
    rounds += 1;
    for (const { message } of leader.sentOf("append").filter(({ to }) => to === "n2")) follower.receive("n1", message);
    for (const { message } of follower.persist().sent.splice(0)) leader.receive("n2", message);
    assert.ok(rounds <= terms + 2, `${rounds} rounds`);
  }
  assert.equal(
    follower.raft.chainAt(follower.raft.lastIndex),
    leader.raft.lastIndex === 10_001 ? leader.raft.chainAt(leader.raft.lastIndex) : null,
  );
});

test("what is committed agrees for sure: a hint never goes behind commitIndex", () => {
  const log = entriesOf("1/1 2/1 3/1 4/2 5/2");
  const solo = new Solo();
  solo
    .receive("n2", appendOf(2, [], log, 3))
    .persist()
    .clear();
  const others = entriesOf("1/1 2/1 3/1 4/3 5/3 6/3");
  solo.receive("n3", { ...appendOf(4, others, []), previous: { index: 6 as Index, term: 3 as Term } }).persist();
  assert.deepEqual(solo.sentOf("appendRejected")[0]?.message.hint, { index: 5, term: 2 });
  solo
    .receive("n3", { ...appendOf(4, others.slice(0, 5), []), previous: { index: 5 as Index, term: 1 as Term } })
    .persist();
  assert.deepEqual(solo.sentOf("appendRejected")[0]?.message.hint, { index: 3, term: 1 });
});

test("a heartbeat carries min(matchIndex, commitIndex), and a follower takes no more than it has had verified", () => {
  const solo = settledLeader();
  solo.propose("x").persist().accept("n2", 2).pass(100);
  const commits = solo.sentOf("heartbeat").map(({ to, message }) => [to, message.commitIndex]);
  assert.deepEqual(commits, [
    ["n2", 2],
    ["n3", 1],
  ]);
  // Entries of its own that no append of this leader has verified may be another history.
  const follower = new Solo({ log: "1/1 2/1 3/1" });
  follower.receive("n2", heartbeatOf(2, 3));
  assert.equal(follower.raft.commitIndex, 0);
  follower.receive("n2", appendOf(2, entriesOf("1/1 2/1"), [])).receive("n2", heartbeatOf(2, 3));
  assert.equal(follower.raft.commitIndex, 2);
});

test("what a leader has verified stays verified in its term, though the follower misses it for a while", () => {
  const log = entriesOf("1/1 2/1");
  const solo = new Solo();
  solo
    .receive("n2", appendOf(1, [], log))
    .persist()
    .toDeadline();
  assert.equal(solo.raft.role, "preCandidate");
  solo.receive("n2", heartbeatOf(1, 2));
  assert.deepEqual([solo.raft.role, solo.raft.commitIndex], ["follower", 2]);
  solo.receive("n3", heartbeatOf(2, 2));
  assert.equal(solo.raft.commitIndex, 2);
});

test("stale and repeated acknowledgements change nothing", () => {
  const solo = settledLeader();
  for (const text of ["a", "b"]) solo.propose(text);
  solo.persist().accept("n2", 3).accept("n2", 2).accept("n2", 3);
  const peer = solo.raft.status().peers[0];
  assert.deepEqual([peer?.matchIndex, peer?.nextIndex, solo.raft.commitIndex], [3, 4, 3]);
  solo.receive("n2", { kind: "appendAccepted", term: 0 as Term, matchIndex: 1 as Index });
  assert.equal(solo.raft.status().peers[0]?.matchIndex, 3);
});

test("an acknowledgement of more than the leader has is no honest one", () => {
  const solo = settledLeader().accept("n2", 1_000);
  assert.deepEqual([solo.raft.status().peers[0]?.matchIndex, solo.raft.commitIndex], [1, 1]);
});

test("appends that are lost without the link's telling are noticed by heartbeats, with one empty append", () => {
  const solo = settledLeader();
  solo.propose("x").persist().clear();
  const answer = { kind: "heartbeatAnswer", term: solo.raft.term, round: 0 } as const;
  solo.pass(100).receive("n2", answer);
  assert.deepEqual(solo.sentOf("append"), [], "it may be on its way yet");
  solo.pass(100).receive("n2", answer).receive("n2", answer);
  const questions = solo
    .sentOf("append")
    .map(({ to, message }) => [to, message.previous.index, message.entries.length]);
  assert.deepEqual(questions, [["n2", 2, 0]], "asked once");
  solo.receive("n2", {
    kind: "appendRejected",
    term: solo.raft.term,
    rejected: 2 as Index,
    hint: { index: 1 as Index, term: 1 as Term },
  });
  assert.deepEqual(
    solo.sentOf("append").map(({ message }) => message.entries.length),
    [1],
  );
});

test("after a link was made anew, a probe goes out at once", () => {
  const solo = settledLeader();
  for (const text of ["a", "b", "c"]) solo.propose(text);
  solo.accept("n2", 2).clear();
  solo.step({ kind: "peerReset", peer: "n2" });
  assert.deepEqual(
    solo.sentOf("append").map(({ to, message }) => [to, message.previous.index, message.entries.length]),
    [["n2", 2, 2]],
  );
  assert.equal(solo.raft.status().peers[0]?.state, "probe");
  solo.step({ kind: "peerReset", peer: "nobody" });
});

test("an append that reaches behind the log's base is met by what is committed", () => {
  const log = entriesOf("1/1 2/1 3/1 4/1");
  const base = { ...firstBase, position: { index: 2 as Index, term: 1 as Term }, chain: log[1]?.chain ?? 0 };
  const solo = new Solo({ base, entries: log.slice(2, 3), hardState: { term: 1, votedFor: null } });
  solo.receive("n2", appendOf(1, [], log, 4)).persist();
  assert.equal(solo.sentOf("appendAccepted")[0]?.message.matchIndex, 4);
  assert.deepEqual([solo.positions(), solo.raft.commitIndex], ["3/1 4/1", 4]);
  solo.receive("n2", appendOf(1, [], log.slice(0, 1))).persist();
  assert.equal(solo.sentOf("appendAccepted")[0]?.message.matchIndex, 1, "no more than the message speaks of");
  const others = entriesOf("1/1 2/2");
  assert.throws(() => solo.receive("n2", appendOf(2, [], others)), /agree before it/);
});

test("an entry whose chain value doesn't follow is as if it were lost", () => {
  const log = entriesOf("1/1 2/1 3/1");
  const broken = { ...log[1], payload: bytesOf("flipped") } as (typeof log)[number];
  const solo = new Solo();
  solo.receive("n2", appendOf(1, [], [log[0], broken, log[2]] as typeof log)).persist();
  assert.deepEqual([solo.raft.lastIndex, solo.sentOf("appendAccepted").length], [0, 0]);
});

test("limits: what is uncommitted is bounded, and reserved proposals have room of their own", () => {
  const solo = settledLeader({ limits: { uncommittedBytesMax: 100, reservedBytesMax: 50 } });
  const refused = (): string[] =>
    solo.outputs.flatMap((output) => output.refused.map(({ id, code }) => `${id} ${code}`));
  solo.propose("12345", 1).propose("12345", 2).propose("12345", 3);
  assert.deepEqual(refused(), ["3 overloaded"]);
  solo.propose("12345", 4, true).propose("12345", 5, true);
  assert.deepEqual(refused(), ["3 overloaded", "5 overloaded"]);
  assert.equal(solo.raft.status().uncommittedBytes, 135);
  solo.persist().accept("n2", 4);
  assert.equal(solo.raft.status().uncommittedBytes, 0);
  solo.clear().propose("12345", 6);
  assert.deepEqual(refused(), []);
});

test("limits: what a new leader inherits counts as well, and a proposal larger than all passes when nothing is uncommitted", () => {
  const solo = new Solo({ log: "1/1 2/1 3/1", limits: { uncommittedBytesMax: 100, reservedBytesMax: 0 } }).lead();
  solo.clear().propose("x", 1);
  assert.equal(solo.outputs.at(-1)?.refused[0]?.code, "overloaded");
  solo.accept("n2", 4).clear().propose("x".repeat(1_000), 2);
  assert.equal(solo.raft.lastIndex, 5);
  solo.propose("y", 3);
  assert.equal(solo.outputs.at(-1)?.refused[0]?.code, "overloaded");
});

test("a proposal decided in another term is dropped; who doesn't lead refuses", () => {
  const solo = settledLeader();
  const { term } = solo.raft;
  const step = (decidedInTerm: number | null): string | undefined => {
    const proposal = { id: 9, payload: bytesOf("x"), reserved: true, decidedInTerm: decidedInTerm as Term | null };
    return solo.step({ kind: "propose", proposal }).outputs.at(-1)?.refused[0]?.code;
  };
  assert.equal(step(term - 1), "not_leader");
  assert.equal(step(term + 1), "not_leader");
  assert.equal(solo.raft.lastIndex, 1);
  assert.equal(step(term), undefined);
  assert.equal(solo.raft.lastIndex, 2);
  assert.equal(new Solo().propose("x").outputs.at(-1)?.refused[0]?.code, "not_leader");
});

test("limits: an output carries a bounded part of what is committed, and there is another one until all is applied", () => {
  const solo = new Solo({ limits: { committedBytesPerOutputMax: 90 } });
  const log = entriesOf("1/1 2/1 3/1 4/1 5/1");
  solo.receive("n2", appendOf(1, [], log, 5));
  const parts = solo.outputs
    .map((output) => output.committed.map(({ index }) => index))
    .filter((part) => part.length > 0);
  assert.deepEqual(parts, [[1, 2], [3, 4], [5]]);
});

test("learners and outgoing voters are replicated to; learners don't count", () => {
  const configuration = configurationOf(["n1", "n2", "n3"], ["n4"], ["n5"]);
  const solo = new Solo({ configuration }).lead();
  assert.deepEqual(
    solo.sentOf("append").map(({ to }) => to),
    ["n2", "n3", "n4", "n5"],
  );
  solo.accept("n2", 1).accept("n5", 1);
  assert.equal(solo.raft.commitIndex, 0, "the outgoing half lacks it");
  solo.accept("n4", 1);
  assert.equal(solo.raft.commitIndex, 1);
});

test("a configuration is in force when it is appended, and rolls back when it is truncated", () => {
  const next = configurationOf(["n1", "n2", "n3", "n4", "n5"]);
  const change = entryOf(2, 1, entriesOf("1/1")[0]?.chain ?? 0, "configuration", testCodec.encodeConfiguration(next));
  const solo = new Solo();
  solo.receive("n2", appendOf(1, [], [...entriesOf("1/1"), change]));
  assert.deepEqual(solo.raft.configuration, next);
  assert.deepEqual(solo.outputs.at(-1)?.configuration, next);
  const others = entriesOf("1/1 2/2");
  solo.receive("n3", appendOf(2, others.slice(0, 1), others.slice(1)));
  assert.deepEqual(solo.raft.configuration, configurationOf(["n1", "n2", "n3"]));
  assert.deepEqual(solo.outputs.at(-1)?.configuration, configurationOf(["n1", "n2", "n3"]));
});

test("a configuration comes back with the log at a restart, and one that can't be read is as if it were lost", () => {
  const next = configurationOf(["n1", "n2"], [], ["n3"]);
  const [first] = entriesOf("1/1");
  const change = entryOf(2, 1, first?.chain ?? 0, "configuration", testCodec.encodeConfiguration(next));
  const solo = new Solo({ entries: [first, change] as (typeof change)[] });
  assert.deepEqual(solo.raft.configuration, next);
  const unreadable = entryOf(2, 1, first?.chain ?? 0, "configuration", bytesOf("?"));
  const other = new Solo();
  other.receive("n2", appendOf(1, [], [first, unreadable] as (typeof change)[])).persist();
  assert.deepEqual([other.raft.lastIndex, other.sentOf("appendAccepted").length], [0, 0]);
});

test("a leader that is going out of a joint configuration counts in the half that it is in", () => {
  const [first] = entriesOf("1/1");
  const joint = testCodec.encodeConfiguration(configurationOf(["n2", "n3"], ["n1", "n2", "n3"]));
  const change = entryOf(2, 1, first?.chain ?? 0, "configuration", joint);
  const solo = new Solo({ entries: [first, change] as (typeof change)[] }).lead();
  solo.accept("n2", 3);
  assert.equal(solo.raft.commitIndex, 0, "n1 and n2 are a majority of the old half, n2 alone is none of the new");
  solo.accept("n3", 3);
  assert.equal(solo.raft.commitIndex, 3);
});
