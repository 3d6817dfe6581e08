import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { fileURLToPath } from "node:url";
import { until } from "../until.js";

it("nothing stays behind when a run is killed in the middle of its faults", { timeout: 120_000 }, async () => {
  const scratch = mkdtempSync(join(tmpdir(), "holdfast-killed-"));
  const script = fileURLToPath(new URL("./stays-behind.js", import.meta.url));
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const child = spawn(process.execPath, [script], {
    env: { ...env, TMPDIR: scratch },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout.setEncoding("utf8").once("data", resolve);
    child.once("exit", () => reject(new Error("it ended")));
  });
  const { folder, pids } = JSON.parse(line) as { folder: string; pids: number[] };
  const isOurs = (name: string): boolean => name.startsWith("holdfast-machine-") && !folder.endsWith(name);
  assert.ok(readdirSync(scratch).some(isOurs));
  child.kill("SIGKILL");
  // Each ends with its input; the frozen one must be thawed for that.
  await until("no victim is left", () => pids.every((pid) => !existsSync(`/proc/${pid}`)));
  await until("no folder is left", () => !readdirSync(scratch).some(isOurs));
  assert.ok(!readFileSync("/proc/self/mounts", "utf8").includes(scratch));
  await until("no group is left", () => groupsOf(child.pid ?? 0).length === 0);
  for (const pid of pids) assert.deepEqual(sharedMemoryOf(pid), []);
  rmSync(folder, { recursive: true });
  rmdirSync(scratch);
});

/** Groups of the freezer that this process has made. */
function groupsOf(pid: number): string[] {
  const mounts = readFileSync("/proc/self/mounts", "utf8").split("\n");
  const roots = mounts.map((line) => line.split(" ")).filter(([, , type = ""]) => type.startsWith("cgroup"));
  return roots.flatMap(([, root = "/"]) => readdirSync(root).filter((name) => name.startsWith(`holdfast-${pid}-`)));
}

function sharedMemoryOf(pid: number): string[] {
  return existsSync("/dev/shm") ? readdirSync("/dev/shm").filter((name) => name.endsWith(`_${pid}`)) : [];
}
