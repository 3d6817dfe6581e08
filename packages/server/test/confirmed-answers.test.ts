import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { encodeCommand } from "@holdfast/wire";
import { ConfirmedAnswers } from "../src/confirmed-answers.js";
import { QuorumRounds } from "../src/quorum-rounds.js";
import { electionTimeoutMs, VirtualCluster } from "./virtual/virtual-cluster.js";
import type { VirtualClient, VirtualNode } from "./virtual/virtual-cluster.js";

/** Confirmed at once. */
function answersOf(names: string): { answers: ConfirmedAnswers; told: string[] } {
  const rounds = new QuorumRounds();
  const answers = new ConfirmedAnswers(rounds);
  const told: string[] = [];
  for (const name of names)
    answers.gather(
      () => told.push(name),
      () => told.push(`no ${name}`),
    );
  rounds.onConfirmed(rounds.begin(0) ?? 0, 1);
  assert.deepEqual(told, []);
  rounds.onApplied(1);
  return { answers, told };
}

describe("confirmed answers", () => {
  it("are given in their order until the turn is long, one at least", () => {
    const { answers, told } = answersOf("abcd");
    answers.give(() => told.length === 3);
    assert.deepEqual(told, ["a", "b", "c"]);
    assert.equal(answers.isEmpty, false);
    answers.give(() => true);
    assert.deepEqual(told, ["a", "b", "c", "d"]);
    assert.equal(answers.isEmpty, true);
    answers.give(() => true);
    assert.equal(told.length, 4);
  });

  it("tell whether all up to one of them are given", () => {
    const { answers } = answersOf("abc");
    assert.deepEqual([answers.newest, answers.hasGiven(0), answers.hasGiven(1)], [3, true, false]);
    answers.give(() => true);
    assert.deepEqual([answers.newest, answers.hasGiven(1), answers.hasGiven(2)], [3, true, false]);
    answers.give(() => false);
    assert.deepEqual([answers.newest, answers.hasGiven(3)], [3, true]);
  });

  it("fail when leadership is lost before their turn", () => {
    const { answers, told } = answersOf("abc");
    answers.give(() => true);
    answers.failAll();
    assert.deepEqual(told, ["a", "no b", "no c"]);
    assert.equal(answers.hasGiven(3), true);
  });
});

const count = 400;
/** For each session: much more than the leases last, in all. */
const resumeMs = 15;
const ttlMs = 2_000;
const keyOf = (at: number): string => at.toString(16).padStart(32, "0");

/** A leader for which it takes `resumeMs` to tell what a session holds, and its sessions. */
async function slowAtResuming(): Promise<{ cluster: VirtualCluster; leader: VirtualNode; sessions: number[] }> {
  const cluster = new VirtualCluster();
  const leader = await cluster.leader();
  const sessions = await Promise.all(
    Array.from({ length: count }, async (_, at) => {
      const client = cluster.client(leader);
      const key = keyOf(at);
      client.sendAll({ kind: "command", payload: encodeCommand({ kind: "openSession", key, ttlMs, info: "" }) });
      return (await client.expect("sessionOpened")).session;
    }),
  );
  const { machine } = (leader.host as unknown as { applier: { machine: { resumeView(...of: unknown[]): unknown } } })
    .applier;
  const resumeView = machine.resumeView.bind(machine);
  machine.resumeView = (...of) => {
    cluster.clock.nowMs += resumeMs;
    return resumeView(...of);
  };
  return { cluster, leader, sessions };
}

function resumeAll(cluster: VirtualCluster, leader: VirtualNode, sessions: readonly number[]): VirtualClient[] {
  assert.ok(count * resumeMs > 2 * electionTimeoutMs && count * resumeMs > ttlMs);
  return sessions.map((session, at) => {
    const client = cluster.client(leader);
    client.sendAll({ kind: "resume", session, key: keyOf(at) }, { kind: "keepalive", session, number: 1 });
    return client;
  });
}

describe("a leader to which all clients come at once", () => {
  it("leads on while it tells them what they hold", async () => {
    const { cluster, leader, sessions } = await slowAtResuming();
    const term = leader.host?.status().term;
    const clients = resumeAll(cluster, leader, sessions);
    await Promise.all(clients.map((client) => client.expect("resumed")));
    assert.deepEqual([leader.host?.status().role, leader.host?.status().term], ["leader", term]);
    assert.deepEqual(cluster.errors, []);
  });

  it("ends no session whose keepalive waits behind its resume", async () => {
    const { cluster, leader, sessions } = await slowAtResuming();
    const clients = resumeAll(cluster, leader, sessions);
    await Promise.all(clients.map((client) => client.expect("acknowledged", ({ number }) => number === 1)));
    for (const { received } of clients) {
      const kinds = received.map(({ kind }) => kind);
      assert.ok(!kinds.slice(0, kinds.indexOf("acknowledged")).includes("sessionEnded"));
    }
    assert.deepEqual(cluster.errors, []);
  });
});
