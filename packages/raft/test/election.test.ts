import assert from "node:assert/strict";
import { test } from "node:test";
import type { Term } from "../src/index.js";
import { configurationOf } from "./support/codec.js";
import { appendOf, entriesOf, heartbeatOf, preVoteOf, Solo, voteOf } from "./support/solo.js";

function preVote(solo: Solo, term: number, last = "0/0", from = "n2"): { term: number; granted: boolean } | undefined {
  return solo.receive(from, preVoteOf(term, last)).sentOf("preVoteAnswer").at(-1)?.message;
}

test("a pre-vote raises no term, is not written, and answers don't wait for the disk", () => {
  const asker = new Solo().toDeadline();
  assert.deepEqual([asker.raft.role, asker.raft.term], ["preCandidate", 0]);
  assert.ok(asker.outputs.every((output) => output.hardState === null));
  const asked = new Solo();
  assert.deepEqual(preVote(asked, 1), { kind: "preVoteAnswer", term: 1, granted: true });
  assert.deepEqual([asked.raft.term, asked.raft.votedFor], [0, null]);
});

test("a granted pre-vote answers with the asked term, a refused one with the own (etcd #8243)", () => {
  const solo = new Solo({ hardState: { term: 5, votedFor: null } });
  assert.deepEqual(preVote(solo, 9), { kind: "preVoteAnswer", term: 9, granted: true });
  assert.deepEqual(preVote(solo, 5), { kind: "preVoteAnswer", term: 5, granted: false });
  assert.deepEqual(preVote(solo, 3), { kind: "preVoteAnswer", term: 5, granted: false });
});

test("a refusal with a later term teaches it to whoever asked", () => {
  const solo = new Solo().toDeadline();
  solo.receive("n2", { kind: "preVoteAnswer", term: 5 as Term, granted: false });
  assert.deepEqual([solo.raft.role, solo.raft.term], ["follower", 5]);
  assert.equal(solo.outputs.at(-1)?.hardState?.term, 5);
});

test("an answer to an older pre-vote counts for nothing", () => {
  const solo = new Solo({ hardState: { term: 5, votedFor: null } }).toDeadline();
  solo.receive("n2", { kind: "preVoteAnswer", term: 5 as Term, granted: true });
  assert.equal(solo.raft.role, "preCandidate");
  solo.receive("n2", { kind: "preVoteAnswer", term: 6 as Term, granted: true });
  assert.equal(solo.raft.role, "candidate");
});

test("stickiness: who heard its leader within an election timeout ignores votes, and their term", () => {
  const solo = new Solo();
  solo.receive("n2", heartbeatOf(1)).persist().clear();
  solo.pass(499).receive("n3", voteOf(7, "9/6")).persist();
  assert.deepEqual([solo.raft.term, solo.sentOf("voteAnswer").length], [1, 0]);
  assert.equal(preVote(solo, 7, "9/6", "n3")?.granted, false);
  const later = new Solo();
  later.receive("n2", heartbeatOf(1)).persist();
  later.nowMs += 500;
  later.receive("n3", voteOf(7, "9/6")).persist();
  assert.equal(later.sentOf("voteAnswer")[0]?.message.granted, true);
});

test("stickiness: a leader ignores votes and refuses pre-votes as long as it leads", () => {
  const solo = new Solo().lead().clear();
  const { term } = solo.raft;
  solo.receive("n2", voteOf(term + 1, "9/9")).persist();
  assert.deepEqual([solo.raft.role, solo.raft.term], ["leader", term]);
  assert.deepEqual(preVote(solo, term + 1, `9/${term}`), { kind: "preVoteAnswer", term, granted: false });
});

test("stickiness is passed by a transfer's vote request, by nothing else", () => {
  const solo = new Solo();
  solo
    .receive("n2", heartbeatOf(1))
    .receive("n3", voteOf(2, "0/0", true))
    .persist();
  assert.equal(solo.sentOf("voteAnswer")[0]?.message.granted, true);
});

test("peerGone of the leader drops stickiness at once, and begins a pre-vote within 50 ms", () => {
  const solo = new Solo();
  solo.receive("n2", heartbeatOf(1)).persist().clear();
  solo.step({ kind: "peerGone", peer: "n2" });
  assert.equal(solo.raft.leader, null);
  const waitMs = solo.raft.nextDeadlineMs() - solo.nowMs;
  assert.ok(waitMs >= 0 && waitMs <= 50);
  assert.equal(preVote(solo, 2, "0/0", "n3")?.granted, true);
  assert.ok(solo.raft.nextDeadlineMs() - solo.nowMs >= 100, "who grants one gives the asker time to win");
});

test("peerGone of another than the leader, or of a leader that is heard again, changes nothing", () => {
  const solo = new Solo();
  solo.receive("n2", heartbeatOf(1)).step({ kind: "peerGone", peer: "n3" });
  assert.equal(solo.raft.leader, "n2");
  solo.step({ kind: "peerGone", peer: "n2" }).receive("n2", heartbeatOf(1));
  assert.equal(solo.raft.leader, "n2");
  assert.ok(solo.raft.nextDeadlineMs() - solo.nowMs >= 500);
});

test("of two that ask for pre-votes at once, the one with the lesser id goes on", () => {
  const greater = new Solo({ id: "n3" }).toDeadline();
  assert.equal(preVote(greater, 1, "0/0", "n2")?.granted, true);
  assert.equal(greater.raft.role, "follower");
  const lesser = new Solo({ id: "n1" }).toDeadline();
  assert.equal(preVote(lesser, 1, "0/0", "n2")?.granted, true);
  assert.equal(lesser.raft.role, "preCandidate");
});

test("who is asked by a node with an older log, and misses the leader too, asks in its turn", () => {
  const solo = new Solo({ log: "1/1 2/1" });
  assert.equal(preVote(solo, 2, "1/1")?.granted, false);
  assert.ok(solo.raft.nextDeadlineMs() - solo.nowMs <= 50);
  const refused = new Solo({ log: "1/1 2/1" }).toDeadline();
  refused.receive("n2", { kind: "preVoteAnswer", term: 1 as Term, granted: false }).clear();
  assert.equal(preVote(refused, 2, "1/1")?.granted, false);
  refused.toDeadline();
  assert.equal(
    refused.sentOf("preVote").length,
    2,
    "also when it was refused before, by a peer that heard the leader then",
  );
  const content = new Solo({ log: "1/1 2/1" });
  content.receive("n3", heartbeatOf(1));
  assert.equal(preVote(content, 2, "1/1")?.granted, false);
  assert.ok(content.raft.nextDeadlineMs() - content.nowMs >= 500, "but not while it hears its leader");
});

test("a node whose disk write is overdue neither campaigns nor grants pre-votes", () => {
  const solo = new Solo();
  solo.receive("n2", heartbeatOf(1));
  solo.nowMs += 1_000;
  assert.equal(preVote(solo, 2)?.granted, false, "a write of 1,000 ms ago has not returned");
  solo.toDeadline();
  assert.equal(solo.raft.role, "follower");
  solo.persist();
  assert.equal(preVote(solo, 2)?.granted, true);
  solo.toDeadline();
  assert.equal(solo.raft.role, "preCandidate");
});

test("only outputs with something to write can be overdue", () => {
  const solo = new Solo().toDeadline();
  assert.ok(solo.unpersisted.length > 0, "pre-votes were sent");
  solo.nowMs += 10_000;
  assert.equal(solo.raft.status().isDiskOverdue, false);
});

test("a leader whose disk write is overdue steps down, exactly then", () => {
  const solo = new Solo().lead().accept("n2", 1).accept("n3", 1);
  solo.propose("x");
  const takenMs = solo.nowMs;
  for (let at = 0; at < 900; at += 100) {
    solo.pass(100).receive("n2", { kind: "heartbeatAnswer", term: solo.raft.term, round: 0 });
  }
  assert.equal(solo.raft.role, "leader");
  assert.equal(solo.raft.nextDeadlineMs(), takenMs + 1_000);
  solo.pass(99);
  assert.equal(solo.raft.role, "leader");
  solo.pass(1);
  assert.equal(solo.raft.role, "follower");
  assert.match(solo.outputs.at(-1)?.roleChanges[0]?.reason ?? "", /write has not returned for 1000 ms/);
});

test("check-quorum: a leader that can't hear a quorum for an election timeout steps down, exactly then", () => {
  const solo = new Solo().lead();
  solo.pass(100).accept("n2", 1);
  const heardMs = solo.nowMs;
  for (let at = 0; at < 4; at += 1) solo.pass(100);
  assert.equal(solo.raft.role, "leader");
  solo.nowMs = heardMs + 499;
  solo.step({ kind: "tick" });
  assert.equal(solo.raft.role, "leader");
  solo.pass(1);
  assert.deepEqual([solo.raft.role, solo.raft.term, solo.raft.leader], ["follower", 1, null]);
});

test("after a stall, what waited in the sockets is heard before its lack is noticed: only ticks act on time", () => {
  const follower = new Solo();
  follower.receive("n2", heartbeatOf(1)).persist();
  follower.nowMs += 5_000;
  follower.receive("n3", { kind: "voteAnswer", term: 1 as Term, granted: true }).receive("n2", heartbeatOf(1));
  follower.step({ kind: "tick" });
  assert.deepEqual([follower.raft.role, follower.raft.leader], ["follower", "n2"]);
  const leader = new Solo().lead().accept("n2", 1).propose("x");
  leader.nowMs += 5_000;
  leader.propose("y").accept("n2", 2).persist().step({ kind: "tick" });
  assert.equal(leader.raft.role, "leader");
});

test("only removed ids are no candidates: any other may have become a voter without this node knowing (thesis 4.1)", () => {
  const solo = new Solo({ configuration: configurationOf(["n1", "n2", "n3"], [], ["n4"], ["n8"]) });
  solo.receive("n8", voteOf(4, "9/3")).receive("n8", preVoteOf(4, "9/3"));
  assert.deepEqual([solo.raft.term, solo.persist().sent], [0, []]);
  for (const [at, id] of ["n4", "n9"].entries()) {
    solo.receive(id, voteOf(4 + at, "9/3")).persist();
    assert.equal(solo.sentOf("voteAnswer")[0]?.message.granted, true, id);
  }
});

test("a sole voter elects itself at once, and leads when its vote is durable", () => {
  const solo = new Solo({ configuration: configurationOf(["n1"]) });
  assert.equal(solo.raft.role, "candidate");
  solo.persist();
  assert.equal(solo.raft.role, "leader");
  assert.equal(solo.raft.commitIndex, 0, "its first entry is not durable yet");
  solo.persist();
  assert.equal(solo.raft.commitIndex, 1);
});

test("before the first event everything is due", () => {
  const fresh = new Solo();
  assert.ok(fresh.raft.nextDeadlineMs() > fresh.nowMs);
  const { raft } = new Solo({ configuration: configurationOf(["n2"]) });
  assert.equal(raft.nextDeadlineMs(), Number.POSITIVE_INFINITY, "a node without a vote waits for nothing");
});

test("a learner never campaigns, but votes when it is asked", () => {
  const solo = new Solo({ id: "n4", configuration: configurationOf(["n1", "n2"], [], ["n4"]) });
  assert.equal(solo.raft.role, "learner");
  assert.equal(solo.raft.nextDeadlineMs(), Number.POSITIVE_INFINITY);
  solo.pass(10_000);
  assert.equal(solo.raft.role, "learner");
  solo
    .receive("n1", heartbeatOf(1))
    .receive("n1", { kind: "timeoutNow", term: 1 as Term })
    .persist();
  assert.equal(solo.raft.role, "learner");
  solo.pass(500);
  assert.equal(solo.receive("n1", voteOf(2, "0/0")).persist().sentOf("voteAnswer")[0]?.message.granted, true);
});

test("an answer to a heartbeat of an old term tells the deposed leader, without waiting for the disk", () => {
  const solo = new Solo({ hardState: { term: 5, votedFor: null } });
  solo.receive("n2", heartbeatOf(3, 0, 9));
  const [answer] = solo.sentOf("heartbeatAnswer");
  assert.deepEqual([answer?.message.term, answer?.waited, solo.raft.leader], [5, false, null]);
});

test("an acknowledgement of an old term that was not taken yet leaves no more", () => {
  const solo = new Solo();
  const entries = entriesOf("1/1 2/1");
  const append = appendOf(1, [], entries);
  solo.stepAll([
    { kind: "received", from: "n2", message: append },
    { kind: "received", from: "n3", message: appendOf(2, [], entriesOf("1/2")) },
  ]);
  solo.persist();
  assert.deepEqual(
    solo.sentOf("appendAccepted").map(({ to, message }) => [to, message.term, message.matchIndex]),
    [["n3", 2, 1]],
    "entry 2 was truncated before anything was written",
  );
});
