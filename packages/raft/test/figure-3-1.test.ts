/** One test for each rule of figure 3.1 and each property of figure 3.2 of Ongaro's thesis, under its own words. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { InvariantError } from "../src/index.js";
import type { Index, Message, Term } from "../src/index.js";
import { appendOf, entriesOf, entryOf, heartbeatOf, preVoteOf, Solo, voteOf } from "./support/solo.js";

const leaderLog = entriesOf("1/1 2/1 3/2");

function appended(solo: Solo, from: string, message: Message): Message | undefined {
  solo.sent = [];
  solo.receive(from, message).persist();
  return solo.sent.find((each) => each.message.kind.startsWith("append"))?.message;
}

// Persistent state.

test("currentTerm, votedFor and log are updated on stable storage before responding", () => {
  const solo = new Solo();
  solo.receive("n2", voteOf(1, "0/0"));
  assert.deepEqual(solo.sent, [], "no vote before the disk");
  assert.deepEqual(solo.outputs.at(-1)?.hardState, { term: 1, votedFor: "n2" });
  solo.persist();
  assert.equal(solo.sentOf("voteAnswer")[0]?.message.granted, true);
  solo.receive("n2", appendOf(1, [], leaderLog.slice(0, 1)));
  assert.deepEqual(solo.sent, [], "no acknowledgement before the disk");
  solo.persist();
  assert.equal(solo.sentOf("appendAccepted")[0]?.message.matchIndex, 1);
});

test("term, vote and log come back from stable storage", () => {
  const solo = new Solo({ hardState: { term: 3, votedFor: "n2" }, log: "1/1 2/3" });
  assert.deepEqual([solo.raft.term, solo.raft.votedFor, solo.raft.lastIndex], [3, "n2", 2]);
  solo.receive("n3", voteOf(3, "9/3")).persist();
  assert.equal(solo.sentOf("voteAnswer")[0]?.message.granted, false, "the vote of this term is given");
  solo.receive("n2", voteOf(3, "9/3")).persist();
  assert.equal(solo.sentOf("voteAnswer")[0]?.message.granted, true, "the same vote may be told again");
});

// RequestVote, receiver.

test("RequestVote 1: reply false if term < currentTerm", () => {
  const solo = new Solo({ hardState: { term: 5, votedFor: null } });
  solo.receive("n2", voteOf(4, "9/4")).persist();
  assert.deepEqual(solo.sentOf("voteAnswer")[0]?.message, { kind: "voteAnswer", term: 5, granted: false });
});

test("RequestVote 2: grant only if votedFor is null or candidateId", () => {
  const solo = new Solo();
  solo.receive("n2", voteOf(1, "0/0")).receive("n3", voteOf(1, "0/0")).persist();
  assert.deepEqual(
    solo.sentOf("voteAnswer").map(({ to, message }) => [to, message.granted]),
    [
      ["n2", true],
      ["n3", false],
    ],
  );
});

test("RequestVote 2: a vote is written, also in a term that is known already", () => {
  const solo = new Solo({ hardState: { term: 4, votedFor: null } });
  solo.receive("n2", voteOf(4, "0/0"));
  assert.deepEqual(solo.outputs.at(-1)?.hardState, { term: 4, votedFor: "n2" });
});

test("RequestVote 2: grant only if the candidate's log is at least as up to date", () => {
  const grants = (last: string): boolean | undefined => {
    const solo = new Solo({ log: "1/1 2/3 3/3" });
    return solo.receive("n2", voteOf(9, last)).persist().sentOf("voteAnswer")[0]?.message.granted;
  };
  assert.equal(grants("3/3"), true, "equal");
  assert.equal(grants("4/3"), true, "longer");
  assert.equal(grants("1/4"), true, "of a later term, though shorter");
  assert.equal(grants("2/3"), false, "shorter");
  assert.equal(grants("9/2"), false, "of an earlier term, though longer");
});

// AppendEntries, receiver.

test("AppendEntries 1: reply false if term < currentTerm", () => {
  const solo = new Solo({ hardState: { term: 5, votedFor: null } });
  const answer = appended(solo, "n2", appendOf(4, [], leaderLog));
  assert.deepEqual([answer?.kind, answer?.term], ["appendRejected", 5]);
  assert.equal(solo.raft.lastIndex, 0);
  assert.equal(solo.raft.leader, null);
});

test("AppendEntries 2: reply false if the log has no entry at prevLogIndex whose term matches prevLogTerm", () => {
  const short = new Solo({ log: "1/1" });
  const answer = appended(short, "n2", appendOf(2, leaderLog.slice(0, 2), leaderLog.slice(2)));
  assert.deepEqual(answer, { kind: "appendRejected", term: 2, rejected: 2, hint: { index: 1, term: 1 } });
  const other = new Solo({ log: "1/1 2/2", hardState: { term: 2, votedFor: null } });
  const entries = entriesOf("1/1 2/3 3/3");
  const conflict = appended(other, "n2", appendOf(3, entries.slice(0, 2), entries.slice(2)));
  assert.equal(conflict?.kind, "appendRejected");
  assert.equal(other.positions(), "1/1 2/2", "nothing is deleted by a rejected append");
});

test("AppendEntries 3: a conflicting entry is deleted, and all that follow it", () => {
  const solo = new Solo({ log: "1/1 2/1 3/1 4/1", hardState: { term: 1, votedFor: null } });
  appended(solo, "n2", appendOf(2, leaderLog.slice(0, 1), leaderLog.slice(1)));
  assert.equal(solo.positions(), "1/1 2/1 3/2");
  assert.deepEqual(
    solo.outputs.map((output) => output.truncateFrom).filter((from) => from !== null),
    [3],
  );
});

test("AppendEntries 4: only entries not already in the log are appended, and a late append deletes nothing", () => {
  const solo = new Solo();
  appended(solo, "n2", appendOf(2, [], leaderLog));
  solo.clear();
  assert.deepEqual(appended(solo, "n2", appendOf(2, [], leaderLog.slice(0, 1))), {
    kind: "appendAccepted",
    term: 2,
    matchIndex: 1,
  });
  assert.equal(solo.positions(), "1/1 2/1 3/2");
  assert.ok(solo.outputs.every((output) => output.truncateFrom === null && output.entries.length === 0));
});

test("AppendEntries 5: commitIndex is the least of leaderCommit and the last entry that this message verified", () => {
  const solo = new Solo({ log: "1/1 2/1 3/1", hardState: { term: 1, votedFor: null } });
  // Entry 3 of the own log is not the leader's: an append that ends at 1 says nothing of it.
  appended(solo, "n2", appendOf(2, [], leaderLog.slice(0, 1), 3));
  assert.equal(solo.raft.commitIndex, 1);
  appended(solo, "n2", appendOf(2, leaderLog.slice(0, 1), leaderLog.slice(1), 2));
  assert.equal(solo.raft.commitIndex, 2);
  appended(solo, "n2", appendOf(2, leaderLog, [], 1));
  assert.equal(solo.raft.commitIndex, 2, "it never falls");
});

// All servers.

test("all servers: what is committed is applied, in order, once", () => {
  const solo = new Solo();
  appended(solo, "n2", appendOf(2, [], leaderLog, 2));
  appended(solo, "n2", appendOf(2, leaderLog, [], 3));
  appended(solo, "n2", appendOf(2, leaderLog, [], 3));
  assert.deepEqual(solo.applied, [1, 2, 3]);
});

test("all servers: a later term is adopted, and its receiver becomes follower", () => {
  const solo = new Solo().lead();
  const term = (solo.raft.term + 1) as Term;
  solo.receive("n2", { kind: "heartbeatAnswer", term, round: 0 });
  assert.deepEqual(
    [solo.raft.role, solo.raft.term, solo.raft.votedFor, solo.raft.leader],
    ["follower", term, null, null],
  );
});

// Followers.

test("followers: without a leader's message or a granted vote for an election timeout, an election is begun", () => {
  const solo = new Solo();
  const first = solo.raft.nextDeadlineMs();
  assert.ok(first >= solo.nowMs + 500 && first < solo.nowMs + 1_000);
  solo.pass(400).receive("n2", heartbeatOf(1));
  assert.ok(solo.raft.nextDeadlineMs() >= solo.nowMs + 500, "a heartbeat restarts the timeout");
  solo.pass(400).receive("n2", appendOf(1, [], leaderLog.slice(0, 1)));
  assert.ok(solo.raft.nextDeadlineMs() >= solo.nowMs + 500, "so does an append");
  solo.pass(500).receive("n3", voteOf(2, "9/2"));
  assert.ok(solo.raft.nextDeadlineMs() >= solo.nowMs + 500, "and a granted vote");
  solo.persist().toDeadline();
  assert.equal(solo.raft.role, "preCandidate");
});

test("followers: a refused vote doesn't restart the timeout", () => {
  const solo = new Solo({ log: "1/1" });
  const deadline = solo.raft.nextDeadlineMs();
  solo.pass(100).receive("n2", voteOf(5, "0/0"));
  assert.equal(solo.raft.term, 5);
  assert.equal(solo.raft.nextDeadlineMs(), deadline);
});

test("the election timeout is drawn anew each time", () => {
  const solo = new Solo();
  const timeouts = new Set<number>();
  for (let count = 0; count < 50; count += 1) {
    solo.pass(100).receive("n2", heartbeatOf(1));
    timeouts.add(solo.raft.nextDeadlineMs() - solo.nowMs);
  }
  assert.ok(timeouts.size > 30);
  assert.ok([...timeouts].every((timeout) => timeout >= 500 && timeout < 1_000));
});

// Candidates.

test("candidates: the term rises, the own vote is given and written, and votes are asked for", () => {
  const solo = new Solo({ log: "1/1" });
  solo.toDeadline().receive("n2", { kind: "preVoteAnswer", term: 2 as Term, granted: true });
  assert.deepEqual([solo.raft.role, solo.raft.term, solo.raft.votedFor], ["candidate", 2, "n1"]);
  assert.deepEqual(solo.sentOf("vote"), [], "not before term and vote are durable");
  solo.persist();
  assert.deepEqual(
    solo.sentOf("vote").map(({ to, message }) => [to, message.term, message.last]),
    [
      ["n2", 2, { index: 1, term: 1 }],
      ["n3", 2, { index: 1, term: 1 }],
    ],
  );
});

test("candidates: votes of a majority make a leader", () => {
  const solo = new Solo().toDeadline().grantAll("preVoteAnswer", 1).persist();
  assert.equal(solo.raft.role, "candidate");
  solo.receive("n3", { kind: "voteAnswer", term: 1 as Term, granted: true });
  assert.equal(solo.raft.role, "leader");
});

test("candidates: the own vote counts when it is durable, and not before", () => {
  const solo = new Solo().toDeadline().grantAll("preVoteAnswer", 1);
  solo.receive("n3", { kind: "voteAnswer", term: 1 as Term, granted: true });
  assert.equal(solo.raft.role, "candidate", "one vote and an unwritten one are no majority of three");
  solo.persist();
  assert.equal(solo.raft.role, "leader");
});

test("candidates: an append of a new leader makes a follower", () => {
  const solo = new Solo().toDeadline().grantAll("preVoteAnswer", 1).persist();
  appended(solo, "n2", appendOf(1, [], [entryOf(1, 1, 7, "noop", new Uint8Array(0))]));
  assert.deepEqual([solo.raft.role, solo.raft.leader, solo.raft.term], ["follower", "n2", 1]);
});

test("candidates: when the election timeout passes, a new election is begun", () => {
  const solo = new Solo().toDeadline().grantAll("preVoteAnswer", 1).persist().clear();
  solo.toDeadline();
  assert.equal(solo.raft.role, "preCandidate");
  assert.equal(solo.sentOf("preVote")[0]?.message.term, 2);
});

test("candidates: a majority of refusals ends the candidacy", () => {
  const solo = new Solo().toDeadline().grantAll("preVoteAnswer", 1).persist();
  for (const id of ["n2", "n3"]) solo.receive(id, { kind: "voteAnswer", term: 1 as Term, granted: false });
  assert.deepEqual([solo.raft.role, solo.raft.term], ["follower", 1]);
});

// Leaders.

test("leaders: upon election everybody is sent an append, and heartbeats while idle", () => {
  const solo = new Solo().lead();
  assert.deepEqual(
    solo.sentOf("append").map(({ to, waited }) => [to, waited]),
    [
      ["n2", false],
      ["n3", false],
    ],
  );
  solo.accept("n2", 1).accept("n3", 1).clear();
  solo.pass(99);
  assert.deepEqual(solo.sent, []);
  solo.pass(1);
  assert.deepEqual(
    solo.sentOf("heartbeat").map(({ to }) => to),
    ["n2", "n3"],
  );
});

test("leaders: a command is appended to the own log, and handed out when it is committed", () => {
  const solo = new Solo().lead().clear();
  solo.propose("x").persist();
  assert.deepEqual(solo.applied, []);
  solo.accept("n2", 2);
  assert.deepEqual(solo.applied, [1, 2]);
});

test("leaders: a follower is sent the entries from its nextIndex on; success advances it, failure takes it back", () => {
  const solo = new Solo({ log: "1/1 2/1 3/2" }).lead();
  const [probe] = solo.sentOf("append");
  assert.deepEqual([probe?.message.previous.index, probe?.message.entries.length], [3, 1]);
  const rejection = { kind: "appendRejected", term: solo.raft.term, rejected: 3 as Index } as const;
  solo.receive("n2", { ...rejection, hint: { index: 1 as Index, term: 1 as Term } });
  const [retry] = solo.sentOf("append");
  assert.deepEqual([retry?.message.previous.index, retry?.message.entries.length], [1, 3]);
  solo.accept("n2", 4);
  const peer = solo.raft.status().peers.find(({ id }) => id === "n2");
  assert.deepEqual([peer?.matchIndex, peer?.nextIndex, peer?.state], [4, 5, "replicate"]);
});

test("leaders: commitIndex is the highest index of the own term that a majority matches", () => {
  const solo = new Solo({ log: "1/1 2/1" }).lead();
  solo.accept("n2", 2);
  assert.equal(solo.raft.commitIndex, 0, "on a majority, but of an older term (figure 3.7)");
  solo.accept("n2", 3);
  assert.equal(solo.raft.commitIndex, 3, "an entry of the own term commits all before it");
});

test("leaders: the own copy counts when it is durable, and not before", () => {
  const solo = new Solo().lead().accept("n2", 1).clear();
  solo.propose("x").accept("n2", 2);
  assert.equal(solo.raft.commitIndex, 1, "one follower and an unwritten copy are no majority of three");
  solo.persist();
  assert.equal(solo.raft.commitIndex, 2);
});

test("leaders: two followers are a majority without the leader's own disk", () => {
  const solo = new Solo().lead().clear();
  solo.propose("x").accept("n2", 2).accept("n3", 2);
  assert.deepEqual([solo.raft.commitIndex, solo.raft.persistedIndex], [2, 1]);
});

// Figure 3.2.

test("election safety: a node votes once in a term, over restarts as well", () => {
  const solo = new Solo();
  solo.receive("n2", voteOf(4, "0/0"));
  const hardState = solo.outputs.at(-1)?.hardState ?? null;
  assert.deepEqual(hardState, { term: 4, votedFor: "n2" });
  const reborn = new Solo({ hardState: { term: 4, votedFor: "n2" } });
  assert.equal(reborn.receive("n3", voteOf(4, "9/3")).persist().sentOf("voteAnswer")[0]?.message.granted, false);
});

test("election safety: a second leader in one term is a broken invariant", () => {
  const follower = new Solo();
  follower.receive("n2", heartbeatOf(1));
  assert.throws(() => follower.receive("n3", heartbeatOf(1)), InvariantError);
  const leader = new Solo().lead();
  assert.throws(() => leader.receive("n2", heartbeatOf(leader.raft.term)), InvariantError);
});

test("leader append-only: whatever peers answer, the leader's own log only grows", () => {
  const solo = new Solo({ log: "1/1 2/1" }).lead();
  for (const rejected of [3, 2, 1, 0, 9]) {
    const hint = { index: 0 as Index, term: 0 as Term };
    solo.receive("n2", { kind: "appendRejected", term: solo.raft.term, rejected: rejected as Index, hint });
    assert.equal(solo.positions(), "1/1 2/1 3/2");
  }
});

test("log matching: equal position with another chain value is divergence, and stops the node", () => {
  const forged = [entryOf(1, 1, 99), entryOf(2, 1, entryOf(1, 1, 99).chain)];
  const atPrevious = new Solo({ log: "1/1" });
  assert.throws(() => atPrevious.receive("n2", appendOf(2, forged.slice(0, 1), [])), /agree before it/);
  const inEntries = new Solo({ log: "1/1" });
  const message = { ...appendOf(2, [], forged), previousChain: 7 };
  assert.throws(() => inEntries.receive("n2", message), /agree before it/);
});

test("leader completeness: who lacks an entry that this node holds gets neither its vote nor its pre-vote", () => {
  const solo = new Solo({ log: "1/1 2/1" });
  solo.receive("n2", preVoteOf(5, "1/1"));
  assert.equal(solo.sentOf("preVoteAnswer")[0]?.message.granted, false);
  assert.equal(solo.receive("n2", voteOf(5, "1/1")).persist().sentOf("voteAnswer")[0]?.message.granted, false);
});

test("state machine safety: a committed entry is never replaced; who asks for it has diverged", () => {
  const solo = new Solo();
  appended(solo, "n2", appendOf(2, [], leaderLog, 3));
  const others = entriesOf("1/1 2/1 3/3");
  assert.throws(() => solo.receive("n3", appendOf(3, others.slice(0, 2), others.slice(2))), InvariantError);
});
