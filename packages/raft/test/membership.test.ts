/** How a change of members goes, and what a configuration counts by meanwhile. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { promotionLagMax } from "../src/index.js";
import type { ChangeOutcome, Configuration, Index, Member, MembershipChange, Term } from "../src/index.js";
import { bytesOf, configurationOf, memberOf, testCodec } from "./support/codec.js";
import { appendOf, baseOf, entriesOf, entryOf, heartbeatOf, Solo, voteOf } from "./support/solo.js";

const three = configurationOf(["n1", "n2", "n3"], [], ["n4", "n5"]);
const replace: Partial<MembershipChange> = { promote: ["n4"], remove: ["n3"] };
const joint = configurationOf(["n1", "n2", "n4"], ["n1", "n2", "n3"], ["n5"]);
const final = configurationOf(["n1", "n2", "n4"], [], ["n5"], ["n3"]);

/** A leader whose first entry everybody has. */
function leaderOf(configuration: Configuration = three): Solo {
  const solo = new Solo({ configuration }).lead();
  for (const id of peersOf(configuration)) solo.accept(id, 1);
  return solo.clear();
}

function peersOf({ voters, learners }: Configuration): string[] {
  return [...voters, ...learners].map((member: Member) => member.id).filter((id) => id !== "n1");
}

function ask(solo: Solo, change: Partial<MembershipChange>, id = 1, isForced = false): Solo {
  return solo.step({ kind: "changeMembers", id, change: { add: [], promote: [], remove: [], ...change }, isForced });
}

function outcomes(solo: Solo): ChangeOutcome[] {
  return solo.outputs.flatMap((output) => [...output.changes]);
}

/** The code of the only refusal, and whom it names. */
function refusal(solo: Solo): string {
  const [outcome, ...others] = outcomes(solo);
  assert.deepEqual(others, []);
  if (outcome?.kind !== "refused") return outcome?.kind ?? "no outcome";
  return outcome.member === null ? outcome.code : `${outcome.code} ${outcome.member}`;
}

test("the joint configuration is in force at once, the final one follows when both halves have the joint one", () => {
  const solo = ask(leaderOf(), replace);
  assert.deepEqual(solo.raft.configuration, joint);
  assert.deepEqual(outcomes(solo), [{ kind: "appended", id: 1, index: 2 }]);
  solo.persist().accept("n4", 2);
  assert.deepEqual(
    [solo.raft.commitIndex, solo.raft.lastIndex],
    [1, 2],
    "n1 and n4 are a majority of the new half only",
  );
  solo.accept("n2", 2);
  assert.deepEqual([solo.raft.commitIndex, solo.raft.lastIndex], [2, 3]);
  assert.deepEqual(solo.raft.configuration, final);
  solo.clear().persist().accept("n3", 3);
  assert.equal(solo.raft.commitIndex, 2, "n3 counts no more");
  solo.accept("n4", 3);
  assert.deepEqual(outcomes(solo), [{ kind: "completed", id: 1, index: 3 }]);
  assert.deepEqual([solo.raft.status().isChanging, solo.raft.lastIndex], [false, 3]);
});

test("in the joint phase neither half commits anything alone", () => {
  for (const [first, second] of [
    [["n2", "n3"], "n4"],
    [["n4", "n5"], "n2"],
  ] as const) {
    const solo = ask(leaderOf(), { promote: ["n4", "n5"], remove: ["n2", "n3"] });
    solo.propose("x").persist();
    for (const id of first) solo.accept(id, 3);
    assert.equal(solo.raft.commitIndex, 1, `n1 and ${first.join()}`);
    solo.accept(second, 3);
    assert.equal(solo.raft.commitIndex, 3);
    assert.deepEqual(solo.raft.configuration, configurationOf(["n1", "n4", "n5"], [], [], ["n2", "n3"]));
  }
});

test("a change of learners alone is one entry", () => {
  const solo = ask(leaderOf(), { add: [memberOf("n6")], remove: ["n5"] });
  assert.deepEqual(solo.raft.configuration, configurationOf(["n1", "n2", "n3"], [], ["n4", "n6"], ["n5"]));
  solo.persist().accept("n2", 2);
  assert.deepEqual(
    outcomes(solo).map(({ kind }) => kind),
    ["appended", "completed"],
  );
  assert.equal(solo.raft.lastIndex, 2);
});

test("no change before an entry of the own term is committed (Ongaro's correction)", () => {
  const solo = new Solo({ configuration: three, log: "1/1" }).lead();
  assert.equal(refusal(ask(solo, replace)), "not_ready");
  assert.equal(solo.raft.lastIndex, 2);
});

test("one change at a time: not while a configuration is joint or not committed", () => {
  const solo = ask(leaderOf(), replace);
  for (const index of [2, 3]) {
    assert.equal(refusal(ask(solo.clear(), { remove: ["n5"] }, 2)), "change_in_progress");
    solo.persist().accept("n2", index).accept("n4", index);
  }
  assert.deepEqual(outcomes(ask(solo.clear(), { remove: ["n5"] }, 2)), [{ kind: "appended", id: 2, index: 4 }]);
  assert.equal(refusal(ask(solo.clear(), { add: [memberOf("n6")] }, 3)), "change_in_progress");
});

test("a leader that is deposed doesn't know the end of its change, and says so once", () => {
  const solo = ask(leaderOf(), replace).clear();
  solo.receive("n2", heartbeatOf(5)).pass(10);
  assert.deepEqual(outcomes(solo), [{ kind: "unknown", id: 1 }]);
  assert.equal(refusal(ask(solo.clear(), replace, 2)), "not_leader");
});

test("a new leader goes on to the final configuration after an entry of its own term, not before", () => {
  const entries = [...entriesOf("1/1")];
  entries.push(entryOf(2, 1, entries[0]?.chain ?? 0, "configuration", testCodec.encodeConfiguration(joint)));
  const solo = new Solo({ configuration: three, entries }).lead();
  assert.deepEqual(solo.raft.configuration, joint);
  for (const id of ["n2", "n3", "n4"]) solo.accept(id, 2);
  assert.deepEqual([solo.raft.commitIndex, solo.raft.lastIndex], [0, 3]);
  solo.accept("n2", 3).accept("n4", 3);
  assert.deepEqual([solo.raft.commitIndex, solo.raft.lastIndex], [3, 4]);
  assert.deepEqual(solo.raft.configuration, final);
  assert.deepEqual(outcomes(solo), [], "nobody asked this leader");
});

test("during a transfer nothing is changed, nor is a change brought to its end; a failed transfer holds it up only for its time", () => {
  const solo = ask(leaderOf(), replace).persist();
  solo.step({ kind: "transfer", to: "n2" }).clear();
  assert.equal(refusal(ask(solo, { remove: ["n5"] }, 2)), "transfer_running");
  solo.accept("n4", 2).accept("n2", 2);
  assert.deepEqual([solo.raft.commitIndex, solo.raft.lastIndex], [2, 2]);
  solo.pass(400).accept("n2", 2).accept("n4", 2).pass(100);
  const [beat] = solo.sentOf("heartbeat").slice(-1);
  for (const id of ["n2", "n4"]) {
    solo.receive(id, { kind: "heartbeatAnswer", term: solo.raft.term, round: beat?.message.round ?? 0 });
  }
  assert.deepEqual(solo.raft.configuration, final);
});

test("leadership passes to voters of the new set only", () => {
  for (const [to, isTaken] of [
    ["n2", true],
    ["n4", true],
    ["n3", false],
    ["n5", false],
  ] as const) {
    const solo = ask(leaderOf(), replace);
    assert.equal(solo.step({ kind: "transfer", to }).raft.status().transferTo, isTaken ? to : null, to);
  }
});

test("learners count in no quorum: not for commits, rounds, votes or the leader's hold on its quorum", () => {
  const solo = leaderOf();
  solo.propose("x").persist().accept("n4", 2).accept("n5", 2);
  assert.equal(solo.raft.commitIndex, 1);
  solo.step({ kind: "confirm", id: 1 });
  for (const id of ["n4", "n5"]) solo.receive(id, { kind: "heartbeatAnswer", term: solo.raft.term, round: 1 });
  assert.deepEqual(
    solo.outputs.flatMap((output) => [...output.confirmed]),
    [],
  );
  for (let passed = 0; passed < 500; passed += 100) {
    solo.pass(100);
    for (const id of ["n4", "n5"]) solo.receive(id, { kind: "heartbeatAnswer", term: solo.raft.term, round: 1 });
  }
  assert.equal(solo.raft.role, "follower", "no quorum was heard");
  const candidate = new Solo({ configuration: three }).toDeadline();
  for (const id of ["n4", "n5"]) {
    candidate.receive(id, { kind: "preVoteAnswer", term: 1 as Term, granted: true });
  }
  assert.equal(candidate.raft.role, "preCandidate");
});

test("a learner never campaigns, and votes for whoever counts it as a voter (thesis 4.1)", () => {
  const solo = new Solo({ id: "n4", configuration: three });
  solo.receive("n2", heartbeatOf(1)).pass(100_000);
  assert.deepEqual([solo.raft.role, solo.raft.nextDeadlineMs()], ["learner", Number.POSITIVE_INFINITY]);
  solo
    .step({ kind: "peerGone", peer: "n2" })
    .receive("n2", { kind: "timeoutNow", term: 1 as Term })
    .pass(100_000);
  assert.equal(solo.raft.role, "learner");
  solo.persist().receive("n3", voteOf(2, "9/1")).persist();
  assert.equal(solo.sentOf("voteAnswer")[0]?.message.granted, true);
});

test("a learner without an entry of this term has not caught up: it could commit nothing yet", () => {
  for (const configuration of [three, configurationOf(["n1"], [], ["n4"])]) {
    const solo = new Solo({ configuration }).lead();
    for (const id of peersOf(configuration)) solo.accept(id, id === "n4" ? 0 : 1);
    const status = () => solo.raft.status().peers.find(({ id }) => id === "n4");
    assert.deepEqual([status()?.state, status()?.behindEntries, status()?.isCaughtUp], ["replicate", 1, false]);
    assert.equal(refusal(ask(solo.clear(), { promote: ["n4"] })), "not_caught_up n4");
    solo.accept("n4", 1).clear();
    assert.equal(status()?.isCaughtUp, true);
    assert.equal(refusal(ask(solo, { promote: ["n4"] }, 2)), "appended");
  }
});

test("only a learner that answers, is replicated to and is close behind is promoted", () => {
  const promote = { promote: ["n4"] };
  assert.equal(refusal(ask(leaderOf(), promote)), "appended");
  const silent = new Solo({ configuration: three }).lead().accept("n2", 1).accept("n3", 1).clear();
  assert.equal(refusal(ask(silent, promote)), "not_caught_up n4", "it is only being asked where it stands");
  const reset = leaderOf().step({ kind: "peerReset", peer: "n4" });
  assert.equal(refusal(ask(reset, promote)), "not_caught_up n4");
  const gone = leaderOf().pass(400).accept("n2", 1).accept("n3", 1).pass(100).clear();
  assert.equal(refusal(ask(gone, promote)), "not_caught_up n4", "not heard for an election timeout");
  const behind = leaderOf();
  for (let count = 0; count < promotionLagMax; count += 1) behind.propose("x", count + 10);
  assert.equal(behind.raft.status().peers.find(({ id }) => id === "n4")?.isCaughtUp, true);
  behind.propose("x").clear();
  assert.equal(behind.raft.status().peers.find(({ id }) => id === "n4")?.isCaughtUp, false);
  assert.equal(refusal(ask(behind, promote)), "not_caught_up n4");
  assert.equal(refusal(ask(behind.clear(), promote, 2, true)), "not_caught_up n4", "by no force");
});

test("a change whose voters couldn't decide with those that answer is refused, unless forced", () => {
  const solo = leaderOf().pass(400).accept("n2", 1).pass(100).clear();
  assert.equal(refusal(ask(solo, { remove: ["n2"] })), "would_lose_quorum n3");
  assert.equal(refusal(ask(solo.clear(), { remove: ["n1"] }, 2)), "would_lose_quorum n3");
  assert.equal(refusal(ask(solo.clear(), { remove: ["n1", "n2"] }, 3)), "would_lose_quorum n3");
  assert.equal(refusal(ask(solo.clear(), { remove: ["n3"] }, 4)), "appended");
  const learners = leaderOf().pass(400).accept("n2", 1).pass(100).clear();
  assert.equal(refusal(ask(learners, { remove: ["n4"] })), "appended", "learners lose no quorum");
  const fresh = new Solo({ configuration: three }).lead().accept("n2", 1).clear();
  assert.equal(refusal(ask(fresh, { remove: ["n2"] })), "would_lose_quorum n3", "n3 has not answered in this term");
  assert.equal(refusal(ask(fresh.clear(), { remove: ["n2"] }, 2, true)), "appended");
});

test("who is known to be gone counts as down at once, and as up when it has answered again", () => {
  for (const kind of ["peerGone", "peerReset"] as const) {
    const solo = leaderOf().step({ kind, peer: "n3" }).clear();
    assert.equal(refusal(ask(solo, { remove: ["n2"] })), "would_lose_quorum n3", kind);
    assert.equal(refusal(ask(solo.clear().accept("n3", 1).clear(), { remove: ["n2"] }, 2)), "appended", kind);
  }
});

test("what the codec can't write down is refused, and nothing is changed", () => {
  const solo = ask(leaderOf(), { add: [{ ...memberOf("n6"), id: "n 6", instance: "x" }] });
  assert.equal(refusal(solo), "invalid_member n 6");
  assert.equal(solo.raft.lastIndex, 1);
});

test("any change at all is made or refused, and ends once", () => {
  const id = fc.constantFrom("n1", "n2", "n3", "n4", "n5", "n6", "n 7", "");
  const member = fc.record({
    id,
    instance: fc.constantFrom("n1-1", "n6-1", "x"),
    peer: fc.constantFrom("n1:1", "n6:1"),
    client: fc.constantFrom("n2:2", "n6:2"),
  });
  const few = { maxLength: 2 };
  const change = fc.record({ add: fc.array(member, few), promote: fc.array(id, few), remove: fc.array(id, few) });
  fc.assert(
    fc.property(fc.array(fc.tuple(change, fc.boolean()), { minLength: 1, maxLength: 6 }), (asked) => {
      const solo = leaderOf();
      for (const [at, [each, isForced]] of asked.entries()) {
        solo.step({ kind: "changeMembers", id: at, change: each, isForced }).persist();
        for (const from of ["n2", "n3", "n4"]) solo.accept(from, solo.raft.lastIndex).persist();
      }
      solo.receive("n2", heartbeatOf(9));
      const ends = outcomes(solo).flatMap((outcome) => (outcome.kind === "appended" ? [] : [outcome.id]));
      assert.deepEqual(
        ends.toSorted((a, b) => a - b),
        asked.map((_, at) => at),
      );
    }),
  );
});

test("a round in flight ends when the new quorum has nobody left to answer it", () => {
  const solo = ask(leaderOf(configurationOf(["n1", "n2"])), { remove: ["n2"] }).persist();
  solo.step({ kind: "confirm", id: 7 });
  assert.deepEqual(
    solo.outputs.flatMap((output) => [...output.confirmed]),
    [],
  );
  solo.accept("n2", 2);
  assert.deepEqual(
    solo.outputs.flatMap((output) => [...output.confirmed]),
    [{ id: 7, index: 1 }],
  );
  solo.persist();
  assert.equal(solo.raft.commitIndex, 3);
});

test("after a truncation, a restart or a snapshot the configuration is the last one that the log holds", () => {
  const first = entriesOf("1/1");
  const change = entryOf(2, 1, first[0]?.chain ?? 0, "configuration", testCodec.encodeConfiguration(joint));
  const finish = entryOf(3, 1, change.chain, "configuration", testCodec.encodeConfiguration(final));
  const restarted = (entries: readonly (typeof change)[]): Solo =>
    new Solo({ id: "n4", configuration: three, entries });
  assert.deepEqual(restarted(first).raft.configuration, three);
  assert.deepEqual(restarted([...first, change]).raft.configuration, joint);
  assert.deepEqual(restarted([...first, change, finish]).raft.configuration, final);
  const solo = restarted([...first, change, finish]);
  assert.notEqual(solo.raft.nextDeadlineMs(), Number.POSITIVE_INFINITY);
  const other = entryOf(3, 2, change.chain, "command", bytesOf("x"));
  solo.receive("n2", appendOf(2, [...first, change], [other]));
  assert.deepEqual(solo.raft.configuration, joint);
  const another = entryOf(2, 3, first[0]?.chain ?? 0, "command", bytesOf("x"));
  solo.receive("n2", appendOf(3, first, [another]));
  assert.deepEqual(solo.raft.configuration, three);
  assert.equal(solo.raft.nextDeadlineMs(), Number.POSITIVE_INFINITY, "a learner again");
  const base = { ...baseOf(9, 3, 99), configuration: joint };
  solo
    .persist()
    .receive("n2", { kind: "snapshotChunk", term: 3 as Term, base, chunk: 0, bytes: bytesOf("s"), done: true });
  assert.deepEqual([solo.raft.configuration, solo.raft.status().configurationIndex], [joint, 9]);
  assert.notEqual(solo.raft.nextDeadlineMs(), Number.POSITIVE_INFINITY);
});

test("the base of a snapshot has the configuration as of its index, with the tombstones", () => {
  const solo = ask(leaderOf(), replace).persist();
  solo.accept("n2", 2).accept("n4", 2).persist().accept("n2", 3).accept("n4", 3);
  assert.deepEqual(solo.raft.baseAt(1 as Index).configuration, three);
  assert.deepEqual(solo.raft.baseAt(2 as Index).configuration, joint);
  assert.deepEqual(solo.raft.baseAt(3 as Index).configuration, final);
  solo.step({ kind: "snapshotTaken", base: solo.raft.baseAt(3 as Index) });
  assert.equal(refusal(ask(solo.clear(), { add: [memberOf("n3")] }, 2)), "removed_id n3");
});
