/** Watches at whole nodes over a virtual network. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Command } from "@holdfast/lock";
import { encodeCommand, limits } from "@holdfast/wire";
import type { ServerMessage } from "@holdfast/wire";
import { VirtualCluster } from "./virtual/virtual-cluster.js";
import type { VirtualClient } from "./virtual/virtual-cluster.js";

const asked = { settled: 1, seen: [] as readonly number[] };
const plain = { mode: "exclusive", slots: 0, wait: true, lockDelayMs: 0, maxHoldMs: 0, info: "" } as const;

function command(client: VirtualClient, value: Command): void {
  client.sendAll({ kind: "command", payload: encodeCommand(value) });
}

async function open(client: VirtualClient): Promise<number> {
  command(client, { kind: "openSession", key: "a".repeat(32), ttlMs: 60_000, info: "" });
  return (await client.expect("sessionOpened")).session;
}

/** Takes and gives back, in requests `request` and the one after it; resolves when both are applied. */
async function cycle(client: VirtualClient, session: number, request: number, name: string): Promise<void> {
  command(client, { kind: "acquire", session, request, ...asked, names: [name], ...plain });
  command(client, { kind: "release", session, request: request + 1, ...asked, of: request, afterMs: 0 });
  await client.expect("outcome", (message) => message.request === request + 1);
}

function told({ received }: VirtualClient, id: number): string[] {
  const line = (message: ServerMessage): string[] => {
    if (message.kind === "watching" && message.id === id) return [message.isGap ? "gap" : "goes on"];
    if (message.kind !== "changes" || message.id !== id) return [];
    return message.changes.map(({ change, name }) => `${change} ${name}`);
  };
  return received.flatMap(line);
}

function indexesOf({ received }: VirtualClient, id: number): number[] {
  return received.flatMap((message) => (message.kind === "changes" && message.id === id ? [message.index] : []));
}

describe("watches", () => {
  it("are told what they watch, in the order of the log, after a gap", async () => {
    const cluster = new VirtualCluster();
    const client = cluster.client(await cluster.leader());
    const session = await open(client);
    await cycle(client, session, 1, "doc:0");
    client.sendAll(
      { kind: "watch", id: 1, name: "doc:1", isPrefix: false, after: null },
      { kind: "watch", id: 2, name: "doc:", isPrefix: true, after: null },
    );
    await client.expect("watching", ({ id }) => id === 2);
    await cycle(client, session, 3, "doc:1");
    await cycle(client, session, 5, "job:1");
    await cycle(client, session, 7, "doc:2");
    assert.deepEqual(told(client, 1), ["gap", "granted doc:1", "released doc:1"]);
    assert.deepEqual(told(client, 2), ["gap", "granted doc:1", "released doc:1", "granted doc:2", "released doc:2"]);
    client.sendAll({ kind: "unwatch", id: 2 });
    await cycle(client, session, 9, "doc:1");
    assert.deepEqual(told(client, 1).slice(3), ["granted doc:1", "released doc:1"]);
    assert.equal(told(client, 2).length, 5);
    assert.deepEqual(cluster.errors, []);
  });

  it("go on at the next leader where they were, or are told of a gap", async () => {
    const cluster = new VirtualCluster();
    const old = await cluster.leader();
    const client = cluster.client(old);
    const session = await open(client);
    client.sendAll({ kind: "watch", id: 1, name: "doc:", isPrefix: true, after: null });
    await client.expect("watching");
    await cycle(client, session, 1, "doc:1");
    await cycle(client, session, 3, "doc:2");
    const [first = 0] = indexesOf(client, 1);
    cluster.kill(old);
    const next = await cluster.leader();
    const later = cluster.client(next);
    later.sendAll(
      { kind: "watch", id: 7, name: "doc:", isPrefix: true, after: first },
      { kind: "watch", id: 8, name: "doc:2", isPrefix: false, after: first },
      { kind: "watch", id: 9, name: "doc:", isPrefix: true, after: 0 },
    );
    await later.expect("watching", ({ id }) => id === 9);
    assert.deepEqual(told(later, 7), ["goes on", "released doc:1", "granted doc:2", "released doc:2"]);
    assert.deepEqual(told(later, 8), ["goes on", "granted doc:2", "released doc:2"]);
    assert.deepEqual(told(later, 9), ["gap"], "what was before its life no node knows");
    assert.deepEqual(cluster.errors, []);
  });

  it("are refused by who doesn't lead, twice under one number, and above the limit", async () => {
    const cluster = new VirtualCluster();
    const leader = await cluster.leader();
    const follower = cluster.nodes.find((node) => node !== leader);
    assert.ok(follower !== undefined);
    const lost = cluster.client(follower);
    const watch = (id: number): { kind: "watch"; id: number; name: string; isPrefix: boolean; after: null } => {
      return { kind: "watch", id, name: `lock ${id}`, isPrefix: false, after: null };
    };
    lost.sendAll(watch(1));
    assert.equal((await lost.expect("refused", ({ id }) => id === 1)).refusal.code, "not_leader");
    const client = cluster.client(leader);
    client.sendAll(watch(1), watch(1));
    const twice = await client.expect("refused", ({ id }) => id === 1);
    assert.equal(twice.refusal.code, "invalid_argument");
    for (let id = 2; id <= limits.watchesPerConnectionMax + 1; id += 1) client.sendAll(watch(id));
    const last = await client.expect("refused", ({ id }) => id === limits.watchesPerConnectionMax + 1);
    assert.equal(last.refusal.code, "overloaded");
    client.sendAll({ kind: "unwatch", id: 1 }, watch(limits.watchesPerConnectionMax + 2));
    await client.expect("watching", ({ id }) => id === limits.watchesPerConnectionMax + 2);
    assert.deepEqual(cluster.errors, []);
  });

  it("are told a gap for an entry that changes too much at once", async () => {
    const cluster = new VirtualCluster();
    const client = cluster.client(await cluster.leader());
    const session = await open(client);
    client.sendAll({ kind: "watch", id: 1, name: "", isPrefix: true, after: null });
    await client.expect("watching");
    const names = Array.from(
      { length: limits.changesPerEntryMax + 10 },
      (_, at) => `lock ${String(at).padStart(5, "0")}`,
    );
    for (let at = 0; at * limits.namesMax < names.length; at += 1) {
      const own = names.slice(at * limits.namesMax, (at + 1) * limits.namesMax);
      command(client, { kind: "acquire", session, request: at + 1, ...asked, names: own, ...plain });
      await client.expect("outcome", (message) => message.request === at + 1);
    }
    command(client, { kind: "closeSession", session, request: 1_000, ...asked });
    await client.expect("sessionEnded");
    const lines = told(client, 1);
    assert.equal(lines.filter((line) => line.startsWith("granted")).length, names.length);
    assert.deepEqual(lines.slice(-1), ["gap"]);
    assert.equal(lines.filter((line) => line.startsWith("released")).length, 0);
    assert.deepEqual(cluster.errors, []);
  });
});
