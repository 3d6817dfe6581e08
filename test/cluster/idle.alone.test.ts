import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { TestCluster } from "../harness/cluster.js";

describe("an idle cluster", { timeout: 120_000, skip: process.platform !== "linux" }, () => {
  let cluster: TestCluster;

  before(async () => {
    cluster = await TestCluster.start();
  });
  after(async () => cluster.close());

  it("uses under 1 % of a core per node", async (t) => {
    await cluster.leader();
    await sleep(2_000); // what a start costs is not idling
    const windowSeconds = 15;
    const before = cluster.nodes.map((node) => node.cpuSeconds());
    await sleep(windowSeconds * 1_000);
    const shares = cluster.nodes.map((node, at) => (node.cpuSeconds() - (before[at] as number)) / windowSeconds);
    t.diagnostic(shares.map((share) => `${(100 * share).toFixed(2)} %`).join(", "));
    for (const share of shares) assert.ok(share < 0.01, `${(100 * share).toFixed(2)} % of a core`);
  });
});
