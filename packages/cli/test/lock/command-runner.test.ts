import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { CommandRunner } from "../../src/lock/command-runner.js";
import type { RunOptions } from "../../src/lock/command-runner.js";
import { processTable } from "../../src/process-table.js";
import type { ProcessTable } from "../../src/process-table.js";
import { until } from "../until.js";
import { FakeLease } from "./fake-lease.js";

const minuteMs = 60_000;
let folder = "";
let marks: string[] = [];

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "holdfast lock-"));
});

/** Nothing that a test started outlives it, whatever happened. */
afterEach(() => {
  for (const row of processTable().rows()) {
    if (marks.some((mark) => processTable().hasVariable(row.pid, mark))) process.kill(row.pid, "SIGKILL");
  }
  marks = [];
  rmSync(folder, { recursive: true });
});

function runnerOf(
  script: string,
  lease: FakeLease,
  options: Partial<RunOptions> = {},
  table: ProcessTable = processTable(),
): CommandRunner {
  const mark = `HOLDFAST_RUN=${randomUUID()}`;
  marks.push(mark);
  const environment = { HOLDFAST_RUN: mark.slice("HOLDFAST_RUN=".length), FOLDER: folder };
  return new CommandRunner(
    { words: ["sh", "-c", script], environment, mark, graceMs: 1_000, isInteractive: false, ...options },
    { lease, table },
  );
}

/** The pid that the script has written to a file in FOLDER. */
async function pidIn(name: string): Promise<number> {
  const file = path.join(folder, name);
  await until(() => existsSync(file) && /^\d+\n$/.test(readFileSync(file, "utf8")), `${name} holds a pid`);
  return Number(readFileSync(file, "utf8"));
}

function isRunning(pid: number): boolean {
  return processTable()
    .rows()
    .some((row) => row.pid === pid);
}

test("the exit code is passed on, and 128 + n for a signal", async () => {
  assert.deepEqual(await runnerOf("exit 0", new FakeLease(minuteMs)).run(), { kind: "ended", code: 0 });
  assert.deepEqual(await runnerOf("exit 42", new FakeLease(minuteMs)).run(), { kind: "ended", code: 42 });
  assert.deepEqual(await runnerOf("kill -KILL $$", new FakeLease(minuteMs)).run(), { kind: "ended", code: 137 });
});

test("a command that can't start: 127 not found, 126 not executable", async () => {
  const missing = await runnerOf("", new FakeLease(minuteMs), { words: ["holdfast-no-such-command"] }).run();
  assert.equal(missing.kind === "notStarted" && missing.code, 127);
  const folderAsCommand = await runnerOf("", new FakeLease(minuteMs), { words: [folder] }).run();
  assert.equal(folderAsCommand.kind === "notStarted" && folderAsCommand.code, 126);
  const zeroByte = await runnerOf("", new FakeLease(minuteMs), { words: ["echo", "a\0b"] }).run();
  assert.equal(zeroByte.kind === "notStarted" && zeroByte.code, 126);
});

test("words reach the command as they are", async () => {
  const words: [string, ...string[]] = [
    "sh",
    "-c",
    'printf "%s|" "$@" > "$FOLDER/out"',
    "sh",
    "--ttl",
    "a b",
    "--",
    "*",
  ];
  await runnerOf("", new FakeLease(minuteMs), { words }).run();
  assert.equal(readFileSync(path.join(folder, "out"), "utf8"), "--ttl|a b|--|*|");
});

test("a lease that is renewed in time doesn't touch the command", async () => {
  // Long enough for a machine that stalls.
  const leaseMs = 1_500;
  const lease = new FakeLease(leaseMs);
  const renewal = setInterval(() => lease.renew(leaseMs), 50);
  const end = setTimeout(() => writeFileSync(path.join(folder, "outlived"), ""), leaseMs + 100);
  const script = 'until test -f "$FOLDER/outlived"; do sleep 0.05; done; exit 7';
  const result = await runnerOf(script, lease, { graceMs: 100 }).run();
  clearInterval(renewal);
  clearTimeout(end);
  assert.deepEqual(result, { kind: "ended", code: 7 });
});

test("when the grace is left of a lease, the whole group gets SIGTERM, grandchildren too", async () => {
  // It begins to run out when all are there: a slow machine takes its time to start them.
  const lease = new FakeLease(minuteMs);
  const script = `
    trap 'echo told > "$FOLDER/told"; exit 0' TERM
    sh -c 'sh -c "echo \\$\\$ > \\"$FOLDER/grandchild\\"; exec sleep 1000"; true' &
    wait`;
  const run = runnerOf(script, lease, { graceMs: 2_700 }).run();
  const grandchild = await pidIn("grandchild");
  const startMs = performance.now();
  lease.renew(3_000);
  assert.deepEqual(await run, { kind: "lost", reason: "not_renewed", survivors: [] });
  const tookMs = performance.now() - startMs;
  assert.ok(tookMs >= 295, `stopped after ${tookMs} ms, before the grace began`);
  assert.ok(tookMs < 2_980, `only ${tookMs} ms after the start: at SIGKILL, not at SIGTERM`);
  assert.equal(existsSync(path.join(folder, "told")), true);
  assert.equal(isRunning(grandchild), false);
});

test("what ignores SIGTERM is killed at the end of the lease, not later and not before", async () => {
  const lease = new FakeLease(minuteMs);
  const script = `trap '' TERM; (trap '' TERM; echo $$ > "$FOLDER/parent"; sh -c 'echo $$ > "$FOLDER/child"; exec sleep 1000'); true`;
  const run = runnerOf(script, lease, { graceMs: 700 }).run();
  const pids = [await pidIn("parent"), await pidIn("child")];
  const endMs = performance.now() + 1_200;
  lease.renew(1_200);
  let diedMs = 0;
  const watch = setInterval(() => {
    if (diedMs === 0 && !pids.some(isRunning)) diedMs = performance.now();
  }, 5);
  const result = await run;
  await until(() => diedMs > 0, "both are gone");
  clearInterval(watch);
  assert.equal(result.kind, "lost");
  assert.ok(diedMs > endMs - 200, `killed ${endMs - diedMs} ms before the end`);
  // How promptly is a matter of the machine; that it isn't left to the script's own end is not.
  assert.ok(diedMs < endMs + 30_000, `killed ${diedMs - endMs} ms after the end`);
});

test("a command that is stopped (SIGSTOP) can still end at SIGTERM", async () => {
  const script = `trap 'exit 0' TERM; echo $$ > "$FOLDER/pid"; kill -STOP $$; sleep 1000 & wait`;
  const lease = new FakeLease(minuteMs);
  const run = runnerOf(script, lease, { graceMs: 29_500 }).run();
  await pidIn("pid");
  const startMs = performance.now();
  lease.renew(30_000);
  assert.equal((await run).kind, "lost");
  assert.ok(performance.now() - startMs < 15_000);
});

test("members that made groups or sessions of their own, or lost their parents, are stopped too", {
  skip: process.platform !== "linux",
}, async () => {
  const script = `
    timeout 1000 sh -c 'echo $$ > "$FOLDER/timeout"; exec sleep 1000' &
    setsid sh -c 'echo $$ > "$FOLDER/session"; exec sleep 1000' &
    (setsid sh -c 'echo $$ > "$FOLDER/daemon"; exec sleep 1000' &)
    wait`;
  const lease = new FakeLease(minuteMs);
  const run = runnerOf(script, lease).run();
  const pids = await Promise.all(["timeout", "session", "daemon"].map(pidIn));
  lease.lose("expired");
  assert.deepEqual(await run, { kind: "lost", reason: "expired", survivors: [] });
  assert.deepEqual(pids.map(isRunning), [false, false, false]);
});

test("where the mark can't be seen, descent and groups still show the family", async () => {
  const script = `
    timeout 1000 sh -c 'echo $$ > "$FOLDER/group"; exec sleep 1000' &
    (sh -c 'echo $$ > "$FOLDER/orphan"; exec sleep 1000' &)
    wait`;
  const lease = new FakeLease(minuteMs);
  const run = runnerOf(script, lease, {}, processTable("darwin")).run(); // asks ps, as on every system but Linux
  const pids = await Promise.all(["group", "orphan"].map(pidIn));
  lease.lose("expired");
  assert.deepEqual(await run, { kind: "lost", reason: "expired", survivors: [] });
  assert.deepEqual(pids.map(isRunning), [false, false]);
});

test("lost by expiry: killed at once; taken by force: the grace to clean up", async () => {
  const script = `trap 'sleep 0.3; echo cleaned > "$FOLDER/$NAME"; exit 0' TERM; echo $$ > "$FOLDER/pid-$NAME"; sleep 1000 & wait`;
  for (const [reason, mayClean] of [
    ["expired", false],
    ["forced", true],
  ] as const) {
    const lease = new FakeLease(minuteMs);
    const runner = runnerOf(`NAME=${reason}; ${script}`, lease, { graceMs: 5_000 });
    const run = runner.run();
    await pidIn(`pid-${reason}`);
    lease.lose(reason);
    assert.deepEqual(await run, { kind: "lost", reason, survivors: [] });
    assert.equal(existsSync(path.join(folder, reason)), mayClean);
  }
});

test("a command that ends while we are stuck, after its lease has run out, ended without the lock", async () => {
  const run = runnerOf("sleep 0.1; exit 0", new FakeLease(300), { graceMs: 100 }).run();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600); // the loop stands still
  assert.equal((await run).kind, "lost");
});

test("signals are passed on to the whole group", async () => {
  const script = `sh -c 'echo $$ > "$FOLDER/child"; exec sleep 1000'; true`;
  const runner = runnerOf(script, new FakeLease(minuteMs));
  const run = runner.run();
  const child = await pidIn("child");
  runner.forward("SIGTERM");
  assert.deepEqual(await run, { kind: "ended", code: 143 });
  await until(() => !isRunning(child), "the child ends too");
});

test("interactive: the command shares our group; its family is stopped, we and our other children are not", {
  skip: process.platform !== "linux",
}, async () => {
  const bystander = spawn("sleep", ["1000"], { stdio: "ignore" });
  try {
    const script = `
      (sh -c 'echo $$ > "$FOLDER/orphan"; exec sleep 1000' &)
      timeout 1000 sh -c 'echo $$ > "$FOLDER/job"; exec sleep 1000' &
      echo $$ > "$FOLDER/pid"
      wait`;
    const lease = new FakeLease(minuteMs);
    const run = runnerOf(script, lease, { isInteractive: true }).run();
    const pids = await Promise.all(["orphan", "job", "pid"].map(pidIn));
    const groups = new Map(
      processTable()
        .rows()
        .map((row) => [row.pid, row.group]),
    );
    assert.equal(
      groups.get(pids[2] ?? 0),
      groups.get(process.pid),
      "it shares our group, so that it may read from the terminal",
    );
    lease.lose("expired");
    assert.deepEqual(await run, { kind: "lost", reason: "expired", survivors: [] });
    assert.deepEqual(pids.map(isRunning), [false, false, false]);
    assert.equal(isRunning(bystander.pid ?? 0), true);
  } finally {
    bystander.kill("SIGKILL");
  }
});

test("interactive: Ctrl-C comes from the terminal and is not sent a second time", async () => {
  const script = `trap 'echo x >> "$FOLDER/int"' INT; trap 'exit 9' TERM; echo $$ > "$FOLDER/pid"; while :; do sleep 0.05; done`;
  const runner = runnerOf(script, new FakeLease(minuteMs), { isInteractive: true });
  const run = runner.run();
  await pidIn("pid");
  runner.forward("SIGINT");
  runner.forward("SIGTERM");
  assert.deepEqual(await run, { kind: "ended", code: 9 });
  assert.equal(existsSync(path.join(folder, "int")), false);
});
