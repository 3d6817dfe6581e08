import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { encodeCommand } from "@holdfast/wire";
import type { Command } from "@holdfast/lock";
import { key, openSession } from "./virtual/opening.js";
import { electionTimeoutMs, VirtualCluster } from "./virtual/virtual-cluster.js";
import type { VirtualClient } from "./virtual/virtual-cluster.js";

function command(client: VirtualClient, value: Command): void {
  client.sendAll({ kind: "command", payload: encodeCommand(value) });
}

function open(client: VirtualClient, at: number, ttlMs = 5_000): Promise<number> {
  return openSession(client, at, ttlMs, `client ${at}`);
}

function acquire(client: VirtualClient, session: number, request: number, name: string, wait = true): void {
  const request_ = { session, request, settled: 1, seen: [] };
  const acquire_ = {
    names: [name],
    mode: "exclusive",
    slots: 0,
    wait,
    lockDelayMs: 0,
    maxHoldMs: 0,
    info: "",
  } as const;
  command(client, { kind: "acquire", ...request_, ...acquire_ });
}

async function granted(client: VirtualClient, session: number, request: number): Promise<number> {
  const test = (message: { session: number; request: number; outcome: { kind: string } }): boolean =>
    message.session === session && message.request === request && message.outcome.kind === "granted";
  const { outcome } = await client.expect("outcome", test);
  return outcome.kind === "granted" ? (outcome.grants[0]?.token ?? -1) : -1;
}

function healthy(cluster: VirtualCluster): void {
  assert.deepEqual(cluster.errors, []);
}

describe("node host: grants", () => {
  it("grants through the log, pushes the grant after a release, and tells a follower's client who leads", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const one = cluster.client(leader);
    const two = cluster.client(leader);
    const [a, b] = [await open(one, 1), await open(two, 2)];
    acquire(one, a, 1, "doc");
    const token = await granted(one, a, 1);
    acquire(two, b, 1, "doc");
    await two.expect("outcome", ({ outcome }) => outcome.kind === "waiting" && outcome.holder?.token === token);
    command(one, { kind: "release", session: a, request: 2, settled: 2, seen: [], of: 1, afterMs: 0 });
    assert.ok((await granted(two, b, 1)) > token);
    const follower = cluster.nodes.find((node) => node !== leader);
    assert.ok(follower);
    const lost = cluster.client(follower);
    assert.equal((await lost.expect("welcome")).leader?.id, leader.id);
    command(lost, { kind: "openSession", key: key(3), ttlMs: 5_000, info: "" });
    const refused = await lost.expect("refused", (message) => message.key === key(3));
    assert.equal(refused.refusal.code, "not_leader");
    healthy(cluster);
  });

  it("a sole node serves alone", async () => {
    const cluster = new VirtualCluster({ nodes: 1 });
    const leader = await cluster.leader();
    const client = cluster.client(leader);
    const session = await open(client, 1);
    acquire(client, session, 1, "doc");
    assert.ok((await granted(client, session, 1)) > session);
    client.sendAll({ kind: "keepalive", session, number: 1 });
    await client.expect("acknowledged", ({ number }) => number === 1);
    healthy(cluster);
  });

  it("hands a session over to the newest resume, and lists what it holds", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const one = cluster.client(leader);
    const session = await open(one, 1);
    acquire(one, session, 1, "doc");
    const token = await granted(one, session, 1);
    const two = cluster.client(leader);
    two.sendAll({ kind: "resume", session, key: key(1) }, { kind: "keepalive", session, number: 7 });
    acquire(two, session, 2, "other");
    const resumed = await two.expect("resumed");
    assert.deepEqual(resumed.holds, [{ request: 1, grants: [{ name: "doc", token, slot: null }], maxHoldMs: 0 }]);
    await one.expect("superseded");
    assert.equal(one.closed, "4001 superseded");
    await two.expect("acknowledged", ({ number }) => number === 7);
    await granted(two, session, 2);
    assert.equal(
      two.received.findIndex(({ kind }) => kind === "resumed") <
        two.received.findIndex(({ kind }) => kind === "outcome"),
      true,
    );
    const thief = cluster.client(leader);
    thief.sendAll({ kind: "resume", session, key: key(99) });
    assert.equal((await thief.expect("refused")).refusal.code, "session_gone");
    acquire(one, session, 3, "late");
    assert.equal((await one.expect("refused", (message) => message.request === 3)).refusal.code, "invalid_argument");
    healthy(cluster);
  });

  it("opens at most 1,024 sessions on one connection, however fast they are asked for", async () => {
    const cluster = new VirtualCluster();
    const client = cluster.client(await cluster.leader());
    await client.expect("welcome");
    for (let at = 1; at <= 1_100; at += 1) {
      command(client, { kind: "openSession", key: key(at), ttlMs: 5_000, info: "" });
    }
    await client.expect("refused", (message) => message.key === key(1_025) && message.refusal.code === "overloaded");
    await client.expect("sessionOpened", (message) => message.key === key(1_024));
    assert.equal(client.received.filter(({ kind }) => kind === "sessionOpened").length, 1_024);
    healthy(cluster);
  });

  it("refuses acquires with `overloaded` when nothing commits, and still lets a release in", async () => {
    const cluster = new VirtualCluster({ uncommittedBytesMax: 2_000 });
    const leader = await cluster.leader();
    const client = cluster.client(leader);
    const session = await open(client, 1);
    acquire(client, session, 1, "doc");
    await granted(client, session, 1);
    for (const node of cluster.nodes) if (node !== leader) node.clock.pause(electionTimeoutMs / 2);
    for (let request = 2; request < 200; request += 1) acquire(client, session, request, `doc ${request}`);
    command(client, { kind: "release", session, request: 200, settled: 1, seen: [], of: 1, afterMs: 0 });
    await client.expect("refused", ({ refusal }) => refusal.code === "overloaded");
    await client.expect("outcome", ({ request, outcome }) => request === 200 && outcome.kind === "released");
    healthy(cluster);
  });
});

describe("node host: failover", () => {
  it("a waiter is granted by the next leader, with the same request number and one effect", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const one = cluster.client(leader);
    const two = cluster.client(leader);
    const [a, b] = [await open(one, 1), await open(two, 2)];
    acquire(one, a, 1, "doc");
    const token = await granted(one, a, 1);
    acquire(two, b, 1, "doc");
    await two.expect("outcome", ({ outcome }) => outcome.kind === "waiting");
    const killedAt = cluster.clock.nowMs;
    cluster.kill(leader);
    const next = await cluster.leader();
    assert.ok(cluster.clock.nowMs - killedAt < 200, `fast failover took ${cluster.clock.nowMs - killedAt} ms`);
    const oneAgain = cluster.client(next);
    const twoAgain = cluster.client(next);
    oneAgain.sendAll({ kind: "resume", session: a, key: key(1) });
    twoAgain.sendAll({ kind: "resume", session: b, key: key(2) });
    acquire(twoAgain, b, 1, "doc");
    assert.deepEqual((await twoAgain.expect("resumed")).waiting, [1]);
    assert.equal((await oneAgain.expect("resumed")).holds[0]?.grants[0]?.token, token);
    command(oneAgain, { kind: "release", session: a, request: 2, settled: 2, seen: [], of: 1, afterMs: 0 });
    const second = await granted(twoAgain, b, 1);
    assert.ok(second > token);
    const grants = new Set(
      twoAgain.received.flatMap((m) =>
        m.kind === "outcome" && m.outcome.kind === "granted" ? [m.outcome.grants[0]?.token] : [],
      ),
    );
    assert.deepEqual([...grants], [second]);
    healthy(cluster);
  });

  it("an isolated leader acknowledges nothing, answers no read, and steps down", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const client = cluster.client(leader);
    const session = await open(client, 1);
    client.sendAll({ kind: "keepalive", session, number: 1 });
    await client.expect("acknowledged");
    cluster.isolate(leader);
    client.sendAll(
      { kind: "keepalive", session, number: 2 },
      { kind: "query", id: 5, query: { kind: "inspect", name: "doc" } },
    );
    await client.expect("leader", (message) => message.leader?.id !== leader.id);
    assert.ok(!client.received.some((message) => message.kind === "acknowledged" && message.number === 2));
    assert.ok(!client.received.some((message) => message.kind === "answer"));
    assert.equal((await client.expect("refused", (message) => message.id === 5)).refusal.code, "not_leader");
    const next = await cluster.leader();
    assert.notEqual(next, leader);
    cluster.heal();
    await cluster.clock.pass(3 * electionTimeoutMs);
    assert.equal(await cluster.leader(), next, "its return disturbs nobody");
    healthy(cluster);
  });

  it("a leader paused beyond TTL ends no session when it wakes", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const client = cluster.client(leader);
    const session = await open(client, 1, 2_000);
    leader.clock.pause(7_000);
    const next = await cluster.leader();
    const again = cluster.client(next);
    again.sendAll({ kind: "resume", session, key: key(1) });
    for (let number = 1; number <= 12; number += 1) {
      again.sendAll({ kind: "keepalive", session, number });
      await again.expect("acknowledged", (message) => message.number === number);
      await cluster.clock.pass(600);
    }
    assert.ok(!again.received.some((message) => message.kind === "sessionEnded"));
    assert.equal(next.host?.status().sessions, 1);
    healthy(cluster);
  });

  it("all nodes paused beyond TTL: buffered keepalives are read before any expiry is decided", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const client = cluster.client(leader);
    const session = await open(client, 1, 2_000);
    for (const node of cluster.nodes) node.clock.pause(10_000);
    client.sendAll({ kind: "keepalive", session, number: 1 });
    await cluster.clock.pass(10_001);
    const next = await cluster.leader();
    const again = cluster.client(next);
    again.sendAll({ kind: "resume", session, key: key(1) }, { kind: "keepalive", session, number: 2 });
    await again.expect("acknowledged", (message) => message.number === 2);
    healthy(cluster);
  });

  it("SIGTERM: leadership moves before the node stops", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const startedAt = cluster.clock.nowMs;
    const client = cluster.client(leader);
    await client.expect("welcome");
    const stopping = leader.host?.transferAndStop();
    const moved = await client.expect(
      "leader",
      (message) => message.leader !== null && message.leader.id !== leader.id,
    );
    assert.ok(cluster.clock.nowMs - startedAt < 100, `${cluster.clock.nowMs - startedAt} ms`);
    await stopping;
    await cluster.clock.pass(10);
    assert.deepEqual(leader.stopped, { kind: "asked" });
    cluster.kill(leader);
    assert.equal((await cluster.leader()).id, moved.leader?.id);
    healthy(cluster);
  });
});

describe("node host: expiry and restart", () => {
  it("a dead holder's lock passes to the waiter between TTL and 2 x TTL + 3 ET", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const [one, two] = [cluster.client(leader), cluster.client(leader)];
    const [a, b] = [await open(one, 1, 5_000), await open(two, 2, 60_000)];
    acquire(one, a, 1, "doc");
    await granted(one, a, 1);
    one.sendAll({ kind: "keepalive", session: a, number: 1 });
    const sentAt = cluster.clock.nowMs;
    await one.expect("acknowledged");
    acquire(two, b, 1, "doc");
    await granted(two, b, 1);
    const waited = cluster.clock.nowMs - sentAt;
    assert.ok(waited >= 5_000 && waited <= 2 * 5_000 + 3 * electionTimeoutMs, `${waited} ms`);
    await one.expect("sessionEnded", ({ reason }) => reason === "expired");
    healthy(cluster);
  });

  it("all nodes killed and started: holds stay with their tokens", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const client = cluster.client(leader);
    const session = await open(client, 1);
    acquire(client, session, 1, "doc");
    const token = await granted(client, session, 1);
    for (const node of cluster.nodes) cluster.kill(node, false);
    for (const node of cluster.nodes) cluster.start(node);
    const next = await cluster.leader();
    const again = cluster.client(next);
    again.sendAll({ kind: "resume", session, key: key(1) });
    assert.equal((await again.expect("resumed")).holds[0]?.grants[0]?.token, token);
    healthy(cluster);
  });

  it("snapshots: a node that was away gets one, and all states are equal", async () => {
    const cluster = new VirtualCluster({ snapshotEntries: 50 });
    const leader = await cluster.leader();
    const away = cluster.nodes.find((node) => node !== leader);
    assert.ok(away);
    cluster.kill(away, false);
    const client = cluster.client(leader);
    const session = await open(client, 1, 600_000);
    for (let request = 1; request <= 400; request += 1) {
      const carried = { session, request, settled: Math.max(1, request - 3), seen: [] };
      const asked = {
        mode: "shared",
        slots: 0,
        wait: true,
        lockDelayMs: 0,
        maxHoldMs: 0,
        info: "x".repeat(200),
      } as const;
      command(client, { kind: "acquire", ...carried, ...asked, names: [`doc ${request % 90}`] });
      if (request % 20 === 0) await granted(client, session, request);
    }
    await cluster.clock.until("the log was compacted", () => (leader.host?.status().snapshotIndex ?? 0) > 300, 10_000);
    cluster.start(away);
    await cluster.converged();
    assert.ok((away.host?.status().snapshotIndex ?? 0) > 300, "it was given a snapshot");
    cluster.kill(away, false);
    cluster.start(away);
    await cluster.converged();
    healthy(cluster);
  });
});
