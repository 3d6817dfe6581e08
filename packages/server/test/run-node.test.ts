import { strict as assert } from "node:assert";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, describe, test } from "node:test";
import { WebSocket } from "ws";
import { exitCodes } from "../src/exit-codes.js";
import { runNode } from "../src/run-node.js";
import { memoryLogger, sleep } from "./helpers.js";
import { configOf, newDirectory, openSessions, Running, stopAll } from "./node-harness.js";

describe("a node by itself", () => {
  afterEach(stopAll);

  test("forms, serves, stops in order, and remembers, snapshots too", async () => {
    const config = await configOf(1, { limits: { snapshotEntries: 10, trailingEntriesMax: 5 } });
    const directory = newDirectory();
    const first = new Running(config, "n1", directory);
    await first.whenReady();
    await openSessions(config, 60);
    let before = await first.status();
    for (
      const endMs = performance.now() + 5_000;
      before?.snapshotIndex === 0 && performance.now() < endMs;
      before = await first.status()
    )
      await sleep(10);
    assert.equal(before?.sessions, 60);
    assert.ok(before.snapshotIndex > 0, "a snapshot was taken");
    assert.equal(await first.stop(), 0);
    assert.equal(first.errors, "");
    const second = new Running(config, "n1", directory);
    await second.whenReady();
    const status = await second.status();
    assert.equal(status?.sessions, 60);
    assert.equal(status?.clusterId, before.clusterId);
    assert.ok(status.term > before.term);
    const figures = await (await fetch(`http://${config.nodes[0]?.client}/metrics`)).text();
    assert.match(figures, /^holdfast_raft_leader 1$/m);
    assert.match(figures, /^holdfast_server_session_count 60$/m);
    assert.match(figures, /^holdfast_raft_fsync_duration_seconds_count [1-9]/m);
  });

  test("--first-index begins above the fences of a lost cluster, and is only for a new directory", async () => {
    const config = await configOf(1);
    const directory = newDirectory();
    const first = new Running(config, "n1", directory, { firstIndex: 5_000_000 });
    await first.whenReady();
    assert.ok(((await first.status())?.lastIndex ?? 0) >= 5_000_000);
    assert.equal(await first.stop(), 0);
    const second = new Running(config, "n1", directory, { firstIndex: 9_000_000 });
    assert.equal(await second.ended, exitCodes.usage.code);
    assert.match(second.errors, /^holdfast: n1: --bootstrap is for a new data directory.*\n$/);
    for (const firstIndex of [0, -1, 1.5, Number.NaN, 2 ** 60]) {
      const odd = new Running(config, "n1", newDirectory(), { firstIndex });
      assert.equal(await odd.ended, exitCodes.usage.code);
      assert.match(odd.errors, /--first-index .* is not a whole number from 1/);
    }
  });

  test("an id that the file doesn't have", async () => {
    const node = new Running(await configOf(3), "n9", newDirectory());
    assert.equal(await node.ended, exitCodes.usage.code);
    assert.equal(node.errors, 'holdfast: n9: the configuration has no node "n9"; it has n1, n2, n3\n');
  });

  test("a port that is in use, either one", async () => {
    for (const which of ["peer", "client"] as const) {
      const config = await configOf(1);
      const port = config.nodes[0]?.listen[which].port ?? 0;
      const squatter = createServer();
      await new Promise<void>((resolve) => squatter.listen(port, "127.0.0.1", resolve));
      const directory = newDirectory();
      const node = new Running(config, "n1", directory);
      assert.equal(await node.ended, exitCodes.portInUse.code);
      assert.equal(
        node.errors,
        `holdfast: n1: port ${port} for ${which}s (127.0.0.1:${port}) is in use by another process\n`,
      );
      await new Promise((resolve) => squatter.close(resolve));
      const again = new Running(config, "n1", directory);
      await again.whenReady();
    }
  });

  test("a directory that is in use, another node's, or damaged", async () => {
    const config = await configOf(1);
    const directory = newDirectory();
    const first = new Running(config, "n1", directory);
    await first.whenReady();
    const second = new Running(await configOf(1), "n1", directory);
    assert.equal(await second.ended, exitCodes.directoryInUse.code);
    assert.match(second.errors, /^holdfast: n1: .+\n$/);
    let said = "";
    const writeError = (text: string): void => void (said += text);
    const options = { config, nodeId: "n1", dataDirectory: directory, signals: false, logger: memoryLogger() };
    assert.equal(await runNode({ ...options, writeError, isJson: true }), exitCodes.directoryInUse.code);
    const { error } = JSON.parse(said) as { error: { code: string; message: string } };
    assert.equal(error.code, "directory_in_use");
    assert.match(error.message, /^n1: .+ is in use by /);
    assert.equal(await first.stop(), 0);
    const other = new Running(await configOf(3), "n2", directory);
    assert.equal(await other.ended, exitCodes.otherNode.code);
    assert.match(other.errors, /belongs to node n1/);
    const identity = join(directory, "identity");
    const bytes = await readFile(identity);
    bytes.writeUInt8(bytes.readUInt8(10) ^ 1, 10);
    await writeFile(identity, bytes);
    for (const sentence of [/identity/, /quarantine/, /quarantine/]) {
      const damaged = new Running(config, "n1", directory);
      assert.equal(await damaged.ended, exitCodes.storage.code);
      assert.match(damaged.errors, sentence);
    }
  });

  test("waits for the others, says so at /readyz, and can be stopped meanwhile", async () => {
    const config = await configOf(3);
    const node = new Running(config, "n1", newDirectory());
    let text = "";
    const endMs = performance.now() + 10_000;
    while (!/not formed/.test(text) && performance.now() < endMs) {
      text = await fetch(`http://${config.nodes[0]?.client}/readyz`).then(
        (answer) => answer.text(),
        () => "",
      );
      await sleep(10);
    }
    assert.match(text, /"detail":"the cluster is not formed yet"/);
    await assert.rejects(once(new WebSocket(`ws://${config.nodes[0]?.client}/`), "open"), /503/);
    assert.equal(await node.stop(), 0);
  });

  test("stopped before it has begun", async () => {
    const node = new Running(await configOf(1), "n1", newDirectory());
    assert.equal(await node.stop(), 0);
  });
});
