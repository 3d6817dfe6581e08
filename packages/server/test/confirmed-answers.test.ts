import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { LockMachine } from "@holdfast/lock";
import { ConfirmedAnswers } from "../src/confirmed-answers.js";
import { QuorumRounds } from "../src/quorum-rounds.js";
import { key, openSession } from "./virtual/opening.js";
import { electionTimeoutMs, VirtualCluster } from "./virtual/virtual-cluster.js";
import type { VirtualClient, VirtualNode } from "./virtual/virtual-cluster.js";

/** Confirmed at once. */
function answersOf(names: string): { answers: ConfirmedAnswers; told: string[] } {
  const rounds = new QuorumRounds();
  const answers = new ConfirmedAnswers(rounds);
  const told: string[] = [];
  for (const name of names)
    answers.gatherForLease(
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
    assert.deepEqual([answers.newestOfLeases, answers.hasGiven(0), answers.hasGiven(1)], [3, true, false]);
    answers.give(() => true);
    assert.deepEqual([answers.newestOfLeases, answers.hasGiven(1), answers.hasGiven(2)], [3, true, false]);
    answers.give(() => false);
    assert.deepEqual([answers.newestOfLeases, answers.hasGiven(3)], [3, true]);
  });

  it("of leases go before questions, of which one at least is answered", () => {
    const rounds = new QuorumRounds();
    const answers = new ConfirmedAnswers(rounds);
    const told: string[] = [];
    const fail = (): void => {};
    for (const name of ["q1", "q2", "q3"]) answers.gather(() => told.push(name), fail);
    for (const name of ["a", "b"]) answers.gatherForLease(() => told.push(name), fail);
    answers.gatherExpiry(() => told.push("expiry"), fail);
    rounds.onConfirmed(rounds.begin(0) ?? 0, 1);
    rounds.onApplied(1);
    assert.equal(answers.newestOfLeases, 3);
    answers.give(() => told.length >= 2);
    assert.deepEqual(told, ["a", "b", "q1"]);
    answers.give(() => true);
    assert.deepEqual(told, ["a", "b", "q1", "expiry", "q2"]);
    answers.give(() => false);
    assert.equal(answers.isEmpty, true);
  });

  it("fail when leadership is lost before their turn", () => {
    const { answers, told } = answersOf("abc");
    answers.give(() => true);
    answers.failAll();
    assert.deepEqual(told, ["a", "no b", "no c"]);
    assert.equal(answers.hasGiven(3), true);
  });
});

interface Keeper {
  readonly leases: ReadonlyMap<number, { readonly heardAt: number; readonly unitMs: number }>;
  readonly heap: { push(at: number, deadline: object): void };
}

const count = 400;
/** For each session: much more than the leases last, in all. */
const resumeMs = 15;
const ttlMs = 2_000;

function applierOf(node: VirtualNode): { machine: LockMachine } {
  return (node.host as unknown as { applier: { machine: LockMachine } }).applier;
}

/** A look of that kind takes so long there. */
function slowDown(
  cluster: VirtualCluster,
  node: VirtualNode,
  kind: "resumeView" | "list" | "lockView",
  ms: number,
): void {
  const { machine } = applierOf(node);
  const looks = machine as unknown as Record<string, (...of: unknown[]) => unknown>;
  const look = looks[kind]?.bind(machine);
  looks[kind] = (...of) => {
    cluster.clock.nowMs += ms;
    return look?.(...of);
  };
}

/** A leader for which it takes `resumeMs` to tell what a session holds, and its sessions. */
async function slowAtResuming(): Promise<{ cluster: VirtualCluster; leader: VirtualNode; sessions: number[] }> {
  const cluster = new VirtualCluster();
  const leader = await cluster.leader();
  const sessions = await Promise.all(
    Array.from({ length: count }, (_, at) => openSession(cluster.client(leader), at, ttlMs)),
  );
  slowDown(cluster, leader, "resumeView", resumeMs);
  return { cluster, leader, sessions };
}

function resumeAll(cluster: VirtualCluster, leader: VirtualNode, sessions: readonly number[]): VirtualClient[] {
  assert.ok(count * resumeMs > 2 * electionTimeoutMs && count * resumeMs > ttlMs);
  return sessions.map((session, at) => {
    const client = cluster.client(leader);
    client.sendAll({ kind: "resume", session, key: key(at) }, { kind: "keepalive", session, number: 1 });
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

  it("answers a quiet client's resume beside another's flood of questions", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const session = await openSession(cluster.client(leader), 1, 4_000);
    slowDown(cluster, leader, "list", 5);
    const flood = cluster.client(leader);
    const query = { kind: "list", prefix: "", after: "", limit: 1_000 } as const;
    flood.sendAll(...Array.from({ length: 1_000 }, (_, at) => ({ kind: "query", id: at + 1, query }) as const));
    await cluster.clock.pass(10);
    const fromMs = cluster.clock.nowMs;
    const client = cluster.client(leader);
    client.sendAll({ kind: "resume", session, key: key(1) }, { kind: "keepalive", session, number: 1 });
    await client.expect("acknowledged");
    assert.ok(cluster.clock.nowMs - fromMs < 500, `after ${cluster.clock.nowMs - fromMs} ms`);
    assert.ok(flood.received.filter(({ kind }) => kind === "answer").length < 200);
  });

  it("ends a dead session in its time beside a flood of questions", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const session = await openSession(cluster.client(leader), 1, ttlMs);
    slowDown(cluster, leader, "lockView", 11);
    const fromMs = cluster.clock.nowMs;
    const query = { kind: "inspect", name: "doc" } as const;
    const asker = cluster.client(leader);
    asker.sendAll(...Array.from({ length: 900 }, (_, at) => ({ kind: "query", id: at + 1, query }) as const));
    const { machine } = applierOf(leader);
    await cluster.clock.until("it ends", () => machine.sessionView(session) === null, 20_000);
    // P6.
    assert.ok(cluster.clock.nowMs - fromMs <= 2 * ttlMs + 3 * electionTimeoutMs, `${cluster.clock.nowMs - fromMs} ms`);
  });

  it("answers all of them though nothing else brings a turn, and none when it leads no more", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    slowDown(cluster, leader, "lockView", 11);
    const query = { kind: "inspect", name: "doc" } as const;
    const client = cluster.client(leader);
    const fromMs = cluster.clock.nowMs;
    client.sendAll(...Array.from({ length: 20 }, (_, at) => ({ kind: "query", id: at + 1, query }) as const));
    await client.expect("answer", ({ id }) => id === 20);
    assert.ok(cluster.clock.nowMs - fromMs < 20 * 11 + 50, `${cluster.clock.nowMs - fromMs} ms`);
    const other = cluster.client(leader);
    other.sendAll(...Array.from({ length: 300 }, (_, at) => ({ kind: "query", id: at + 1, query }) as const));
    await other.expect("answer");
    cluster.isolate(leader);
    await other.expect("refused", ({ refusal }) => refusal.code === "not_leader");
    await cluster.clock.pass(5_000);
    const ends = other.received.filter(({ kind }) => kind === "answer" || kind === "refused");
    assert.equal(ends.length, 300);
  });

  it("ends no session whose keepalive was read in time, behind a resume whose round was under way", async () => {
    // One way takes 15 ms, and so does telling what a session holds.
    const cluster = new VirtualCluster({ delayFor: () => 15 });
    const leader = await cluster.leader();
    const slow = await Promise.all([1, 2, 3, 4, 5, 6].map((at) => openSession(cluster.client(leader), at, 600_000)));
    const victim = await openSession(cluster.client(leader), 7, ttlMs);
    const { keeper } = leader.host as unknown as { keeper: Keeper };
    const lease = keeper.leases.get(victim);
    assert.ok(lease !== undefined);
    const deadlineMs = lease.heardAt + 8 * lease.unitMs;
    // Another deadline sets the mark while the slow answers wait, before the victim's round is confirmed.
    keeper.heap.push(deadlineMs + 25, { kind: "hold", session: victim, of: 99, token: 99 });
    slowDown(cluster, leader, "resumeView", 15);
    const clients = slow.map(() => cluster.client(leader));
    const client = cluster.client(leader);
    await cluster.clock.pass(deadlineMs - 12 - cluster.clock.nowMs);
    for (const [at, each] of clients.entries())
      each.sendAll({ kind: "resume", session: slow[at] as number, key: key(at + 1) });
    await cluster.clock.pass(4);
    client.sendAll({ kind: "resume", session: victim, key: key(7) }, { kind: "keepalive", session: victim, number: 1 });
    await cluster.clock.pass(3);
    assert.ok(cluster.clock.nowMs < deadlineMs);
    await cluster.clock.pass(1_000);
    assert.deepEqual(
      client.received.map(({ kind }) => kind),
      ["welcome", "resumed", "acknowledged"],
    );
  });
});
