/**
 * Backup, loss and restore with real processes and a real guard, by the commands of docs/operations.md. Promise P2 across a restore: whatever was granted after the backup, and
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
import { commandsOf, run } from "../harness/operations-page.js";
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

  /** A command of the page, which has to succeed. */
  async function told<T>(command: readonly string[]): Promise<T> {
    const { code, out, err } = await run([...command, "--json"], { HOLDFAST_ENDPOINTS: cluster.endpoints.join() });
    assert.equal(code, 0, err);
    return JSON.parse(out) as T;
  }

  /** From any node, and from this one. */
  function backupCommands(to: string, node: TestNode): string[][] {
    return commandsOf("Backup", 2, { words: { "/backups/locks-$(date +%F)": to, n3: node.id } });
  }

  /** n1 out of a backup, and its start. */
  function restoreCommands(from: string, directory: string): string[][] {
    const config = join(cluster.root, "cluster.json");
    const words = { "/backups/locks-2027-01-05": from, DIR: directory, "/etc/holdfast/cluster.json": config };
    return commandsOf("Restore", 2, { nodes: cluster.nodes, words });
  }

  /** A backup out of a survivor's directory, and n1 out of it. */
  function salvageCommands(survivor: string, to: string, directory: string): string[][] {
    const words = { "/var/lib/holdfast": survivor, "/backups/salvaged": to, DIR: directory };
    return commandsOf("Lost majority", 2, { nodes: cluster.nodes, words });
  }

  async function restore(command: readonly string[] = []): Promise<Restored> {
    return (await told<{ readonly restored: Restored }>(command)).restored;
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
    const [, backup = []] = backupCommands(file, follower);
    interface Taken {
      readonly node: string;
      readonly index: number;
      readonly clusterId: string;
      readonly bytes: number;
    }
    const [taken] = await Promise.all([told<Taken>(backup), work(oldClient, 100)]);
    assert.equal(taken.node, follower.id);
    assert.ok(taken.index > 100 && taken.bytes > 200);
    oldClusterId = taken.clusterId;
    const [fromAny = []] = backupCommands(`${file}.another`, follower);
    assert.ok((await told<Taken>(fromAny)).index >= taken.index);
    const again = await run(backup, { HOLDFAST_ENDPOINTS: leader.endpoint });
    assert.equal(again.code, 1);
    assert.match(again.err, /exists already/);
    highest = await work(oldClient, 1_000);
  });

  it("begins again out of the backup: closed for the longest TTL, then with tokens above all of before", async () => {
    for (const node of cluster.nodes) await node.kill();
    const [first, second] = cluster.nodes as [TestNode, TestNode, TestNode];
    renameSync(first.directory, `${first.directory}.old`);
    const [command, start = []] = restoreCommands(file, first.directory);
    const restored = await restore(command);
    assert.notEqual(restored.clusterId, oldClusterId);
    assert.equal(restored.closedMs, longestTtlMs);
    assert.ok(restored.endedSessions >= 1);
    assert.ok(restored.index > highest);
    const startedMs = performance.now();
    first.startWith(...start.slice(1));
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
    const [command] = restoreCommands(file, first.directory);
    const restored = await restore(command);
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
    const [toBackup = [], toDirectory] = salvageCommands(survivor, salvage, first.directory);
    const salvaged = await run(toBackup);
    assert.equal(salvaged.code, 0, salvaged.err);
    assert.match(salvaged.out, /what other nodes had committed after index \d+/);
    const bytes = readFileSync(salvage);
    const forced = await run([...toBackup, "--force"]);
    assert.equal(forced.code, 1, "--force speaks of the directory, not of a backup that is there");
    assert.match(forced.err, /exists already: name another/);
    assert.ok(readFileSync(salvage).equals(bytes));
    const restored = await restore(toDirectory);
    assert.ok(restored.index > highest);
    const [command] = restoreCommands(salvage, `${first.directory}.other`);
    const other = await restore(command);
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
