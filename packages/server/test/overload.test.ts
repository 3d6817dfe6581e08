/** What a leader does when more comes in than it can apply. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { encodeCommand } from "@holdfast/wire";
import type { ClientMessage, ServerMessage } from "@holdfast/wire";
import type { ClientConnection } from "../src/ports.js";
import { RefusedAcquires } from "../src/refused-acquires.js";
import { openSession } from "./virtual/opening.js";
import { VirtualCluster } from "./virtual/virtual-cluster.js";
import type { VirtualClient } from "./virtual/virtual-cluster.js";

const overloaded = { code: "overloaded" } as const;

describe("a leader with as much to apply as it takes", () => {
  for (const features of [[], ["refusedRuns"]]) {
    it(`refuses acquires, and nothing else, of a client ${features.length > 0 ? "with" : "without"} runs`, async () => {
      const cluster = new VirtualCluster({ unappliedEntriesMax: 100 });
      const leader = await cluster.leader();
      const client = cluster.client(leader, 0, features);
      const session = await open(client, 1);
      client.sendAll(acquire(session, 1));
      await client.expect("outcome", ({ request }) => request === 1);
      const flood = Array.from({ length: 500 }, (_, at) => acquire(session, 2 + at));
      client.sendAll(...flood, release(session, 502, 1), { kind: "keepalive", session, number: 1 });
      const other = cluster.client(leader);
      await open(other, 2);
      await client.expect("outcome", ({ request, outcome }) => request === 502 && outcome.kind === "released");
      await client.expect("acknowledged");
      const refused = refusedOf(client.received);
      const granted = outcomesOf(client).filter((request) => request > 1 && request < 502);
      assert.deepEqual([granted.length, refused.length], [100, 400]);
      assert.deepEqual(
        [...granted, ...refused].toSorted((a, b) => a - b),
        flood.map((_, at) => 2 + at),
      );
      // One by one in the share of 64 in which the limit is reached, then a run for each share.
      const answers = client.received.filter(({ kind }) => kind === "refused" || kind === "refusedRun");
      assert.equal(answers.length, features.length > 0 ? 28 + 6 : 400);
      // And takes them again.
      client.sendAll(acquire(session, refused[0] as number));
      await client.expect("outcome", ({ request }) => request === refused[0]);
      assert.deepEqual(cluster.errors, []);
    });
  }

  it("keeps its heartbeats, though what is committed at once takes long to apply", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const term = leader.host?.status().term;
    const client = cluster.client(leader);
    const session = await open(client, 1);
    for (const { host } of cluster.nodes) {
      const { events } = (host as unknown as { applier: { events: { onEffects(...told: unknown[]): void } } }).applier;
      const onEffects = events.onEffects.bind(events);
      events.onEffects = (...told) => {
        if (host === leader.host) cluster.clock.nowMs += 3;
        onEffects(...told);
      };
    }
    // 3 s of work.
    client.sendAll(...Array.from({ length: 1_000 }, (_, at) => acquire(session, 1 + at)));
    await client.expect("outcome", ({ request }) => request === 1_000);
    assert.deepEqual([leader.host?.status().role, leader.host?.status().term], ["leader", term]);
    assert.deepEqual(cluster.errors, []);
  });

  it("refuses none that its clients wait for one by one", async () => {
    const cluster = new VirtualCluster({ unappliedEntriesMax: 100 });
    const leader = await cluster.leader();
    const clients = Array.from({ length: 60 }, () => cluster.client(leader));
    const sessions = await Promise.all(clients.map((client, at) => open(client, at)));
    for (let request = 1; request <= 5; request += 1) {
      for (const [at, client] of clients.entries()) client.sendAll(acquire(sessions[at] as number, request));
      await Promise.all(clients.map((client) => client.expect("outcome", (told) => told.request === request)));
    }
    assert.ok(clients.every(({ received }) => received.every(({ kind }) => kind !== "refused")));
  });

  it("is no reason for a follower to say anything but who leads", async () => {
    const cluster = new VirtualCluster({ unappliedEntriesMax: 0 });
    const leader = await cluster.leader();
    const follower = cluster.nodes.find((node) => node !== leader);
    assert.ok(follower);
    const client = cluster.client(follower);
    client.sendAll(acquire(1, 1));
    const { refusal } = await client.expect("refused");
    assert.equal(refusal.code, "not_leader");
  });
});

describe("refused acquires", () => {
  it("of one session with neighbouring numbers share an answer", () => {
    const told = refusing(true, [
      acquire(7, 1),
      acquire(7, 2),
      acquire(7, 3),
      acquire(8, 4),
      acquire(8, 6),
      acquire(7, 7),
    ]);
    assert.deepEqual(told, [
      { kind: "refusedRun", session: 7, from: 1, to: 3, refusal: overloaded },
      single(8, 4),
      single(8, 6),
      single(7, 7),
    ]);
  });

  it("have an answer each for a client that knows no runs", () => {
    assert.deepEqual(refusing(false, [acquire(7, 1), acquire(7, 2)]), [single(7, 1), single(7, 2)]);
  });

  it("are acquires alone", () => {
    const refused = new RefusedAcquires(connectionOf([]), true);
    const opening = encodeCommand({ kind: "openSession", key: "a".repeat(32), ttlMs: 2_000, info: "" });
    for (const message of [
      release(7, 2, 1),
      { kind: "command", payload: opening } as const,
      { kind: "command", payload: new Uint8Array([0x9c, 0x03, 0xc0]) } as const,
      { kind: "keepalive", session: 7, number: 1 } as const,
    ]) {
      assert.equal(refused.take(message), false);
    }
  });
});

function refusing(takesRuns: boolean, messages: readonly ClientMessage[]): ServerMessage[] {
  const told: ServerMessage[] = [];
  const refused = new RefusedAcquires(connectionOf(told), takesRuns);
  for (const message of messages) assert.ok(refused.take(message));
  refused.end();
  return told;
}

function connectionOf(told: ServerMessage[]): ClientConnection {
  return { id: 1, remote: "", send: (message) => told.push(message), pause() {}, resume() {}, close() {} };
}

function single(session: number, request: number): ServerMessage {
  return { kind: "refused", session, request, id: null, key: null, refusal: overloaded };
}

function open(client: VirtualClient, at: number): Promise<number> {
  return openSession(client, at, 5_000);
}

function acquire(session: number, request: number): ClientMessage {
  const terms = { mode: "exclusive", slots: 0, wait: false, lockDelayMs: 0, maxHoldMs: 0, info: "" } as const;
  const names = [`lock ${session} ${request}`];
  const payload = encodeCommand({ kind: "acquire", session, request, settled: 1, seen: [], names, ...terms });
  return { kind: "command", payload };
}

function release(session: number, request: number, of: number): ClientMessage {
  const payload = encodeCommand({ kind: "release", session, request, settled: 1, seen: [], of, afterMs: 0 });
  return { kind: "command", payload };
}

function outcomesOf(client: VirtualClient): number[] {
  return client.received.flatMap((told) => (told.kind === "outcome" ? [told.request] : []));
}

function refusedOf(received: readonly ServerMessage[]): number[] {
  return received.flatMap((told) => {
    if (told.kind === "refused" && told.request !== null) return [told.request];
    if (told.kind !== "refusedRun") return [];
    return Array.from({ length: told.to - told.from + 1 }, (_, at) => told.from + at);
  });
}
