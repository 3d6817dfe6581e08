import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { statusOf, TestCluster } from "../harness/cluster.js";
import type { TestNode } from "../harness/cluster.js";
import { until } from "../harness/until.js";

describe("snapshots on real disks", { timeout: 180_000 }, () => {
  let cluster: TestCluster;

  before(async () => {
    cluster = await TestCluster.start({ limits: { snapshotEntries: 200, trailingEntriesMax: 20 } });
  });
  after(async () => cluster.close());

  async function caughtUp(node: TestNode): Promise<void> {
    await until(`${node.id} has caught up`, async () => {
      const [own, leading] = await Promise.all([statusOf(node), cluster.leader().then(statusOf)]);
      return own !== null && leading !== null && own.lastApplied === leading.lastApplied;
    });
  }

  it("a node that was away is given one, keeps it over a restart, and every hold survives", async () => {
    // Longer than a busy machine takes to start three nodes: no hold may end by itself.
    const client = await cluster.connect({ ttlMs: 60_000 });
    const leader = await cluster.leader();
    const away = cluster.others(leader)[0] as TestNode;
    await away.kill();
    const kept = await Promise.all(
      Array.from({ length: 50 }, (_, at) => client.acquire(`kept:${at}`, { info: "x".repeat(500) })),
    );
    for (let round = 0; round < 20; round += 1) {
      const locks = await Promise.all(Array.from({ length: 20 }, (_, at) => client.acquire(`passing:${at}`)));
      await Promise.all(locks.map((lock) => lock.release()));
    }
    await until(
      "the log was compacted",
      async () => ((await statusOf(await cluster.leader()))?.snapshotIndex ?? 0) > 400,
    );
    away.start();
    await caughtUp(away);
    assert.ok(((await statusOf(away))?.snapshotIndex ?? 0) > 400, "it was given a snapshot");
    assert.match(away.log(), /snapshot installed/);
    // All die; what comes back comes from snapshots and the log behind them.
    for (const node of cluster.nodes) node.signal("SIGKILL");
    for (const node of cluster.nodes) await node.exited();
    for (const node of cluster.nodes) node.start();
    await cluster.leader();
    await caughtUp(away);
    for (const [at, lock] of kept.entries()) {
      assert.equal((await client.inspect(`kept:${at}`))?.holders[0]?.token, lock.token);
      assert.equal(await lock.release(), "released");
    }
    assert.deepEqual(await client.list({ prefix: "kept:" }), []);
  });
});
