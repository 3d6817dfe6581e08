/** Stdout and stderr that can't be written: a reader that went away, a full disk. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { freePorts, holdfastBin } from "../harness/cluster.js";
import { until } from "../harness/until.js";
import { isRunning } from "./cli-process.js";

const onLinux = { skip: process.platform !== "linux" };

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast cli-"));
  try {
    await body(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A shell line with the command as "$@"; what it says on what is left open, and its exit code. */
function inShell(line: string, words: readonly string[]): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawn("sh", ["-c", line, "sh", process.execPath, holdfastBin, ...words], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  let err = "";
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, out, err })));
}

test("a full disk at stderr changes no exit code", onLinux, () =>
  inFolder(async (folder) => {
    const [peer = 0, client = 0] = await freePorts(2);
    const config = join(folder, "cluster.json");
    const address = (port: number): string => `127.0.0.1:${port}`;
    writeFileSync(
      config,
      JSON.stringify({ cluster: "c", nodes: [{ id: "n1", peer: address(peer), client: address(client) }] }),
    );
    const node = ["node", "--config", config, "--id", "n1", "--data", config];
    assert.equal((await inShell('"$@"', node)).code, 74);
    assert.equal((await inShell('"$@" 2>/dev/full', node)).code, 74);
    assert.equal((await inShell('"$@" 2>/dev/full >/dev/full', node)).code, 74);
    assert.equal((await inShell('"$@" 2>/dev/full', ["lock", "a"])).code, 2);
  }),
);

test("a command whose result can't be written has failed", onLinux, async () => {
  const full = await inShell('"$@" >/dev/full', ["--version"]);
  assert.equal(full.code, 1);
  assert.match(full.err, /^holdfast: the result can't be written: ENOSPC[^\n]*\n$/);
  const unread = await inShell('{ sleep 0.3; "$@"; echo "code $?" >&2; } | true', ["--version"]);
  assert.equal(unread.err, "code 1\n", "who reads no further knows it");
});

test("dev goes on when nobody reads it any more, and stops in order", onLinux, () =>
  inFolder(async (folder) => {
    const ports = await freePorts(2);
    const [peer, client] = ports.map((port) => `127.0.0.1:${port}`);
    const config = join(folder, "own.json");
    writeFileSync(config, JSON.stringify({ cluster: "c", nodes: [{ id: "n1", peer, client }] }));
    const dev = spawn(process.execPath, [holdfastBin, "dev", "--config", config, "--data", join(folder, "data")], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    const ended = new Promise<number | null>((resolve) => dev.once("exit", resolve));
    let out = "";
    dev.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
    await until("its first lines", () => / process \d+ /.test(out));
    dev.stdout.destroy();
    dev.stderr.destroy();
    const pid = Number(/ process (\d+) /.exec(out)?.[1]);
    await until("the node leads", async () => {
      try {
        return (await fetch(`http://${client}/readyz`)).ok;
      } catch {
        return false;
      }
    });
    // The supervisor looks for the leader, and tells of it, within a few tenths of a second.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    assert.ok(isRunning(pid) && dev.exitCode === null, "both run on");
    dev.kill("SIGTERM");
    assert.equal(await ended, 0);
    assert.ok(!isRunning(pid));
  }),
);
