/**
 * Backup, loss and restore with real processes and a real guard. Promise P2 across a restore: whatever was granted after the backup, and
 * however often it is restored, every token from then on is higher, so the guard's history never falls.
 */
import assert from "node:assert/strict";
import { readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { after, before, describe, it } from "node:test";
import { LockDelayedError } from "@holdfast/client";
import type { Holdfast, Lock } from "@holdfast/client";
import { runCli } from "../cli/cli-process.js";
import { isStale, newDocument, useDatabase } from "../fence/database.js";
import { statusOf, TestCluster } from "../harness/cluster.js";
import type { TestNode } from "../harness/cluster.js";
import { debianPostgres, embeddedPostgres, missingDebianPostgres, missingDrivers } from "../harness/postgres.js";
import { until } from "../harness/until.js";

const skip = process.env["CI"] === undefined && (missingDrivers() ?? false);

interface Restored {
  readonly clusterId: string;
  readonly index: number;
  readonly closedMs: number;
  readonly endedSessions: number;
}

describe("a cluster that is lost and restored", { skip, timeout: 300_000 }, () => {
  // A server, where there is one, is up sooner than one that has to be compiled first.
  const database = useDatabase(missingDebianPostgres() === null ? debianPostgres : embeddedPostgres);
  /** For as long a restored cluster stays closed. */
  const longestTtlMs = 4_000;
  let cluster: TestCluster;
  let file = "";
  let document = 0;
  let highest = 0;
  let oldClient: Holdfast;
  let oldHold: Lock;
  let oldClusterId = "";

  before(async () => {
    cluster = await TestCluster.start();
    file = join(cluster.root, "backup");
    document = await newDocument(database.pool);
  });
  after(async () => cluster?.close());

  async function cli(...words: readonly string[]): Promise<string> {
    const { code, out, err } = await runCli([...words, "--json"], {});
    assert.equal(code, 0, err);
    return out;
  }

  async function restore(node: TestNode, from: readonly string[], directory: string): Promise<Restored> {
    const addresses = ["--peer", `127.0.0.1:${node.peerPort}`, "--client", node.endpoint];
    const out = await cli("restore", ...from, "--data", directory, "--id", node.id, ...addresses);
    return (JSON.parse(out) as { readonly restored: Restored }).restored;
  }

  /** Grants of a round, every fifth one used at the guard. Returns the highest token. */
  async function work(client: Holdfast, grants: number): Promise<number> {
    let last = 0;
    for (let done = 0; done < grants; done += 20) {
      const locks = await Promise.all(Array.from({ length: 20 }, (_, at) => client.acquire(`doc:${at}`)));
      last = Math.max(last, ...locks.map(({ token }) => token));
      await Promise.all(locks.map((lock) => lock.release()));
      const lock = await client.acquire("document");
      if (done % 100 === 0) await database.documents.update(lock, document, { body: `token ${lock.token}` });
      last = Math.max(last, lock.token);
      await lock.release();
    }
    return last;
  }

  /** Its TTL is how long the next cluster stays closed that is restored out of this one. */
  function connectTo(node: TestNode): Promise<Holdfast> {
    return cluster.connect({ endpoints: [node.endpoint], ttlMs: 2_000 });
  }

  async function serves(node: TestNode): Promise<void> {
    await until(`${node.id} leads`, async () => (await statusOf(node))?.role === "leader");
  }

  it("is backed up from a follower while it works", async () => {
    oldClient = await cluster.connect({ ttlMs: longestTtlMs });
    oldHold = await oldClient.acquire("kept");
    highest = await work(oldClient, 100);
    const leader = await cluster.leader();
    const follower = cluster.others(leader)[0] as TestNode;
    const backup = ["backup", file, "--node", follower.id, "--endpoints", leader.endpoint];
    const [out] = await Promise.all([cli(...backup), work(oldClient, 100)]);
    const taken = JSON.parse(out) as { node: string; index: number; clusterId: string; bytes: number };
    assert.equal(taken.node, follower.id);
    assert.ok(taken.index > 100 && taken.bytes > 200);
    oldClusterId = taken.clusterId;
    const again = await runCli(backup, {});
    assert.equal(again.code, 1);
    assert.match(again.err, /exists already/);
    highest = await work(oldClient, 1_000);
  });

  it("begins again out of the backup: closed for the longest TTL, then with tokens above all of before", async () => {
    for (const node of cluster.nodes) await node.kill();
    const [first, second] = cluster.nodes as [TestNode, TestNode, TestNode];
    renameSync(first.directory, `${first.directory}.old`);
    const restored = await restore(first, [file], first.directory);
    assert.notEqual(restored.clusterId, oldClusterId);
    assert.equal(restored.closedMs, longestTtlMs);
    assert.ok(restored.endedSessions >= 1);
    assert.ok(restored.index > highest);
    const startedMs = performance.now();
    first.start();
    await serves(first);
    const client = await connectTo(first);
    assert.equal(await client.tryAcquire("kept"), null);
    await assert.rejects(client.acquire("free", { waitMs: 0 }), LockDelayedError);
    // Over a restart it is closed as long again.
    await first.kill();
    const againMs = performance.now();
    first.start();
    const waiting = client.acquire("kept", { waitMs: 60_000 });
    await serves(first);
    const lock = await waiting;
    assert.ok(performance.now() - againMs >= longestTtlMs, "not before the longest TTL has passed");
    assert.ok(performance.now() - startedMs >= longestTtlMs);
    assert.ok(lock.token > restored.index);
    await database.documents.update(lock, document, { body: "restored" });
    await assert.rejects(
      database.documents.update({ token: highest }, document, { body: "late" }),
      isStale(highest, lock.token),
    );
    highest = await work(client, 100);

    // The old cluster's client and nodes have no part in it.
    await until("the old client knows that its lock is lost", () => oldHold.state === "lost");
    await assert.rejects(oldClient.acquire("kept", { waitMs: 1_000 }));
    second.start();
    await until("the old node is refused", () => /belongs to cluster id/.test(second.log()));
    assert.equal((await statusOf(first))?.role, "leader");
    await second.kill();
  });

  it("never gives a token out twice, however often the same file is restored", async () => {
    const first = cluster.node("n1");
    await first.kill();
    renameSync(first.directory, `${first.directory}.first`);
    const restored = await restore(first, [file], first.directory);
    assert.ok(restored.index > highest);
    first.start();
    await serves(first);
    const client = await connectTo(first);
    const lock = await client.acquire("document", { waitMs: 60_000 });
    assert.ok(lock.token > highest);
    await lock.release();
    highest = await work(client, 100);
    await first.kill();
  });

  it("begins again out of one survivor's directory", async () => {
    const first = cluster.node("n1");
    const survivor = `${first.directory}.survivor`;
    renameSync(first.directory, survivor);
    const salvage = join(cluster.root, "salvaged");
    const told = await runCli(["restore", "--from-data", survivor, "--to", salvage], {});
    assert.equal(told.code, 0, told.err);
    assert.match(told.out, /what other nodes had committed after index \d+/);
    const bytes = readFileSync(salvage);
    const forced = await runCli(["restore", "--from-data", survivor, "--to", salvage, "--force"], {});
    assert.equal(forced.code, 1, "--force speaks of the directory, not of a backup that is there");
    assert.match(forced.err, /exists already: name another/);
    assert.ok(readFileSync(salvage).equals(bytes));
    const restored = await restore(first, ["--from-data", survivor], first.directory);
    assert.ok(restored.index > highest);
    const other = await restore(first, [salvage], `${first.directory}.other`);
    assert.ok(other.index > restored.index);
    first.start();
    await serves(first);
    const client = await connectTo(first);
    const lock = await client.acquire("document", { waitMs: 60_000 });
    assert.ok(lock.token > highest);
    await database.documents.update(lock, document, { body: "salvaged" });
    await lock.release();
    const running = await runCli(["restore", "--from-data", first.directory, "--to", `${salvage}-2`], {});
    assert.equal(running.code, 73, running.err);
  });

  it("has left a history at the guard that never falls", async () => {
    const { rows } = await database.pool.query("SELECT fence::text FROM history WHERE id = $1 ORDER BY at", [document]);
    const fences = rows.map((row) => Number(row["fence"]));
    assert.ok(fences.length > 15);
    for (const [at, fence] of fences.entries()) assert.ok(at === 0 || fence > (fences[at - 1] ?? 0), fences.join(" "));
  });
});
