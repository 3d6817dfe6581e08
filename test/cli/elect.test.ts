/** `holdfast elect NAME -- CMD`, and what a waiting command shows at a terminal. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawn } from "node:child_process";
import { after, before, test } from "node:test";
import type { Holdfast } from "@holdfast/client";
import { holdfastBin, TestCluster } from "../harness/cluster.js";
import { until } from "../harness/until.js";
import { CliProcess, isRunning, numberIn, runCli } from "./cli-process.js";

const withTerminals = { skip: existsSync("/usr/bin/script") ? false : "util-linux's script is missing" };
let cluster: TestCluster;
let holdfast: Holdfast;
let folder = "";
let environment: Record<string, string> = {};

before(async () => {
  cluster = await TestCluster.start();
  holdfast = await cluster.connect();
  folder = mkdtempSync(join(tmpdir(), "holdfast cli-"));
  environment = { HOLDFAST_ENDPOINTS: cluster.endpoints.join(","), FOLDER: folder };
});

after(async () => {
  await cluster.close();
  rmSync(folder, { recursive: true });
});

function elect(words: readonly string[]): CliProcess {
  return new CliProcess(["elect", ...words], environment);
}

async function tokenOf(name: string): Promise<number> {
  return (await holdfast.inspect(name))?.holders[0]?.token ?? 0;
}

test("one runs at a time; the next begins when the command of the first has ended, and each passes its exit code on", async () => {
  const script = `echo $$ > "$FOLDER/term-$0"; until test -f "$FOLDER/end-$0"; do sleep 0.05; done; exit 3`;
  const first = elect(["scheduler", "--", "sh", "-c", script, "a"]);
  await numberIn(join(folder, "term-a"));
  const second = elect(["scheduler", "--", "sh", "-c", script, "b"]);
  await until("it waits", async () => (await holdfast.inspect("scheduler"))?.waiterCount === 1);
  assert.equal(existsSync(join(folder, "term-b")), false);
  writeFileSync(join(folder, "end-a"), "");
  assert.equal((await first.ended).code, 3);
  await numberIn(join(folder, "term-b"));
  writeFileSync(join(folder, "end-b"), "");
  assert.equal((await second.ended).code, 3);
  assert.equal(await holdfast.inspect("scheduler"), null);
});

test("who loses the leadership stops its command, and campaigns again", async () => {
  const script = `echo $$ > "$FOLDER/again-$HOLDFAST_TOKEN"; until test -f "$FOLDER/end-again"; do sleep 0.05; done`;
  const running = elect(["again", "--ttl", "4s", "--grace", "500ms", "--", "sh", "-c", script]);
  await until("it is elected", async () => (await tokenOf("again")) > 0);
  const token = await tokenOf("again");
  const pid = await numberIn(join(folder, `again-${token}`));
  const released = await runCli(["release", "again", "--token", String(token), "--force"], environment);
  assert.equal(released.code, 0);
  await until("it is elected again", async () => (await tokenOf("again")) > token);
  await numberIn(join(folder, `again-${await tokenOf("again")}`));
  assert.equal(isRunning(pid), false);
  writeFileSync(join(folder, "end-again"), "");
  const { code, err } = await running.ended;
  const told = "holdfast: the lock on again is lost (forced): the command was stopped; campaigning again\n";
  assert.deepEqual([code, err], [0, told]);
});

test("a signal ends the command that runs, or the campaign; a command that can't be started ends it too", async () => {
  const script = `trap 'exit 5' TERM; echo $$ > "$FOLDER/ended"; while :; do sleep 0.05; done`;
  const running = elect(["ended", "--", "sh", "-c", script]);
  await numberIn(join(folder, "ended"));
  const waiting = elect(["ended", "--", "echo", "ran"]);
  await until("it waits", async () => (await holdfast.inspect("ended"))?.waiterCount === 1);
  waiting.child.kill("SIGTERM");
  const other = await waiting.ended;
  assert.deepEqual([other.code, other.out], [143, ""]);
  running.child.kill("SIGTERM");
  assert.equal((await running.ended).code, 5);
  const missing = await runCli(["elect", "ended", "--", "holdfast-no-such-command"], environment);
  assert.deepEqual([missing.code, missing.err], [127, "holdfast: holdfast-no-such-command: command not found\n"]);
  const without = await runCli(["elect", "ended"], environment);
  assert.match(without.err, /write the command to run after --: holdfast elect NAME -- CMD/);
});

test(
  "at a terminal a wait shows its place, the holder and its token, and colours are there; in a pipe neither is",
  withTerminals,
  async () => {
    const held = await holdfast.acquire("shown", { info: "worker-7" });
    const inTerminal = (words: string): { output: () => string; ended: Promise<number | null> } => {
      const line = `'${process.execPath}' '${holdfastBin}' ${words}`;
      const env = { ...process.env, ...environment, TERM: "xterm" };
      const child = spawn("script", ["--quiet", "--return", "--command", line, "/dev/null"], { env });
      let output = "";
      child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
      return { output: () => output, ended: new Promise((resolve) => child.once("close", resolve)) };
    };
    const waiting = inTerminal("lock shown -- echo ran");
    const expected = `shown: 1st in line; held by worker-7, token ${held.token}`;
    await until("the line", () => waiting.output().includes(expected));
    await held.release();
    assert.equal(await waiting.ended, 0);
    // The line is gone before the command speaks.
    assert.match(waiting.output(), /\r\u001b\[Kran\r\n$/);
    const status = inTerminal("status");
    assert.equal(await status.ended, 0);
    assert.match(status.output(), /\u001b\[32mleader\u001b\[39m/);
    const piped = await runCli(["status"], environment);
    assert.match(piped.out, /leader/);
    assert.doesNotMatch(piped.out, /\u001b/);
  },
);
