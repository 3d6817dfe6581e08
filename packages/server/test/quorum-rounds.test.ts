import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { QuorumRounds } from "../src/quorum-rounds.js";
import { openSession } from "./virtual/opening.js";
import { VirtualCluster } from "./virtual/virtual-cluster.js";

function tellTo(told: string[], name: string): [() => void, () => void] {
  return [() => told.push(name), () => told.push(`no ${name}`)];
}

/** It is confirmed, and all is applied that it vouches for. */
function settle(rounds: QuorumRounds, id: number): void {
  rounds.onConfirmed(id, 1);
  rounds.onApplied(1);
}

describe("quorum rounds", () => {
  it("are ready when they are confirmed and what they vouch for is applied", () => {
    const rounds = new QuorumRounds();
    const told: string[] = [];
    assert.equal(rounds.begin(0), null);
    rounds.gather(...tellTo(told, "a"));
    rounds.gather(...tellTo(told, "b"));
    const first = rounds.begin(0) as number;
    rounds.gather(...tellTo(told, "c"));
    const second = rounds.begin(0) as number;
    rounds.onConfirmed(first, 5);
    rounds.onApplied(4);
    assert.deepEqual(told, []);
    rounds.onApplied(5);
    assert.deepEqual(told, ["a", "b"]);
    rounds.onUnconfirmed(second);
    assert.deepEqual(told, ["a", "b", "no c"]);
  });

  it("begin at once for what has time, and then not within 20 ms", () => {
    const rounds = new QuorumRounds();
    const told: string[] = [];
    rounds.gatherPatiently(...tellTo(told, "a"));
    const first = rounds.begin(1_000) as number;
    assert.equal(rounds.nextDeadlineMs(), Number.POSITIVE_INFINITY);
    rounds.gatherPatiently(...tellTo(told, "b"));
    assert.equal(rounds.begin(1_000), null);
    assert.equal(rounds.begin(1_019.9), null);
    assert.equal(rounds.nextDeadlineMs(), 1_020);
    settle(rounds, first);
    // It began after a's round.
    assert.deepEqual(told, ["a"]);
    const second = rounds.begin(1_020) as number;
    settle(rounds, second);
    assert.deepEqual(told, ["a", "b"]);
  });

  it("take along what has time, when another asks for one", () => {
    const rounds = new QuorumRounds();
    const told: string[] = [];
    rounds.gatherPatiently(...tellTo(told, "a"));
    rounds.begin(1_000);
    rounds.gatherPatiently(...tellTo(told, "b"));
    rounds.gather(...tellTo(told, "c"));
    const round = rounds.begin(1_001) as number;
    settle(rounds, round);
    assert.deepEqual(told, ["c", "b"]);
    assert.equal(rounds.nextDeadlineMs(), Number.POSITIVE_INFINITY);
  });

  it("fail with the leadership, each once", () => {
    const rounds = new QuorumRounds();
    const told: string[] = [];
    rounds.gatherPatiently(...tellTo(told, "in flight"));
    rounds.begin(1_000);
    rounds.gather(...tellTo(told, "unapplied"));
    rounds.onConfirmed(rounds.begin(1_001) as number, 9);
    rounds.gatherPatiently(...tellTo(told, "patient"));
    rounds.gather(...tellTo(told, "gathering"));
    rounds.failAll();
    assert.deepEqual(told.toSorted(), ["no gathering", "no in flight", "no patient", "no unapplied"]);
    assert.equal(rounds.begin(2_000), null);
    assert.equal(rounds.nextDeadlineMs(), Number.POSITIVE_INFINITY);
  });
});

describe("a leader", () => {
  it("confirms keepalives of twenty moments in a few rounds, and keeps none waiting", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const clients = Array.from({ length: 20 }, () => cluster.client(leader));
    const sessions: number[] = [];
    for (const [at, client] of clients.entries()) {
      sessions.push(await openSession(client, at, 60_000));
    }
    await cluster.clock.pass(1_000);
    const { rounds } = leader.host as unknown as { rounds: { nextId: number } };
    const before = rounds.nextId;
    for (const [at, client] of clients.entries()) {
      client.sendAll({ kind: "keepalive", session: sessions[at] as number, number: 1 });
      await cluster.clock.pass(1);
    }
    const last = clients.at(-1);
    assert.ok(last !== undefined);
    const fromMs = cluster.clock.nowMs;
    await last.expect("acknowledged");
    await Promise.all(clients.map((client) => client.expect("acknowledged")));
    assert.ok(rounds.nextId - before <= 3, `${rounds.nextId - before} rounds`);
    assert.ok(cluster.clock.nowMs - fromMs <= 30, `${cluster.clock.nowMs - fromMs} ms`);
  });
});
