import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, describe, it } from "node:test";
import { Started } from "../processes.js";
import { until } from "../until.js";

const folder = mkdtempSync(path.join(os.tmpdir(), "holdfast-bench-test-"));
const moduleOf = (/** @type {string} */ name) => JSON.stringify(new URL(`../${name}`, import.meta.url).href);

const isRunning = (/** @type {number} */ pid) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe("processes that are measured", { skip: process.platform !== "linux" }, () => {
  after(() => rmSync(folder, { recursive: true, force: true }));

  it("say why they have ended", async () => {
    const started = new Started("short", [process.execPath, "-e", "console.error('no such port'); process.exit(3)"], {
      folder,
    });
    await started.ended;
    assert.throws(() => started.pid, /short has ended:\nno such port/);
    assert.equal(started.isRunning, false);
  });

  it("answer questions, and reject them when they end", async () => {
    const script = "process.on('message', ({ n }) => n === 0 ? process.exit() : process.send({ twice: 2 * n }))";
    const started = new Started("asked", [process.execPath, "-e", script], { folder, hasChannel: true });
    assert.deepEqual(await started.ask({ n: 21 }), { twice: 42 });
    await assert.rejects(started.ask({ n: 0 }), /asked has ended/);
  });

  it("end with who started them, by a signal, an error or a kill, and so does the folder where they ran", async () => {
    const script = `
      const { makeWorkspace } = await import(${moduleOf("workspace.js")});
      const { Started } = await import(${moduleOf("processes.js")});
      const folder = makeWorkspace(${JSON.stringify(folder)});
      const { pid } = new Started("idle", [process.execPath, "-e", "setInterval(() => {}, 1_000)"], { folder });
      process.once("message", () => { throw new Error("as wanted"); });
      process.send({ pid, folder });`;
    for (const way of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGKILL", "error"])) {
      const words = ["--input-type=module", "--eval", script];
      const parent = spawn(process.execPath, words, { stdio: ["ignore", "ignore", "ignore", "ipc"] });
      const [{ pid, folder: own }] = await once(parent, "message");
      assert.equal(isRunning(pid), true);
      if (way === "error") parent.send({});
      else parent.kill(way);
      await once(parent, "exit");
      await until(`the process is gone after ${way}`, () => !isRunning(pid), { limitMs: 20_000 });
      assert.equal(existsSync(own), way === "SIGKILL", `${way}: its folder`);
    }
  });
});
