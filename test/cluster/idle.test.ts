import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { TestCluster } from "../harness/cluster.js";

describe("an idle cluster", { timeout: 260_000, skip: process.platform !== "linux" }, () => {
  let cluster: TestCluster;

  before(async () => {
    cluster = await TestCluster.start();
  });
  after(async () => cluster.close());

  it("uses under 1 % of a core per node", async (t) => {
    await cluster.leader();
    // What a start costs (compiling, collecting) is not idling, and the machine is shared with other tests: one quiet window of several
    // counts. CPU time is measured, not time: others make it a little dearer, by cold caches.
    const windowSeconds = 8;
    const windowsMax = 16;
    for (let window = 1; ; window += 1) {
      const before = cluster.nodes.map((node) => node.cpuSeconds());
      await sleep(windowSeconds * 1_000);
      const shares = cluster.nodes.map((node, at) => (node.cpuSeconds() - (before[at] as number)) / windowSeconds);
      t.diagnostic(shares.map((share) => `${(100 * share).toFixed(2)} %`).join(", "));
      if (shares.every((share) => share < 0.01)) return;
      assert.ok(window < windowsMax, "no window in which every node used under 1 % of a core");
    }
  });
});
