/** A rolling restart under clients with short leases. It measures time: a node that stops in order must not cost a renewal. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Holdfast } from "@holdfast/client";
import { statusOf, TestCluster } from "../harness/cluster.js";
import type { TestNode } from "../harness/cluster.js";
import { until } from "../harness/until.js";

const clientCount = 20;
/** A renewal has failed when it is not answered within a sixth of it. */
const ttlMs = 4_000;

describe("a rolling restart under 20 holders with a TTL of 4 s", { timeout: 180_000 }, () => {
  let cluster: TestCluster;
  let clients: Holdfast[];

  before(async () => {
    cluster = await TestCluster.start();
    clients = await Promise.all(Array.from({ length: clientCount }, () => cluster.connect({ ttlMs })));
  });
  after(async () => cluster.close());

  function handovers(): number {
    return cluster.nodes.flatMap((node) => node.log().match(/hands its leadership over/g) ?? []).length;
  }

  async function restart(node: TestNode): Promise<void> {
    const [wasLeader, before] = [(await cluster.leader()) === node, handovers()];
    node.signal("SIGTERM");
    assert.equal(await node.exited(), 0);
    if (wasLeader) await until("another has been asked to lead", () => handovers() > before);
    node.start();
    await until(`${node.id} is ready`, async () => (await fetch(`http://${node.endpoint}/readyz`)).status === 200);
    const applied = (await statusOf(await cluster.leader()))?.lastApplied ?? 0;
    await until(`${node.id} has caught up`, async () => ((await statusOf(node))?.lastApplied ?? 0) >= applied);
  }

  it("no lock is lost, none is ever in jeopardy, and others are granted all the while", async () => {
    const troubles: string[] = [];
    const held = await Promise.all(
      clients.map(async (client, at) => {
        const lock = await client.acquire(`held:${at}`, { stopOn: "jeopardy" });
        lock.signal.addEventListener("abort", () => troubles.push(`held:${at}: ${String(lock.signal.reason)}`));
        return lock;
      }),
    );
    let isOver = false;
    let granted = 0;
    const working = clients.map(async (client, at) => {
      for (let round = 0; !isOver; round += 1) {
        const lock = await client.acquire(`other:${(at + round) % 5}`);
        granted += 1;
        assert.equal(await lock.release(), "released");
      }
    });
    // Each node once, then twice more whoever leads: a restart of a follower alone proves little.
    for (const next of [...cluster.nodes, null, null]) {
      const before = granted;
      await restart(next ?? (await cluster.leader()));
      await until("others are granted", () => granted > before + clientCount);
    }
    isOver = true;
    await Promise.all(working);
    assert.deepEqual(troubles, []);
    for (const [at, lock] of held.entries()) {
      assert.equal(lock.state, "held");
      assert.equal((await clients[at]?.inspect(`held:${at}`))?.holders[0]?.token, lock.token);
      assert.equal(await lock.release(), "released");
    }
  });
});
