/** What a test leaves behind when its cluster doesn't come up, or when it is killed itself: nothing. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, describe, it } from "node:test";
import { isRunning } from "../cli/cli-process.js";
import { TestCluster } from "./cluster.js";
import { until } from "./until.js";

describe("a cluster of a test", { timeout: 120_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-harness-"));
  after(() => rmSync(folder, { recursive: true }));

  it("is gone when no leader comes", async () => {
    // In place of a node: it says where it is, and does nothing.
    const idle = `fs.writeFileSync(${JSON.stringify(folder)} + "/" + process.pid, process.argv.at(-1)); setInterval(() => {}, 1_000)`;
    const starting = TestCluster.start({ nodes: 1, nodeOptions: ["--eval", idle, "--"], leaderMs: 3_000 });
    await assert.rejects(starting, /a leader/);
    const pids = readdirSync(folder);
    assert.equal(pids.length, 1);
    assert.equal(isRunning(Number(pids[0])), false);
    assert.equal(existsSync(dirname(readFileSync(join(folder, pids[0] as string), "utf8"))), false, "its folder");
  });

  it("ends with the test's process, even by SIGKILL", async () => {
    const script = `
      const { TestCluster } = await import(${JSON.stringify(new URL("./cluster.js", import.meta.url).href)});
      const cluster = await TestCluster.start({ nodes: 1 });
      console.log(JSON.stringify({ pid: cluster.nodes[0].pid, root: cluster.root }));`;
    for (const signal of ["SIGINT", "SIGKILL"] as const) {
      const test = spawn(process.execPath, ["--input-type=module", "--eval", script], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const [line] = (await once(test.stdout, "data")) as [Buffer];
      const { pid, root } = JSON.parse(line.toString()) as { readonly pid: number; readonly root: string };
      assert.equal(isRunning(pid), true);
      test.kill(signal);
      await until("the node is gone", () => !isRunning(pid));
      rmSync(root, { recursive: true });
    }
  });
});
