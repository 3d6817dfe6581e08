import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { TestCluster } from "../harness/cluster.js";

/** A leader at rest beats five times a second: its timer, and two answers that come one by one. What else there is are pings. */
const wakeupsPerSecondMax = 25;

describe("an idle cluster", { timeout: 260_000, skip: process.platform !== "linux" }, () => {
  let cluster: TestCluster;

  before(async () => {
    cluster = await TestCluster.start();
  });
  after(async () => cluster.close());

  it("wakes seldom, and writes nothing", async (t) => {
    await cluster.leader();
    // Counted, not timed: what a wakeup costs is the machine's affair, and a benchmark's. What a start leaves behind (compiling, collecting,
    // LevelDB's tidying) is not idling: one quiet window of several counts.
    const windowSeconds = 4;
    const windowsMax = 24;
    for (let window = 1; ; window += 1) {
      const before = cluster.nodes.map((node) => node.activity());
      await sleep(windowSeconds * 1_000);
      const since = cluster.nodes.map((node, at) => {
        const { wakeups, writtenBytes } = node.activity();
        const then = before[at] as { wakeups: number; writtenBytes: number };
        return { perSecond: (wakeups - then.wakeups) / windowSeconds, bytes: writtenBytes - then.writtenBytes };
      });
      t.diagnostic(since.map(({ perSecond, bytes }) => `${perSecond} wakeups/s, ${bytes} bytes`).join("; "));
      if (since.every(({ perSecond, bytes }) => perSecond <= wakeupsPerSecondMax && bytes === 0)) return;
      assert.ok(window < windowsMax, "no window in which every node slept as long as it should");
    }
  });
});
