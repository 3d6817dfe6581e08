import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { TestCluster } from "../harness/cluster.js";
import type { TestNode } from "../harness/cluster.js";
import { TcpProxy } from "../harness/proxy.js";
import { until } from "../harness/until.js";

describe("the answer to an acquire is cut", { timeout: 120_000 }, () => {
  let cluster: TestCluster;

  before(async () => {
    cluster = await TestCluster.start();
  });
  after(async () => cluster.close());

  it("the retry at another node brings the same token: one grant", async () => {
    const leader = await cluster.leader();
    const proxy = await TcpProxy.start(leader.clientPort);
    const observer = await cluster.connect();
    try {
      // The client knows the leader by its proxy only until the others tell it of the leader's own address.
      const client = await cluster.connect({ endpoints: [proxy.endpoint] });
      await (await client.acquire("warm")).release();
      proxy.cut("toClient");
      const acquiring = client.acquire("cut", { waitMs: 60_000 });
      const held = await until("the grant is in the log", async () => {
        const view = await observer.inspect("cut");
        return view !== null && view.holders.length === 1 ? view : null;
      });
      const token = held.holders[0]?.token;
      await moveLeadership(leader);
      proxy.reset();
      const lock = await acquiring;
      assert.ok(proxy.swallowed.toClient > 0, "an answer was swallowed");
      assert.equal(lock.token, token);
      const view = await observer.inspect("cut");
      assert.equal(view?.holders.length, 1);
      assert.equal(view?.waiterCount, 0);
      assert.equal(await lock.release(), "released");
      assert.equal(await observer.inspect("cut"), null);
    } finally {
      await proxy.close();
    }
  });

  async function moveLeadership(from: TestNode): Promise<void> {
    const client = await cluster.connect();
    await client.transfer();
    await until("another leads", async () => (await cluster.leader()) !== from);
  }
});
