import assert from "node:assert/strict";
import { test } from "node:test";
import { configurationOf } from "./support/codec.js";
import { Solo } from "./support/solo.js";

function settledLeader(): Solo {
  const solo = new Solo().lead();
  return solo.accept("n2", 1).accept("n3", 1).clear();
}

function confirm(solo: Solo, id: number): Solo {
  return solo.step({ kind: "confirm", id });
}

function answer(solo: Solo, from: string, round: number): Solo {
  return solo.receive(from, { kind: "heartbeatAnswer", term: solo.raft.term, round });
}

function confirmed(solo: Solo): string[] {
  return solo.outputs.flatMap((output) => output.confirmed.map(({ id, index }) => `${id} at ${index}`));
}

function unconfirmed(solo: Solo): number[] {
  return solo.outputs.flatMap((output) => [...output.unconfirmed]);
}

test("a request is confirmed by a round that began after it, at the commitIndex of the round's start", () => {
  const solo = settledLeader();
  confirm(solo, 1);
  assert.deepEqual(
    solo.sentOf("heartbeat").map(({ to, message }) => [to, message.round]),
    [
      ["n2", 1],
      ["n3", 1],
    ],
  );
  solo.propose("x").persist().accept("n2", 2);
  answer(solo, "n2", 1);
  assert.deepEqual(confirmed(solo), ["1 at 1"]);
});

test("one round is in flight and one gathers: thousands share two rounds", () => {
  const solo = settledLeader();
  for (let id = 1; id <= 1_000; id += 1) confirm(solo, id);
  assert.equal(solo.sentOf("heartbeat").length, 2);
  answer(solo, "n2", 1);
  assert.deepEqual(confirmed(solo), ["1 at 1"]);
  assert.equal(solo.sentOf("heartbeat").length, 2);
  answer(solo, "n3", 2);
  assert.equal(confirmed(solo).length, 1_000);
});

test("an answer to an earlier round confirms no later one (etcd #20418)", () => {
  const solo = settledLeader();
  confirm(solo, 1);
  confirm(solo, 2);
  answer(solo, "n2", 1);
  answer(solo, "n2", 1);
  answer(solo, "n3", 1);
  assert.deepEqual(confirmed(solo), ["1 at 1"], "the answer of n3 is to the round before");
  answer(solo, "n3", 2);
  assert.deepEqual(confirmed(solo), ["1 at 1", "2 at 1"]);
});

test("a round never begun can't be answered", () => {
  const solo = settledLeader();
  confirm(solo, 1);
  answer(solo, "n2", 99);
  assert.deepEqual(confirmed(solo), []);
  answer(solo, "n2", 1);
  assert.deepEqual(confirmed(solo), ["1 at 1"]);
});

test("before an entry of the own term is committed nothing is confirmed; then the index covers it", () => {
  const solo = new Solo({ log: "1/1 2/1" }).lead().clear();
  confirm(solo, 1);
  solo.pass(100);
  answer(solo, "n2", 0);
  assert.deepEqual(confirmed(solo), []);
  solo.accept("n2", 3);
  answer(solo, "n2", 1);
  assert.deepEqual(confirmed(solo), ["1 at 3"]);
});

test("a timer's heartbeat repeats the round in flight under its number", () => {
  const solo = settledLeader();
  confirm(solo, 1).clear();
  solo.pass(100);
  assert.deepEqual(
    solo.sentOf("heartbeat").map(({ message }) => message.round),
    [1, 1],
  );
  answer(solo, "n3", 1);
  assert.deepEqual(confirmed(solo), ["1 at 1"]);
});

test("a round's heartbeats stand for the timer's: the next one is due a full interval later", () => {
  const solo = settledLeader();
  solo.pass(60);
  confirm(solo, 1).clear();
  solo.pass(60);
  assert.deepEqual(solo.sentOf("heartbeat"), []);
  solo.pass(40);
  assert.equal(solo.sentOf("heartbeat").length, 2);
});

test("requests come back unconfirmed when leadership is lost, those in flight and those that gather", () => {
  const solo = settledLeader();
  confirm(solo, 1);
  confirm(solo, 2);
  solo.pass(500);
  assert.equal(solo.raft.role, "follower");
  assert.deepEqual(unconfirmed(solo), [1, 2]);
  confirm(solo, 3);
  assert.deepEqual(unconfirmed(solo), [1, 2, 3]);
});

test("a sole voter confirms at once, after its first entry", () => {
  const solo = new Solo({ configuration: configurationOf(["n1"]) }).persist();
  confirm(solo, 1);
  assert.deepEqual(confirmed(solo), []);
  solo.persist();
  assert.deepEqual(confirmed(solo), ["1 at 1"]);
  confirm(solo, 2);
  assert.deepEqual(confirmed(solo), ["1 at 1", "2 at 1"]);
});

test("in a joint configuration a round needs both halves", () => {
  const solo = new Solo({ configuration: configurationOf(["n1", "n4", "n5"], [], ["n2", "n3"]) }).lead();
  for (const id of ["n2", "n3", "n4", "n5"]) solo.accept(id, 1);
  const change = { add: [], promote: ["n2", "n3"], remove: ["n4", "n5"] };
  solo.step({ kind: "changeMembers", id: 1, change, isForced: false }).persist();
  confirm(solo, 1);
  answer(solo, "n2", 1);
  assert.deepEqual(confirmed(solo), [], "n1 and n2 are a majority of the incoming half only");
  answer(solo, "n5", 1);
  assert.deepEqual(confirmed(solo), ["1 at 1"]);
});

/** The times of the heartbeats to n2 within `ms`, counted from now; n2 and n3 answer each. */
function heartbeatTimes(solo: Solo, ms: number): number[] {
  const start = solo.nowMs;
  const times: number[] = [];
  for (let at = 0; at < ms; at += 10) {
    solo.clear().pass(10);
    if (!solo.sentOf("heartbeat").some(({ to }) => to === "n2")) continue;
    times.push(solo.nowMs - start);
    for (const from of ["n2", "n3"]) answer(solo, from, 0);
  }
  return times;
}

test("a leader at rest beats half as often, and tells a new commitIndex within a heartbeat (decision 002)", () => {
  const solo = settledLeader();
  const rest = heartbeatTimes(solo, 1_000);
  const gaps = rest.slice(2).map((time, at) => time - (rest[at + 1] ?? 0));
  assert.deepEqual(new Set(gaps), new Set([200]));
  // Just after a heartbeat an entry is committed: the next one comes a heartbeat later, not two.
  solo.propose("x").persist().accept("n2", 2).accept("n3", 2);
  const [first = Number.NaN] = heartbeatTimes(solo, 300);
  assert.ok(first <= 100, `told after ${first} ms`);
  // While one peer lacks an entry there is something to say.
  solo.propose("y").persist().accept("n2", 3);
  const busy = heartbeatTimes(solo, 600);
  assert.deepEqual(new Set(busy.slice(1).map((time, at) => time - (busy[at] ?? 0))), new Set([100]));
});
