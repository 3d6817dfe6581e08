/** `holdfast lock NAME -- CMD` against a cluster. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Holdfast } from "@holdfast/client";
import { holdfastBin, TestCluster } from "../harness/cluster.js";
import { until } from "../harness/until.js";
import { CliProcess, isRunning, numberIn, runCli } from "./cli-process.js";
import type { CliResult } from "./cli-process.js";

const onLinux = { skip: process.platform !== "linux" };
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

function lock(words: readonly string[]): CliProcess {
  return new CliProcess(["lock", ...words], environment);
}

function runLock(words: readonly string[]): Promise<CliResult> {
  return runCli(["lock", ...words], environment);
}

test("the command runs while the lock is held, knows name and token, and its exit code is passed on", async () => {
  const script = 'echo "$HOLDFAST_LOCK $HOLDFAST_TOKEN"; exit 7';
  const first = await runLock(["env", "--", "sh", "-c", script]);
  assert.equal(first.code, 7);
  const [, token] = /^env (\d+)\n$/.exec(first.out) ?? [];
  const second = await runLock(["env", "--", "sh", "-c", `test "$HOLDFAST_TOKEN" -gt ${token}`]);
  assert.equal(second.code, 0, "the second token is greater");
  assert.equal(await holdfast.inspect("env"), null, "released");
  assert.equal((await runLock(["env", "--", "sh", "-c", "kill -KILL $$"])).code, 137);
  const missing = await runLock(["env", "--lock-delay", "60s", "--", "holdfast-no-such-command"]);
  assert.deepEqual([missing.code, missing.err], [127, "holdfast: holdfast-no-such-command: command not found\n"]);
  assert.equal(await holdfast.inspect("env"), null, "released when nothing could be started");
});

test("not obtained: 75 at once with --no-wait, after --wait, or the code of one's own; the message names the holder", async () => {
  const held = await holdfast.acquire("busy", { info: "somebody else" });
  const atOnce = await runLock(["busy", "--no-wait", "--", "echo", "ran"]);
  assert.deepEqual([atOnce.code, atOnce.out], [75, ""]);
  assert.match(atOnce.err, /^holdfast: "busy" is not free; held by session \d+ \("somebody else"\) with token \d+\n$/);
  const asJson = await runLock(["busy", "--json", "--wait", "200ms", "--conflict-exit-code", "9", "--", "echo", "ran"]);
  assert.deepEqual([asJson.code, asJson.out], [9, ""]);
  assert.equal((JSON.parse(asJson.err) as { error: { code: string } }).error.code, "wait_timeout");
  await held.release();
});

test("waits without limit for its turn", async () => {
  const held = await holdfast.acquire("queue");
  const waiting = lock(["queue", "--", "echo", "ran"]);
  await until("it waits", async () => (await holdfast.inspect("queue"))?.waiterCount === 1);
  await held.release();
  const { code, out } = await waiting.ended;
  assert.deepEqual([code, out], [0, "ran\n"]);
});

test("a signal while it waits: 128 + n, and nothing is left in the queue", async () => {
  const held = await holdfast.acquire("interrupted");
  const waiting = lock(["interrupted", "--", "echo", "ran"]);
  await until("it waits", async () => (await holdfast.inspect("interrupted"))?.waiterCount === 1);
  waiting.child.kill("SIGTERM");
  const { code, out } = await waiting.ended;
  assert.deepEqual([code, out], [143, ""]);
  await until("the queue is empty", async () => (await holdfast.inspect("interrupted"))?.waiterCount === 0);
  await held.release();
});

test("signals reach the command, which decides how it ends", async () => {
  const script = `trap 'echo told; exit 3' TERM; echo $$ > "$FOLDER/signalled"; while :; do sleep 0.05; done`;
  const running = lock(["signalled", "--", "sh", "-c", script]);
  await numberIn(join(folder, "signalled"));
  running.child.kill("SIGTERM");
  const { code, out } = await running.ended;
  assert.deepEqual([code, out], [3, "told\n"]);
});

test("two shared holders run together", async () => {
  const script = `echo $$ > "$FOLDER/shared-$0"; until test -f "$FOLDER/shared-$1"; do sleep 0.05; done`;
  const both = ["a", "b"].map((own) =>
    runLock(["shared", "--shared", "--", "sh", "-c", script, own, own === "a" ? "b" : "a"]),
  );
  assert.deepEqual(
    (await Promise.all(both)).map(({ code }) => code),
    [0, 0],
  );
});

test("places of a semaphore: two run together, each knows its own, a third is refused; others say as many slots or are refused", async () => {
  const script = `echo "$HOLDFAST_SLOT"; echo $$ > "$FOLDER/slot-$0"; until test -f "$FOLDER/slots-end"; do sleep 0.05; done`;
  const both = ["a", "b"].map((own) => lock(["places", "--slots", "2", "--", "sh", "-c", script, own]));
  await Promise.all(["a", "b"].map((own) => numberIn(join(folder, `slot-${own}`))));
  assert.equal((await runLock(["places", "--slots", "2", "--no-wait", "--", "echo", "ran"])).code, 75);
  const other = await runLock(["places", "--slots", "3", "--json", "--", "echo", "ran"]);
  assert.equal((JSON.parse(other.err) as { error: { code: string } }).error.code, "slots_differ");
  writeFileSync(join(folder, "slots-end"), "");
  const ended = await Promise.all(both.map((each) => each.ended));
  assert.deepEqual(ended.map(({ code, out }) => [code, out.trim()]).sort(), [
    [0, "0"],
    [0, "1"],
  ]);
  const wrong = await runLock(["places", "--slots", "2", "--shared", "--", "echo", "ran"]);
  assert.deepEqual([wrong.code, wrong.err], [2, "holdfast: --shared and --slots can't be used together\n"]);
});

test("taken by force: the whole family of the command is stopped, exit code 76 or one's own", onLinux, async () => {
  const script = `(trap '' TERM; echo $$ > "$FOLDER/forced-parent"; sh -c 'echo $$ > "$FOLDER/forced-child"; exec sleep 1000'; true)`;
  const running = lock(["forced", "--grace", "300ms", "--lost-exit-code", "44", "--", "sh", "-c", script]);
  const pids = [await numberIn(join(folder, "forced-parent")), await numberIn(join(folder, "forced-child"))];
  const token = (await holdfast.inspect("forced"))?.holders[0]?.token;
  const released = await runCli(["release", "forced", "--token", String(token), "--force"], environment);
  assert.deepEqual([released.code, released.out], [0, `released forced: 1 hold with token ${token}\n`]);
  const { code, err } = await running.ended;
  assert.equal(code, 44);
  assert.equal(err, "holdfast: the lock on forced is lost (forced): the command was stopped\n");
  assert.deepEqual(pids.map(isRunning), [false, false]);
});

test("a killed leader doesn't disturb the command", async () => {
  // Longer than the lease, which a busy machine's election has to fit into.
  const script = `echo $$ > "$FOLDER/undisturbed"; sleep 7; echo done`;
  const running = lock(["undisturbed", "--ttl", "5s", "--", "sh", "-c", script]);
  await numberIn(join(folder, "undisturbed"));
  const leader = await cluster.leader();
  await leader.kill();
  leader.start();
  const { code, out } = await running.ended;
  assert.deepEqual([code, out], [0, "done\n"]);
});

test("a killed wrapper: the command goes on, and its lock passes on after the TTL", onLinux, async () => {
  const script = `echo $$ > "$FOLDER/orphan"; exec sleep 1000`;
  const running = lock(["orphan", "--ttl", "2s", "--", "sh", "-c", script]);
  const pid = await numberIn(join(folder, "orphan"));
  try {
    running.child.kill("SIGKILL");
    assert.equal((await running.ended).code, "SIGKILL");
    const startMs = performance.now();
    const next = await holdfast.acquire("orphan", { waitMs: 20_000 });
    assert.ok(performance.now() - startMs > 1_000, "not before its lease had run out");
    assert.equal(isRunning(pid), true, "as docs/cli.md says: only the guard stops it");
    await next.release();
  } finally {
    process.kill(pid, "SIGKILL");
  }
});

test(
  "a wrapper that was stopped for longer than the lease stops the command as soon as it wakes",
  onLinux,
  async () => {
    const script = `trap '' TERM; echo $$ > "$FOLDER/stopped"; while :; do sleep 0.05; done`;
    const running = lock(["stopped", "--ttl", "2s", "--", "sh", "-c", script]);
    const pid = await numberIn(join(folder, "stopped"));
    running.child.kill("SIGSTOP");
    const next = await holdfast.acquire("stopped", { waitMs: 20_000 });
    assert.equal(isRunning(pid), true);
    running.child.kill("SIGCONT");
    const { code, err } = await running.ended;
    assert.equal(code, 76);
    assert.match(err, /^holdfast: the lock on stopped is lost \(\w+\): the command was stopped\n$/);
    assert.equal(isRunning(pid), false);
    await next.release();
  },
);

/** Runs `holdfast lock` on a terminal of its own (util-linux's script), and types `input` once FOLDER/`name` is there. */
async function onTerminal(
  name: string,
  shellScript: string,
  input: string,
): Promise<{ code: number | null; out: string }> {
  const words = [process.execPath, holdfastBin, "lock", name, "--", "sh", "-c", shellScript];
  const command = words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  // Without exec a shell like dash stays in between, and Ctrl-C ends that one.
  const child = spawn("script", ["-qec", `exec ${command}`, "/dev/null"], {
    stdio: ["pipe", "pipe", "ignore"],
    env: { ...process.env, ...environment },
  });
  let out = "";
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  await numberIn(join(folder, name));
  child.stdin.write(input);
  const code = await ended;
  return { code, out };
}

const withTerminal = { skip: process.platform !== "linux" || !existsSync("/usr/bin/script") };

test("an interactive command keeps its terminal", withTerminal, async () => {
  const script = `test -t 0 || exit 8; (echo $$ > "$FOLDER/typed"); read line < /dev/tty; echo "got $line"; exit 5`;
  const { code, out } = await onTerminal("typed", script, "hello\r");
  assert.equal(code, 5);
  assert.match(out, /got hello/);
});

test("Ctrl-C on the terminal reaches the command once, and its word counts", withTerminal, async () => {
  const script = `trap 'echo x >> "$FOLDER/ints"; exit 6' INT; echo $$ > "$FOLDER/ctrl-c"; while :; do sleep 0.05; done`;
  const { code } = await onTerminal("ctrl-c", script, "\u0003");
  assert.equal(code, 6);
  assert.equal(readFileSync(join(folder, "ints"), "utf8"), "x\n");
  assert.equal(await holdfast.inspect("ctrl-c"), null);
});
