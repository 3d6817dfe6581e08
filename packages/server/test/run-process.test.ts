import { strict as assert } from "node:assert";
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { afterEach, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { WebSocket } from "ws";
import { parseConfig } from "../src/config.js";
import type { Config } from "../src/config.js";
import { exitCodes } from "../src/exit-codes.js";
import { freePorts, until } from "./helpers.js";
import { children, newDirectory, openSessions, pathInFolder, stopAll } from "./node-harness.js";

describe("a node as a process", () => {
  afterEach(stopAll);

  interface Child {
    readonly child: ChildProcess;
    readonly config: Config;
    errors(): string;
    log(): string;
  }

  /** `prefix`: words of a shell before the node's own command. */
  async function startChild(fault = "", prefix = ""): Promise<Child> {
    const ports = await freePorts(2);
    const file = pathInFolder(`config-${ports[0]}.json`);
    const text = JSON.stringify({
      cluster: "test",
      nodes: [{ id: "n1", peer: `127.0.0.1:${ports[0]}`, client: `127.0.0.1:${ports[1]}` }],
    });
    await writeFile(file, text);
    const script = fileURLToPath(new URL("./run-node-child.js", import.meta.url));
    const child = spawn(
      "bash",
      ["-c", `${prefix} exec "$@"`, "bash", process.execPath, script, file, "n1", newDirectory(), fault],
      {
        stdio: ["ignore", "pipe", "pipe", "ipc"],
        env: { ...process.env, HOLDFAST_LOG: "info" },
      },
    );
    children.push(child);
    let errors = "";
    let log = "";
    child.stderr?.on("data", (data: Buffer) => (errors += data.toString()));
    child.stdout?.on("data", (data: Buffer) => (log += data.toString()));
    await until(() => log.includes("serving as leader"), "it serves", 15_000);
    return { child, config: parseConfig(text, file), errors: () => errors, log: () => log };
  }

  test("SIGTERM and SIGINT stop it in order", async () => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      const { child, errors } = await startChild();
      child.kill(signal);
      assert.deepEqual(await once(child, "close"), [0, null]);
      assert.equal(errors(), "");
    }
  });

  test("a second signal ends it at once", async () => {
    for (const [signal, exit] of [
      ["SIGTERM", exitCodes.terminated],
      ["SIGINT", exitCodes.interrupted],
    ] as const) {
      const { child, config, log } = await startChild();
      // A client that doesn't answer its goodbye holds the stop up for half a second.
      const socket = new WebSocket(`ws://${config.nodes[0]?.client}/`);
      await once(socket, "open");
      socket.on("error", () => undefined);
      socket.pause();
      const ended = once(child, "close");
      child.kill("SIGTERM");
      await until(() => log().includes("stopping in order"), "it has begun to stop");
      child.kill(signal);
      assert.deepEqual(await ended, [exit.code, null]);
      socket.terminate();
    }
  });

  test("an error that nobody caught ends it, with a sentence", async () => {
    for (const fault of ["throws", "rejects"]) {
      const { child, errors } = await startChild(fault);
      child.send("now");
      assert.deepEqual(await once(child, "close"), [exitCodes.internal.code, null]);
      assert.equal(errors(), "holdfast: n1: an unexpected error: out of the blue\n");
    }
  });

  test("its disk fails under it: one sentence, exit code 74, and no more answers", async () => {
    // No file may grow beyond 64 kB, and the signal for that is ignored: writes fail as on a full disk.
    const { child, config, errors, log } = await startChild("", 'trap "" XFSZ; ulimit -f 64;');
    const ended = once(child, "close");
    await openSessions(config, 400, "x".repeat(1_000)).catch(() => undefined);
    assert.deepEqual(await ended, [exitCodes.storage.code, null]);
    assert.match(errors(), /^holdfast: n1: [^\n]+\n$/);
    assert.match(log(), /"level":"error".*"reason":"storage"/);
  });
});
