import assert from "node:assert/strict";
import { performance } from "node:perf_hooks";
import { after, before, describe, it } from "node:test";
import { TestCluster } from "../harness/cluster.js";
import { until } from "../harness/until.js";

describe("all nodes killed at once and started again", { timeout: 120_000 }, () => {
  let cluster: TestCluster;

  before(async () => {
    cluster = await TestCluster.start();
  });
  after(async () => cluster.close());

  it("every held lock is still held by its session, with its token, and the keepalives go on", async () => {
    // Longer than a busy machine takes to start three nodes; the test waits for a third of it.
    const client = await cluster.connect({ ttlMs: 20_000 });
    const names = Array.from({ length: 25 }, (_, at) => `kept:${at}`);
    const locks = await Promise.all(names.map((name) => client.acquire(name)));
    const oldDeadlineMs = performance.now() + (locks[0]?.remainingMs() ?? 0);
    for (const node of cluster.nodes) node.signal("SIGKILL");
    for (const node of cluster.nodes) await node.exited();
    for (const node of cluster.nodes) node.start();
    await cluster.leader();
    for (const [at, lock] of locks.entries()) {
      const view = await client.inspect(names[at] as string);
      assert.equal(view?.holders.length, 1);
      assert.equal(view?.holders[0]?.token, lock.token);
    }
    await until("a keepalive is acknowledged: the lease reaches beyond its old end", () => {
      return performance.now() + (locks[0]?.remainingMs() ?? 0) > oldDeadlineMs + 100;
    });
    for (const lock of locks) {
      assert.equal(lock.state, "held");
      assert.equal(await lock.release(), "released");
    }
    const next = await client.acquire("kept:0");
    assert.ok(next.token > (locks[0]?.token ?? Number.POSITIVE_INFINITY));
    await next.release();
  });
});
