import { strict as assert } from "node:assert";
import { cp } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { exitCodes } from "../src/exit-codes.js";
import { sleep } from "./helpers.js";
import { configOf, stopAll, Trio } from "./node-harness.js";

describe("three nodes", () => {
  let cluster: Trio;
  before(async () => {
    cluster = new Trio(await configOf(3));
    await cluster.whenReady();
  });
  after(stopAll);

  test("form one cluster; the leader's stop hands leadership over", async () => {
    const ids = await Promise.all(cluster.nodes.map(async (node) => (await node.status())?.clusterId));
    assert.equal(new Set(ids).size, 1);
    const at = await cluster.leader();
    const term = (await cluster.nodes[at]?.status())?.term ?? 0;
    const beganMs = performance.now();
    assert.equal(await cluster.nodes[at]?.stop(), 0);
    const next = await cluster.leader();
    const tookMs = performance.now() - beganMs;
    assert.ok(tookMs < 2_000, `the stop and the new leader took ${tookMs} ms`);
    assert.equal((await cluster.nodes[next]?.status())?.term, term + 1, "one election, by transfer");
    for (const node of cluster.nodes)
      assert.ok(!node.log.lines.some(({ text }) => text.includes("process is gone")), "a goodbye is no death");
    await cluster.restart(at);
  });

  test("a wiped directory is refused at each start, and the old one taken back", async () => {
    assert.equal(await cluster.nodes[2]?.stop(), 0);
    const intact = `${cluster.folders[2]}.intact`;
    await cp(cluster.folders[2] ?? "", intact, { recursive: true });
    await cluster.exchangeThird(null);
    for (let start = 0; start < 2; start += 1) {
      const wiped = cluster.start(2);
      assert.equal(await wiped.ended, exitCodes.wrongInstance.code);
      assert.match(
        wiped.errors,
        /^holdfast: n3: n[12] refuses this node: the cluster knows n3 with another data directory .*; see docs\/operations\.md#a-node-that-refuses-to-start\n$/,
      );
    }
    assert.equal(await cluster.nodes[0]?.readiness(), 200);
    await cluster.exchangeThird(intact);
    await cluster.restart(2);
  });

  test("a directory of another cluster ends, and the cluster doesn't", async () => {
    const foreign = new Trio(await configOf(3));
    await foreign.whenReady();
    await foreign.stop();
    const own = `${cluster.folders[2]}.own`;
    await cluster.nodes[2]?.stop();
    await cp(cluster.folders[2] ?? "", own, { recursive: true });
    await cluster.exchangeThird(foreign.folders[2] ?? "");
    const stray = cluster.start(2);
    assert.equal(await stray.ended, exitCodes.wrongCluster.code);
    assert.match(
      stray.errors,
      /^holdfast: n3: n[12] refuses this node: n[12] belongs to cluster id \w+, not \w+; see docs\/operations\.md#a-node-that-refuses-to-start\n$/,
    );
    await sleep(1_200);
    assert.deepEqual([cluster.nodes[0]?.code, cluster.nodes[1]?.code], [null, null]);
    assert.equal(await cluster.nodes[0]?.readiness(), 200);
    await cluster.exchangeThird(own);
    await cluster.restart(2);
  });

  test("all stop and come back", async () => {
    const before = await cluster.nodes[0]?.status();
    assert.deepEqual(await cluster.stop(), [0, 0, 0]);
    for (const at of [0, 1, 2]) cluster.nodes[at] = cluster.start(at);
    await cluster.whenReady();
    assert.equal((await cluster.nodes[0]?.status())?.clusterId, before?.clusterId);
  });

  test("an old copy of a directory is refused, and its later starts too, whoever has forgotten", async () => {
    await cluster.nodes[2]?.stop();
    const old = `${cluster.folders[2]}.old`;
    await cp(cluster.folders[2] ?? "", old, { recursive: true });
    await cluster.restart(2);
    await cluster.nodes[2]?.stop();
    await cluster.exchangeThird(old);
    const copy = cluster.start(2);
    assert.equal(await copy.ended, exitCodes.oldCopy.code);
    assert.match(
      copy.errors,
      /refuses this node: n3's data directory is an old copy: .*; see docs\/operations\.md#a-node-that-refuses-to-start\n$/,
    );
    await cluster.stop();
    const again = cluster.start(2);
    assert.equal(await again.ended, exitCodes.oldCopy.code, "with nobody there to say so");
    assert.match(again.errors, /quarantine: old copy: /);
  });
});
