import assert from "node:assert/strict";
import { test } from "node:test";
import type { Term } from "../src/index.js";
import { configurationOf } from "./support/codec.js";
import { heartbeatOf, Solo, voteOf } from "./support/solo.js";

function settledLeader(): Solo {
  const solo = new Solo({ configuration: configurationOf(["n1", "n2", "n3"], [], ["n4"]) }).lead();
  return solo.accept("n2", 1).accept("n3", 1).clear();
}

function refusals(solo: Solo): string[] {
  return solo.outputs.flatMap((output) => output.refused.map(({ code }) => code));
}

test("the target is brought up to date before it is told", () => {
  const solo = settledLeader();
  solo.propose("x").clear();
  solo.step({ kind: "transfer", to: "n3" });
  assert.deepEqual(solo.sentOf("timeoutNow"), []);
  solo.accept("n3", 2);
  assert.deepEqual(
    solo.sentOf("timeoutNow").map(({ to, waited }) => [to, waited]),
    [["n3", false]],
  );
});

test("from the start of a transfer nothing is proposed or confirmed, and what waited comes back", () => {
  const solo = settledLeader();
  solo.step({ kind: "confirm", id: 1 }).step({ kind: "confirm", id: 2 });
  solo.step({ kind: "transfer", to: "n2" });
  solo.step({ kind: "confirm", id: 3 }).propose("x");
  solo.receive("n2", { kind: "heartbeatAnswer", term: solo.raft.term, round: 1 });
  assert.deepEqual(
    solo.outputs.flatMap((output) => [...output.unconfirmed]),
    [1, 2, 3],
  );
  assert.deepEqual(
    solo.outputs.flatMap((output) => [...output.confirmed]),
    [],
  );
  assert.deepEqual(refusals(solo), ["not_leader"]);
});

test("a transfer ends after an election timeout, and only a round that begins then lets the leader serve again (etcd #12704)", () => {
  const solo = settledLeader();
  solo.step({ kind: "confirm", id: 1 }).step({ kind: "transfer", to: "n2" });
  solo.pass(400).accept("n3", 1);
  solo.pass(100);
  assert.equal(solo.raft.role, "leader");
  assert.equal(solo.raft.status().transferTo, "n2", "its outcome is not known yet");
  // An answer to the round before the transfer proves nothing.
  solo.receive("n3", { kind: "heartbeatAnswer", term: solo.raft.term, round: 1 }).clear();
  solo.propose("early");
  assert.deepEqual(refusals(solo), ["not_leader"]);
  solo.receive("n3", { kind: "heartbeatAnswer", term: solo.raft.term, round: 2 });
  assert.equal(solo.raft.status().transferTo, null);
  solo.clear().propose("x").step({ kind: "confirm", id: 2 });
  assert.deepEqual(refusals(solo), []);
  solo.receive("n3", { kind: "heartbeatAnswer", term: solo.raft.term, round: 3 });
  assert.equal(solo.outputs.at(-1)?.confirmed[0]?.id, 2);
});

test("without a target named, the most up-to-date voter that was heard lately is chosen", () => {
  const target = (prepare: (solo: Solo) => void): string | null => {
    const solo = settledLeader();
    solo.propose("x");
    prepare(solo);
    return solo.step({ kind: "transfer", to: null }).raft.status().transferTo;
  };
  assert.equal(
    target((solo) => solo.accept("n3", 2)),
    "n3",
  );
  assert.equal(
    target((solo) => solo.accept("n4", 2)),
    "n2",
    "not the learner",
  );
  assert.equal(
    target((solo) => {
      solo.accept("n3", 2).pass(300);
      solo.accept("n2", 1).pass(300);
    }),
    "n2",
    "n3 was not heard for an election timeout",
  );
});

test("who can't take over is no target, and a second transfer waits for the end of the first", () => {
  for (const to of ["n1", "n4", "n9"]) {
    assert.equal(settledLeader().step({ kind: "transfer", to }).raft.status().transferTo, null, to);
  }
  const solo = settledLeader();
  solo.step({ kind: "transfer", to: "n2" }).step({ kind: "transfer", to: "n3" });
  assert.equal(solo.raft.status().transferTo, "n2");
  assert.equal(new Solo().step({ kind: "transfer", to: "n2" }).raft.role, "follower");
});

test("who is told to take over asks for votes at once, without a pre-vote, and says why", () => {
  const solo = new Solo();
  solo.receive("n2", heartbeatOf(1)).persist().clear();
  solo.receive("n2", { kind: "timeoutNow", term: 1 as Term }).persist();
  assert.deepEqual([solo.raft.role, solo.raft.term], ["candidate", 2]);
  assert.deepEqual(
    solo.sentOf("vote").map(({ message }) => message.transfer),
    [true, true],
  );
});

test("a node whose disk write is overdue doesn't take over", () => {
  const solo = new Solo();
  solo.receive("n2", heartbeatOf(1));
  solo.nowMs += 1_000;
  solo.receive("n2", { kind: "timeoutNow", term: 1 as Term });
  assert.equal(solo.raft.role, "follower");
});

test("a late timeoutNow, or one that is not the leader's, is ignored", () => {
  const solo = new Solo();
  solo.receive("n2", heartbeatOf(2)).persist();
  solo.receive("n2", { kind: "timeoutNow", term: 1 as Term }).receive("n3", { kind: "timeoutNow", term: 2 as Term });
  assert.equal(solo.raft.role, "follower");
});

test("the old leader votes for its successor, and steps down", () => {
  const solo = settledLeader();
  solo.step({ kind: "transfer", to: "n2" }).clear();
  solo.receive("n2", voteOf(2, "1/1", true)).persist();
  assert.deepEqual([solo.raft.role, solo.raft.votedFor], ["follower", "n2"]);
  assert.equal(solo.sentOf("voteAnswer")[0]?.message.granted, true);
});
