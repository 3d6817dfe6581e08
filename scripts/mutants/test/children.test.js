import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { runNode } from "../children.js";

const children = fileURLToPath(new URL("../children.js", import.meta.url));
const mutants = fileURLToPath(new URL("../../mutants.js", import.meta.url));
/** Generous: machines are slow at times. */
const msMax = 120_000;
/** Starts another process, says its own number and that one's, and goes on for ever. */
const endless = `
  const other = require("node:child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
  console.log(process.pid, other.pid);
  setInterval(() => {}, 1000);`;

it("a process says how it ended", async () => {
  const cwd = os.tmpdir();
  const ending = await runNode(["-e", 'console.log("out"); console.error("err"); process.exitCode = 3'], { cwd });
  assert.deepEqual(ending, { code: 3, signal: null, isLate: false, stdout: "out\n", stderr: "err\n" });
});

it("a process whose time is over ends with what it has started", async () => {
  const { isLate, signal, stdout } = await runNode(["-e", endless], { cwd: os.tmpdir(), msMax: 5_000 });
  assert.ok(isLate);
  assert.equal(signal, "SIGKILL");
  await goneAll(stdout.trim().split(" ").map(Number));
});

it("a signal to the parent alone ends it and all children, and says which signal it was", async () => {
  for (const [signal, expected] of /** @type {const} */ ([
    ["SIGTERM", 143],
    ["SIGINT", 130],
  ])) {
    // The child tells its numbers through a file's name: what it prints is kept by the parent.
    const folder = mkdtempSync(path.join(os.tmpdir(), "holdfast test-"));
    const telling = endless.replace(
      "console.log(process.pid, other.pid)",
      'fs.mkdirSync(process.pid + " " + other.pid)',
    );
    const script = `
      import { endOnSignals, runNode } from ${JSON.stringify(children)};
      endOnSignals();
      await runNode(["-e", ${JSON.stringify(`const fs = require("node:fs");${telling}`)}], { cwd: ${JSON.stringify(folder)} });`;
    const parent = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: "ignore" });
    try {
      await until(() => readdirSync(folder).length > 0, "the child has started");
      const pids = (readdirSync(folder)[0] ?? "").split(" ").map(Number);
      assert.equal(await codeAfter(parent, signal), expected);
      await goneAll(pids);
    } finally {
      parent.kill("SIGKILL");
      rmSync(folder, { recursive: true });
    }
  }
});

it("a signal while mutants are built leaves no copy and no complaint", async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "holdfast test-"));
  const temporary = path.join(folder, "tmp");
  mkdirSync(temporary);
  const env = { ...process.env, TMPDIR: temporary };
  const parent = spawn(process.execPath, [mutants, "--only", "no-check-quorum"], { env });
  let complaints = "";
  parent.stdout.resume();
  parent.stderr.on("data", (text) => void (complaints += text));
  try {
    await until(() => argumentsOfAll().some((line) => line.includes(temporary)), "the compiler runs in a copy");
    assert.equal(await codeAfter(parent, "SIGTERM"), 143);
    // Standard output may have the table's head: on a slow machine the compiler that was seen is the second, the mutant's.
    assert.equal(complaints, "");
    assert.deepEqual(readdirSync(temporary), []);
    await until(() => !argumentsOfAll().some((line) => line.includes(temporary)), "the compiler is gone");
  } finally {
    parent.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
});

/**
 * @param {import("node:child_process").ChildProcess} child
 * @param {NodeJS.Signals} signal
 */
async function codeAfter(child, signal) {
  const end = once(child, "exit");
  child.kill(signal);
  const [code] = await end;
  return code;
}

/** @param {readonly number[]} pids */
async function goneAll(pids) {
  assert.ok(pids.length === 2 && pids.every((pid) => pid > 0), pids.join());
  await until(() => pids.every((pid) => !isAlive(pid)), `${pids.join(" and ")} are gone`);
}

/** @param {number} pid */
function isAlive(pid) {
  // One that nobody has waited for yet is a zombie: it is gone.
  const { stdout } = spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" });
  return stdout.trim() !== "" && !stdout.startsWith("Z");
}

function argumentsOfAll() {
  return spawnSync("ps", ["-A", "-ww", "-o", "args="], { encoding: "utf8" }).stdout.split("\n");
}

/**
 * @param {() => boolean} isSo
 * @param {string} what
 */
async function until(isSo, what) {
  for (const startMs = performance.now(); !isSo(); await sleep(50))
    assert.ok(performance.now() - startMs < msMax, `not within ${msMax} ms: ${what}`);
}
