/** Backups of nodes at work, and the first minutes of a restored cluster, over a virtual clock. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LockMachine, SnapshotLoader } from "@holdfast/lock";
import type { Command, SnapshotPiece } from "@holdfast/lock";
import type { Index, Term } from "@holdfast/raft";
import { decodeSnapshotPiece, encodeCommand } from "@holdfast/wire";
import type { BackupSource } from "../src/backup-stream.js";
import { chunksOf } from "../src/restore.js";
import { key, openSession } from "./virtual/opening.js";
import { electionTimeoutMs, VirtualCluster } from "./virtual/virtual-cluster.js";
import type { VirtualClient, VirtualNode } from "./virtual/virtual-cluster.js";

function send(client: VirtualClient, value: Command): void {
  client.sendAll({ kind: "command", payload: encodeCommand(value) });
}

function open(client: VirtualClient, at: number): Promise<number> {
  return openSession(client, at, 5_000, `client ${at}`);
}

function acquire(client: VirtualClient, session: number, request: number, name: string): void {
  const terms = { mode: "exclusive", slots: 0, wait: true, lockDelayMs: 0, maxHoldMs: 0, info: "" } as const;
  send(client, { kind: "acquire", session, request, settled: 1, seen: [], names: [name], ...terms });
}

async function granted(client: VirtualClient, session: number, request: number, limitMs?: number): Promise<number> {
  const { outcome } = await client.expect(
    "outcome",
    (message) => message.session === session && message.request === request && message.outcome.kind === "granted",
    limitMs,
  );
  return outcome.kind === "granted" ? (outcome.grants[0]?.token ?? -1) : -1;
}

/** Lets the virtual time pass until the promise is settled. */
async function eventually<T>(cluster: VirtualCluster, promise: Promise<T>): Promise<T> {
  let isSettled = false;
  promise.then(
    () => (isSettled = true),
    () => (isSettled = true),
  );
  await cluster.clock.until("it is settled", () => isSettled, 20_000);
  return promise;
}

async function machineIn(cluster: VirtualCluster, source: BackupSource): Promise<LockMachine> {
  const loader = new SnapshotLoader();
  for (let chunk = 0, isDone = false; !isDone; chunk += 1) {
    const { bytes, done } = await eventually(cluster, source.read(chunk));
    assert.ok(bytes !== null, "it is kept while it is read");
    loader.push(decodeSnapshotPiece(bytes) as SnapshotPiece);
    isDone = done;
  }
  return loader.finish();
}

function takeBackup(node: VirtualNode): Promise<BackupSource> {
  assert.ok(node.host !== null);
  return node.host.takeBackup();
}

async function withHolds(options: ConstructorParameters<typeof VirtualCluster>[0], holds: number) {
  const cluster = new VirtualCluster(options);
  const leader = await cluster.leader();
  const client = cluster.client(leader);
  const session = await open(client, 1);
  for (let request = 1; request <= holds; request += 1) acquire(client, session, request, `lock:${request}`);
  await granted(client, session, holds);
  await cluster.converged();
  const follower = cluster.nodes.find((node) => node !== leader);
  assert.ok(follower);
  return { cluster, leader, client, session, follower };
}

describe("a backup of a node", () => {
  it("is one state of it, also of a follower, while entries go on being applied", async () => {
    const { cluster, client, session, follower } = await withHolds({ recordsPerPiece: 3 }, 60);
    const at = follower.host?.status().lastApplied;
    const hash = follower.host?.stateHash();
    const taking = takeBackup(follower);
    for (let request = 61; request <= 90; request += 1) acquire(client, session, request, `lock:${request}`);
    const source = await eventually(cluster, taking);
    assert.equal(source.header.nodeId, follower.id);
    const { index } = source.header.base.position;
    assert.ok(index === at, "no entry was there when it was asked for");
    await granted(client, session, 90);
    await cluster.converged();
    assert.notEqual(follower.host?.stateHash(), hash);
    assert.equal((await machineIn(cluster, source)).stateHash(), hash);
    source.release();
    assert.deepEqual(cluster.errors, []);
  });

  it("is kept on the disk while newer snapshots come, and freed afterwards", async () => {
    const { cluster, leader, client, session } = await withHolds({ recordsPerPiece: 3, snapshotEntries: 20 }, 30);
    const source = await eventually(cluster, takeBackup(leader));
    const { index } = source.header.base.position;
    for (let request = 31; request <= 110; request += 1) acquire(client, session, request, `lock:${request}`);
    await granted(client, session, 110);
    await cluster.clock.pass(1_000);
    assert.ok((leader.disk.snapshot?.base.position.index ?? 0) > index, "there is a newer one");
    const machine = await machineIn(cluster, source);
    assert.equal(machine.holdCount, 30);
    source.release();
    for (let request = 111; request <= 140; request += 1) acquire(client, session, request, `lock:${request}`);
    await granted(client, session, 140);
    await cluster.clock.pass(1_000);
    assert.equal(leader.disk.snapshots.has(index), false);
    assert.deepEqual(cluster.errors, []);
  });

  it("is the newest snapshot when nothing has happened since: no second one is written", async () => {
    const { cluster, leader } = await withHolds({}, 5);
    const first = await eventually(cluster, takeBackup(leader));
    first.release();
    await cluster.clock.pass(1_000);
    const { writes } = leader.disk;
    const second = await eventually(cluster, takeBackup(leader));
    assert.equal(second.header.base.position.index, first.header.base.position.index);
    assert.equal(leader.disk.writes, writes);
    await assert.rejects(takeBackup(leader), /already/);
  });
});

describe("a restored cluster", () => {
  const index = 10_000;
  const ttlMs = 5_000;

  /** Three nodes that begin with what a restore of a state with sessions makes, or have it from their leader. */
  async function restoredCluster(): Promise<VirtualCluster> {
    const cluster = new VirtualCluster();
    for (const node of cluster.nodes) cluster.kill(node, false);
    const machine = new LockMachine();
    machine.apply(1, { kind: "openSession", key: key(1), ttlMs, info: "" });
    machine.restore(index);
    const chunks = [...chunksOf(machine)];
    for (const { disk } of cluster.nodes) {
      const base = { ...disk.base, position: { term: 9 as Term, index: index as Index } };
      disk.base = base;
      disk.entries = [];
      disk.hardState = { term: base.position.term, votedFor: null };
      disk.snapshots.clear();
      disk.snapshots.set(base.position.index, { base, chunks });
    }
    for (const node of cluster.nodes) cluster.start(node);
    await cluster.leader();
    return cluster;
  }

  it("grants nothing until a leader has waited the longest TTL out, each leader anew", async () => {
    const cluster = await restoredCluster();
    const first = await cluster.leader();
    const early = cluster.client(first);
    acquire(early, await open(early, 2), 1, "early");
    await cluster.clock.pass(ttlMs - 100);
    cluster.kill(first);
    const diedMs = cluster.clock.nowMs;
    const second = await cluster.leader();
    assert.notEqual(second, first);
    const late = cluster.client(second);
    const session = await open(late, 3);
    acquire(late, session, 1, "late");
    const token = await granted(late, session, 1);
    const passedMs = cluster.clock.nowMs - diedMs;
    assert.ok(passedMs >= ttlMs, `granted ${passedMs} ms after the first leader's death`);
    assert.ok(passedMs < ttlMs + 4 * electionTimeoutMs, `granted only ${passedMs} ms after the first leader's death`);
    assert.ok(token > index);
    cluster.start(first);
    await cluster.converged();
    assert.deepEqual(cluster.errors, []);
  });

  it("tells sessions of before that it was restored", async () => {
    const cluster = await restoredCluster();
    const client = cluster.client(await cluster.leader());
    for (const session of [1, index]) {
      client.sendAll({ kind: "resume", session, key: key(1) });
      const { refusal } = await client.expect("refused", (message) => message.session === session);
      assert.deepEqual(refusal, { code: "session_gone", reason: "restored" });
    }
  });
});
