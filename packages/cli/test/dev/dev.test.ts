import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { localCluster } from "../../src/dev/cluster-file.js";
import { runDev } from "../../src/dev/dev-command.js";
import type { DevOptions, DevParts } from "../../src/dev/dev-command.js";
import { takenPorts } from "../../src/dev/ports.js";
import { CommandFailure } from "../../src/command-failure.js";
import { readStat } from "../../src/process-table.js";
import { until } from "../until.js";
import { areListening, freePorts, inFolder } from "./folder.js";

const fakeNode = fileURLToPath(new URL("./fake-node.js", import.meta.url));
const onLinux = { skip: process.platform !== "linux" };

interface Run {
  readonly result: Promise<number>;
  readonly output: () => string;
  readonly errors: () => string;
  readonly stop: () => void;
  /** Configurations that were checked. */
  readonly texts: readonly string[];
}

/** A cluster of fake nodes on `ports`; `modes` are added to their words. */
function startDev(
  data: string,
  ports: readonly number[],
  options: Partial<DevOptions> = {},
  modes: readonly string[][] = [],
): Run {
  let output = "";
  let errors = "";
  const texts: string[] = [];
  let stop = (): void => undefined;
  const ids = ports.map((_, index) => `n${index + 1}`);
  const listens = ports.map((port) => ({ host: "127.0.0.1", port }));
  const parts: DevParts = {
    io: {
      out: (text) => (output += text),
      tell: (text) => (output += text),
      err: (text) => (errors += text),
      environment: {},
      isInteractive: false,
      hasColours: false,
      isStatusLine: false,
    },
    readNodes: (text) => {
      texts.push(text);
      return ids.map((id, index) => ({ id, client: `127.0.0.1:${ports[index]}`, listens: [listens[index]!] }));
    },
    findLeader: async () => ((await areListening(ports)) ? "n2" : null),
    wordsFor: (id) => [process.execPath, fakeNode, String(ports[ids.indexOf(id)]), ...(modes[ids.indexOf(id)] ?? [])],
    onStopSignal: (run) => (stop = run),
  };
  const result = runDev({ size: null, data, config: null, isJson: false, ...options }, parts);
  return { result, output: () => output, errors: () => errors, stop: () => stop(), texts };
}

test("the generated configuration is that of cluster-configs", () => {
  for (const [size, name] of [
    [3, "three"],
    [5, "five"],
  ] as const) {
    const file = new URL(`../../../../../cluster-configs/${name}-node.json`, import.meta.url);
    assert.deepEqual(localCluster(size), JSON.parse(readFileSync(file, "utf8")));
  }
});

test("starts the nodes, says where things are and who leads, and stops them", () =>
  inFolder(async (data) => {
    const ports = await freePorts(3);
    const run = startDev(data, ports);
    await until(() => run.output().includes("Ctrl-C here stops the cluster"), "the leader is told");
    for (const id of ["n1", "n2", "n3"])
      assert.match(run.output(), new RegExp(`log ${path.join(data, id, "node.log")}\n`));
    assert.match(run.output(), /leader: n2 \(after \d+\.\d s\)\n/);
    assert.match(run.output(), new RegExp(`npx holdfast status --endpoints 127.0.0.1:${ports[0]},`));
    // The port accepts a moment before the node says so.
    await until(() => readFileSync(path.join(data, "n1", "node.log"), "utf8").includes("listening"), "its log");
    run.stop();
    assert.equal(await run.result, 0);
    assert.match(run.output(), /stopped; the data stays in /);
    assert.equal(run.errors(), "");
    assert.deepEqual(await takenPorts(ports.map((port) => ({ host: "127.0.0.1", port }))), []);
  }));

test("--json: one document, when there is a leader", () =>
  inFolder(async (data) => {
    const run = startDev(data, await freePorts(1), { isJson: true });
    await until(() => run.output() !== "", "the document");
    run.stop();
    assert.equal(await run.result, 0);
    const document = JSON.parse(run.output()) as { pid: number; leader: string; nodes: { id: string; log: string }[] };
    assert.deepEqual([document.pid, document.leader], [process.pid, "n2"]);
    assert.equal(document.nodes[0]?.log, path.join(data, "n1", "node.log"));
  }));

test("a second one in the folder names the first's process and ports", () =>
  inFolder(async (data) => {
    const ports = await freePorts(1);
    const run = startDev(data, ports);
    await until(() => run.output().includes("leader"), "the first runs");
    await assert.rejects(startDev(data, await freePorts(1)).result, (error: unknown) => {
      assert.ok(error instanceof CommandFailure);
      assert.equal(error.exitCode, 73);
      assert.match(error.message, new RegExp(`process ${process.pid}, ports 127.0.0.1:${ports[0]},`));
      return true;
    });
    run.stop();
    assert.equal(await run.result, 0);
  }));

test("a port in the way is named, with the process that has it", onLinux, () =>
  inFolder(async (data) => {
    const [port = 0, free = 0] = await freePorts(2);
    const server = createServer().listen(port, "127.0.0.1");
    const failure = await startDev(data, [free, port]).result.catch((error: unknown) => error);
    await new Promise((resolve) => server.close(resolve));
    assert.ok(failure instanceof CommandFailure);
    assert.equal(failure.exitCode, 69);
    assert.match(failure.message, new RegExp(`a port is in use: ${port} \\(process ${process.pid}\\)`));
    const run = startDev(data, [free, port]);
    await until(() => run.output().includes("leader"), "it starts once the port is free");
    run.stop();
    assert.equal(await run.result, 0);
  }),
);

test("a folder keeps its number of nodes", () =>
  inFolder(async (data) => {
    const first = startDev(data, await freePorts(1), { size: 3 });
    await until(() => first.output().includes("leader"), "it runs");
    first.stop();
    await first.result;
    await assert.rejects(startDev(data, [0], { size: 5 }).result, /holds a cluster of 1 node, not of 5/);
  }));

test("a folder keeps the configuration that it was begun with", () =>
  inFolder(async (folder) => {
    const data = path.join(folder, "data");
    const config = path.join(folder, "own.json");
    const ports = await freePorts(1);
    writeFileSync(config, '{ "cluster": "own" }');
    for (const options of [{ config }, {}, { config }]) {
      const run = startDev(data, ports, options);
      await until(() => run.output().includes("leader"), "it runs");
      run.stop();
      assert.equal(await run.result, 0);
      assert.deepEqual(run.texts, ['{ "cluster": "own" }'], "the text that was checked");
      assert.equal(readFileSync(path.join(data, "cluster.json"), "utf8"), '{ "cluster": "own" }');
    }
    writeFileSync(config, '{ "cluster": "other" }');
    const failure = await startDev(data, ports, { config }).result.catch((error: unknown) => error);
    assert.ok(failure instanceof CommandFailure);
    assert.equal(failure.exitCode, 2);
    for (const file of [config, path.join(data, "cluster.json")]) assert.ok(failure.message.includes(file));
  }));

test("a start that is refused leaves nothing behind", () =>
  inFolder(async (folder) => {
    const [port = 0] = await freePorts(1);
    const server = createServer().listen(port, "127.0.0.1");
    const data = path.join(folder, "data");
    await assert.rejects(startDev(data, [port]).result, /a port is in use/);
    assert.deepEqual(readdirSync(folder), []);
    await assert.rejects(startDev(folder, [port]).result, /a port is in use/);
    assert.deepEqual(readdirSync(folder), []);
    await new Promise((resolve) => server.close(resolve));
  }));

test("a folder that can't be written is one sentence and 74", () =>
  inFolder(async (folder) => {
    // A name that no folder may have, since root may write anywhere.
    const failure = await startDev(path.join(folder, "x".repeat(300)), await freePorts(1)).result.catch(
      (error: unknown) => error,
    );
    assert.ok(failure instanceof CommandFailure);
    assert.equal(failure.exitCode, 74);
    mkdirSync(path.join(folder, "n1", "node.log"), { recursive: true });
    const other = await startDev(folder, await freePorts(1)).result.catch((error: unknown) => error);
    assert.ok(other instanceof CommandFailure);
    assert.deepEqual([other.exitCode, other.message.split("\n").length], [74, 1]);
    assert.match(other.message, /node\.log can't be used: EISDIR/);
    assert.equal(existsSync(path.join(folder, "dev.json")), false);
  }));

test("last words: of this run alone, none after a signal, no stacks", onLinux, () =>
  inFolder(async (data) => {
    for (const id of ["n1", "n2", "n3"]) {
      mkdirSync(path.join(data, id));
      writeFileSync(path.join(data, id, "node.log"), '{"level":"error","msg":"an older run\'s"}\n');
    }
    const run = startDev(data, await freePorts(3), {}, [[], ["stack", "80"], ["silent", "70"]]);
    await until(() => run.output().includes("process"), "told");
    await until(() => run.errors().includes("node n2") && run.errors().includes("node n3"), "two have ended");
    const pid = Number(/ {2}n1 .* process (\d+)/.exec(run.output())?.[1]);
    process.kill(pid, "SIGKILL");
    assert.equal(await run.result, 1);
    const log = (id: string): string => path.join(data, id, "node.log");
    assert.ok(run.errors().includes(`node n1 was ended by SIGKILL (log: ${log("n1")})\n`), run.errors());
    assert.ok(
      run.errors().includes(`node n2 ended with exit code 80: it was wiped (log: ${log("n2")})\n`),
      run.errors(),
    );
    assert.ok(run.errors().includes(`node n3 ended with exit code 70 (log: ${log("n3")})\n`), run.errors());
    assert.match(run.errors(), /starting it again can't help: see docs\/operations\.md#a-node-that-refuses-to-start/);
    assert.doesNotMatch(run.errors(), /--id n2/);
  }),
);

test("a node that ends: which, how, what it said, how to start it again; the others go on", () =>
  inFolder(async (data) => {
    const run = startDev(data, await freePorts(3), {}, [[], ["exit", "74"], []]);
    await until(() => run.errors().includes("--id n2"), "the end is told");
    const log = path.join(data, "n2", "node.log");
    assert.ok(
      run
        .errors()
        .startsWith(`holdfast: node n2 ended with exit code 74: the data directory is damaged (log: ${log})\n`),
      run.errors(),
    );
    assert.match(
      run.errors(),
      /the others go on; start it again with\n {2}npx holdfast node --config '.*cluster\.json' --id n2 --data '/,
    );
    run.stop();
    assert.equal(await run.result, 0);
  }));

test("when no node is left it ends with 1", () =>
  inFolder(async (data) => {
    const run = startDev(data, await freePorts(2), {}, [
      ["exit", "2"],
      ["exit", "74"],
    ]);
    assert.equal(await run.result, 1);
    assert.match(run.errors(), /no majority is left/);
    assert.match(run.errors(), /no node is left\n$/);
  }));

test("a second signal kills what doesn't stop", () =>
  inFolder(async (data) => {
    const run = startDev(data, await freePorts(1), {}, [["deaf"]]);
    await until(() => run.output().includes("leader"), "it runs");
    run.stop();
    run.stop();
    assert.equal(await run.result, 0);
  }));

test("nodes end with their parent, though it is killed; the next start finds the folder free", onLinux, () =>
  inFolder(async (data) => {
    const ports = await freePorts(3);
    const program = fileURLToPath(new URL("./parent.js", import.meta.url));
    const parent = spawn(process.execPath, [program, data, ...ports.map(String)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let text = "";
    parent.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
    try {
      await until(() => areListening(ports), "the nodes listen");
    } finally {
      parent.kill("SIGKILL");
    }
    const pids = JSON.parse(text) as number[];
    await until(() => pids.every((pid) => readStat(pid) === null), "all nodes have ended");
    writeFileSync(path.join(data, "dev.json"), JSON.stringify({ pid: parent.pid, startedAt: "1", endpoints: [] }));
    const run = startDev(data, ports);
    await until(() => run.output().includes("leader"), "it starts");
    run.stop();
    assert.equal(await run.result, 0);
  }),
);
