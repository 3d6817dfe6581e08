/** What becomes of nodes that were removed, and of those that have removed them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Entry, MembershipChange, Message, Term } from "../src/index.js";
import { bytesOf, configurationOf, testCodec } from "./support/codec.js";
import {
  appendOf,
  baseOf,
  entriesOf,
  entryOf,
  firstBase,
  heartbeatOf,
  preVoteOf,
  Solo,
  voteOf,
} from "./support/solo.js";

const three = configurationOf(["n1", "n2", "n3"]);
const joint = configurationOf(["n1", "n2"], ["n1", "n2", "n3"]);
const final = configurationOf(["n1", "n2"], [], [], ["n3"]);
const log = logOf();

/** Entry 1, then the joint and the final configuration that remove n3. */
function logOf(): Entry[] {
  const [first] = entriesOf("1/1") as [Entry];
  const second = entryOf(2, 1, first.chain, "configuration", testCodec.encodeConfiguration(joint));
  return [first, second, entryOf(3, 1, second.chain, "configuration", testCodec.encodeConfiguration(final))];
}

/** n3 with all of the log, of which `commitIndex` is known to be committed. */
function removed(commitIndex: number): Solo {
  const solo = new Solo({ id: "n3", configuration: three });
  return solo
    .receive("n1", appendOf(1, [], log, commitIndex))
    .persist()
    .clear();
}

/** A leader of n1, n2 and n3 that has appended a change; everybody has what comes before it. */
function changing(change: Partial<MembershipChange>): Solo {
  const solo = new Solo({ configuration: three }).lead().accept("n2", 1).accept("n3", 1);
  const whole = { add: [], promote: [], remove: [], ...change };
  return solo.step({ kind: "changeMembers", id: 1, change: whole, isForced: false }).persist();
}

/** The same with both entries of the change committed by n2 and n3. */
function changed(change: Partial<MembershipChange>): Solo {
  const solo = changing(change);
  for (const index of [2, 3]) solo.accept("n2", index).accept("n3", index).persist();
  assert.equal(solo.raft.commitIndex, 3);
  return solo;
}

function heardBy(solo: Solo): string[] {
  solo.clear().pass(200);
  return solo.sentOf("heartbeat").map(({ to }) => to);
}

function vote(solo: Solo, from: string): boolean | null {
  solo
    .clear()
    .receive(from, voteOf(solo.raft.term + 1, "9/1"))
    .persist();
  return solo.sentOf("voteAnswer")[0]?.message.granted ?? null;
}

test("a node whose removal is committed says so once, votes for nobody, and waits for nothing", () => {
  const solo = removed(2);
  assert.equal(solo.raft.status().isRemoved, false, "the final configuration may still be truncated");
  solo.receive("n1", heartbeatOf(1, 3)).receive("n1", heartbeatOf(1, 3));
  assert.deepEqual(solo.outputs.filter((output) => output.isRemoved).length, 1);
  assert.deepEqual([solo.raft.status().isRemoved, solo.raft.nextDeadlineMs()], [true, Number.POSITIVE_INFINITY]);
  solo.pass(100_000).clear();
  solo
    .receive("n2", preVoteOf(9, "9/9"))
    .receive("n2", voteOf(9, "9/9"))
    .receive("n2", voteOf(10, "9/9", true))
    .persist();
  assert.deepEqual([solo.sent, solo.raft.term], [[], 1]);
  solo
    .step({ kind: "peerGone", peer: "n1" })
    .receive("n1", { kind: "timeoutNow", term: 1 as Term })
    .pass(100_000);
  assert.equal(solo.raft.role, "learner");
});

test("a node with a removal in its log that isn't known to be committed votes and campaigns, without counting itself (thesis 4.2.2)", () => {
  assert.equal(vote(removed(2).pass(1_000), "n2"), true);
  const solo = removed(2).toDeadline();
  assert.equal(solo.raft.role, "preCandidate");
  for (const kind of ["preVoteAnswer", "voteAnswer"] as const) {
    solo.receive("n1", { kind, term: 2 as Term, granted: true }).persist();
    assert.notEqual(solo.raft.role, "leader", "of n1 and n2 both are needed");
    solo.receive("n2", { kind, term: 2 as Term, granted: true }).persist();
  }
  assert.equal(solo.raft.role, "leader");
});

test("whose removal is committed can't disturb, whatever its term; whose isn't, may be needed", () => {
  const follower = (commitIndex: number): Solo => {
    const solo = new Solo({ id: "n2", configuration: three });
    return solo
      .receive("n1", appendOf(1, [], log, commitIndex))
      .persist()
      .pass(1_000)
      .clear();
  };
  const known = follower(3);
  assert.equal(vote(known, "n3"), null);
  assert.equal(known.raft.term, 1);
  known.clear().receive("n3", preVoteOf(2, "9/1")).persist();
  assert.deepEqual(known.sent, []);
  assert.equal(vote(follower(2), "n3"), true, "n3's log may be the only one that can win");
  assert.equal(vote(follower(3), "n9"), true, "it may be a member that this node doesn't know of yet");
});

test("a removal that comes with a snapshot counts as any other", () => {
  const solo = new Solo({ id: "n3", configuration: three });
  const base = { ...baseOf(9, 1, 99), configuration: final };
  const chunk: Message = { kind: "snapshotChunk", term: 1 as Term, base, chunk: 0, bytes: bytesOf("s"), done: true };
  solo.receive("n1", chunk).persist();
  assert.ok(solo.outputs.some((output) => output.isRemoved));
  const restarted = new Solo({ id: "n3", base });
  assert.ok(restarted.outputs.some((output) => output.isRemoved));
  assert.equal(restarted.raft.status().isRemoved, true);
});

test("who leaves is sent to until it is silent or its time is over, and counts for nothing", () => {
  const solo = changed({ remove: ["n3"] });
  assert.deepEqual(solo.sentOf("append").at(-1)?.to, "n3");
  assert.equal(solo.raft.status().peers.find(({ id }) => id === "n3")?.membership, "leaving");
  assert.deepEqual(heardBy(solo), ["n2", "n3"]);
  solo.propose("x").persist().accept("n3", 4);
  assert.equal(solo.raft.commitIndex, 3);
  const answer = (id: string): Solo => solo.receive(id, { kind: "heartbeatAnswer", term: 1 as Term, round: 0 });
  for (let passed = 200; passed < 2_000; passed += 200) {
    answer("n2");
    answer("n3");
    assert.ok(heardBy(solo).includes("n3"), `${passed} ms`);
  }
  answer("n2");
  answer("n3");
  heardBy(solo);
  answer("n2");
  assert.deepEqual(heardBy(solo), ["n2"]);
  const silent = changed({ remove: ["n3"] });
  silent.pass(400).accept("n2", 3).pass(100);
  assert.deepEqual(heardBy(silent), ["n2"], "n3 was not heard for an election timeout");
});

test("who leaves is sent to for as long as its removal isn't committed", () => {
  const solo = changing({ remove: ["n3"] });
  solo.accept("n2", 2).persist();
  assert.deepEqual(solo.raft.configuration, final);
  for (let passed = 0; passed < 5_000; passed += 200) {
    assert.deepEqual(heardBy(solo), ["n2", "n3"]);
    solo.accept("n2", 2);
  }
});

test("the term of who leaves deposes nobody", () => {
  const solo = changed({ remove: ["n3"] });
  const late: Message = {
    kind: "appendRejected",
    term: 7 as Term,
    rejected: 3 as never,
    hint: { index: 0, term: 0 } as never,
  };
  solo.receive("n3", late);
  assert.deepEqual([solo.raft.role, solo.raft.term], ["leader", 1]);
  solo.receive("n2", late);
  assert.deepEqual([solo.raft.role, solo.raft.term], ["follower", 7]);
});

test("a new leader goes on telling those that the last change in its log has removed", () => {
  const solo = new Solo({ configuration: three, entries: log }).lead();
  assert.deepEqual(
    solo.raft.status().peers.map(({ id, membership }) => [id, membership]),
    [
      ["n2", "voter"],
      ["n3", "leaving"],
    ],
  );
  const compacted = new Solo({ base: { ...firstBase, configuration: final } }).lead();
  assert.deepEqual(
    compacted.raft.status().peers.map(({ id }) => id),
    ["n2"],
  );
});

test("a leader that has removed itself hands over to the most up-to-date voter, and then says that it was removed", () => {
  const solo = changing({ remove: ["n1"] });
  solo.accept("n2", 2).accept("n3", 2).persist().accept("n2", 3).accept("n3", 3);
  assert.deepEqual(
    solo.sentOf("timeoutNow").map(({ to }) => to),
    ["n2"],
  );
  assert.equal(
    solo.outputs.some((output) => output.isRemoved),
    false,
  );
  solo.receive("n2", { kind: "heartbeatAnswer", term: 1 as Term, round: 0 });
  assert.deepEqual([solo.raft.role, solo.raft.status().isRemoved], ["learner", true]);
});

test("when nobody can take over within a transfer's time, it just goes", () => {
  const solo = changing({ remove: ["n1"] });
  solo.accept("n2", 2).accept("n3", 2).persist().propose("x").persist().clear();
  solo.accept("n2", 3).accept("n3", 3);
  assert.deepEqual([solo.raft.role, solo.raft.status().transferTo], ["leader", "n2"], "x is on its way to n2");
  solo.pass(400).accept("n3", 3).pass(100);
  assert.deepEqual([solo.raft.role, solo.sentOf("timeoutNow")], ["learner", []]);
});
