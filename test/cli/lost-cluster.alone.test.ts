/** A holder that is cut off from the cluster: its command is gone before the service may grant the lock to another. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { TestCluster } from "../harness/cluster.js";
import { until } from "../harness/until.js";
import { CliProcess, isRunning, numberIn } from "./cli-process.js";

test("SIGTERM when the grace is left, SIGKILL to what ignores it, all before the TTL is over", {
  skip: process.platform !== "linux",
}, async () => {
  const cluster = await TestCluster.start();
  const folder = mkdtempSync(join(tmpdir(), "holdfast cli-"));
  try {
    const environment = { HOLDFAST_ENDPOINTS: cluster.endpoints.join(","), FOLDER: folder };
    const script = `
      sh -c 'trap "" TERM; echo $$ > "$FOLDER/deaf"; while :; do sleep 0.05; done' &
      trap 'echo told' TERM
      echo $$ > "$FOLDER/ready"
      wait; wait`;
    const running = new CliProcess(
      ["lock", "a", "--ttl", "2s", "--grace", "600ms", "--", "sh", "-c", script],
      environment,
    );
    const pids = [await numberIn(join(folder, "deaf")), await numberIn(join(folder, "ready"))];
    for (const node of cluster.nodes) node.signal("SIGSTOP");
    const cutMs = performance.now();
    await until("the command was told to stop", () => running.out.includes("told"), 10_000, 5);
    const toldMs = performance.now() - cutMs;
    await until("the whole family is gone", () => !pids.some(isRunning), 10_000, 5);
    const goneMs = performance.now() - cutMs;
    for (const node of cluster.nodes) node.signal("SIGCONT");
    const { code, err } = await running.ended;
    assert.equal(code, 76);
    assert.match(err, /the command was stopped\n$/);
    // The last acknowledged keepalive was sent before the cut, at most a third of the TTL (and jitter) earlier: the lease runs for
    // another 1.0 s at least, and 1.75 s at most.
    assert.ok(toldMs > 300, `told after ${toldMs} ms: long before the grace`);
    assert.ok(goneMs - toldMs > 300, `only ${goneMs - toldMs} ms between SIGTERM and SIGKILL`);
    assert.ok(goneMs < 2_000, `gone after ${goneMs} ms: the lock could have passed on`);
  } finally {
    await cluster.close();
    rmSync(folder, { recursive: true });
  }
});
