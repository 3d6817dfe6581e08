import { strict as assert } from "node:assert";
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { decodeServerFrame, encodeClientFrame, encodeCommand } from "@holdfast/wire";
import type { NodeStatus, ServerMessage } from "@holdfast/wire";
import { WebSocket } from "ws";
import { parseConfig } from "../src/config.js";
import type { Config } from "../src/config.js";
import { exitCodes } from "../src/exit-codes.js";
import { runNode } from "../src/run-node.js";
import { freePorts, memoryLogger, sleep, until } from "./helpers.js";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "holdfast-run-"));
});
after(async () => rm(folder, { recursive: true, force: true }));

async function configOf(count: number, changes: object = {}): Promise<Config> {
  const ports = await freePorts(2 * count);
  const nodes = Array.from({ length: count }, (_, at) => ({
    id: `n${at + 1}`,
    peer: `127.0.0.1:${ports[2 * at]}`,
    client: `127.0.0.1:${ports[2 * at + 1]}`,
  }));
  return parseConfig(JSON.stringify({ cluster: "test", nodes, logLevel: "silent", ...changes }), "test");
}

/** A node in this process. */
class Running {
  readonly ended: Promise<number>;
  code: number | null = null;
  errors = "";
  readonly log = memoryLogger();
  private readonly aborter = new AbortController();
  private readonly client: string;

  constructor(config: Config, nodeId: string, dataDirectory: string, bootstrap?: { firstIndex: number }) {
    this.client = config.nodes.find((node) => node.id === nodeId)?.client ?? "";
    const options = {
      config,
      nodeId,
      dataDirectory,
      signals: false,
      stop: this.aborter.signal,
      logger: this.log,
      writeError: (text: string) => (this.errors += text),
    };
    this.ended = runNode(bootstrap === undefined ? options : { ...options, bootstrap }).then(
      (code) => (this.code = code),
    );
    running.push(this);
  }

  stop(): Promise<number> {
    this.aborter.abort();
    return this.ended;
  }

  async status(): Promise<NodeStatus | null> {
    try {
      const answer = await fetch(`http://${this.client}/v1/status`);
      return answer.status === 200 ? ((await answer.json()) as NodeStatus) : null;
    } catch {
      return null;
    }
  }

  async readiness(): Promise<number> {
    try {
      return (await fetch(`http://${this.client}/readyz`)).status;
    } catch {
      return 0;
    }
  }

  async whenReady(): Promise<void> {
    const endMs = performance.now() + 15_000;
    while ((await this.readiness()) !== 200) {
      assert.equal(this.code, null, `ended: ${this.errors}`);
      assert.ok(performance.now() < endMs, `not ready: ${JSON.stringify(this.log.lines.slice(-5))}`);
      await sleep(20);
    }
  }
}

const running: Running[] = [];
const children: ChildProcess[] = [];
async function stopAll(): Promise<void> {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  await Promise.all(running.splice(0).map((node) => node.stop()));
}

let directories = 0;
function newDirectory(): string {
  return join(folder, `d${(directories += 1)}`);
}

/** Opens sessions at a one-node cluster, one entry each. */
async function openSessions(config: Config, count: number, info = ""): Promise<void> {
  const socket = new WebSocket(`ws://${config.nodes[0]?.client}/`);
  const answers: ServerMessage[] = [];
  let isClosed = false;
  socket.on("close", () => (isClosed = true));
  socket.on("message", (data) => answers.push(...decodeServerFrame(data as Buffer)));
  await once(socket, "open");
  socket.send(
    encodeClientFrame([{ kind: "hello", protocol: 1, features: [], clusterId: null, seenIndex: 0, info: "" }]),
  );
  for (let n = 0; n < count; n += 1) {
    const key = n.toString(16).padStart(32, "0");
    socket.send(
      encodeClientFrame([
        { kind: "command", payload: encodeCommand({ kind: "openSession", key, ttlMs: 60_000, info }) },
      ]),
    );
  }
  const opened = (): number => answers.filter(({ kind }) => kind === "sessionOpened").length;
  await until(() => isClosed || opened() === count, "sessions are open", 10_000);
  assert.ok(!isClosed, "the node is there");
  socket.terminate();
}

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

/** A cluster's nodes in this process; each can be stopped and started again. */
class Trio {
  readonly config: Config;
  readonly folders: readonly string[];
  readonly nodes: Running[];

  constructor(config: Config) {
    this.config = config;
    this.folders = config.nodes.map(() => newDirectory());
    this.nodes = config.nodes.map((_, at) => this.start(at));
  }

  start(at: number): Running {
    return new Running(this.config, `n${at + 1}`, this.folders[at] ?? "");
  }

  async restart(at: number): Promise<void> {
    const node = this.start(at);
    this.nodes[at] = node;
    await node.whenReady();
  }

  async whenReady(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.whenReady()));
  }

  async stop(): Promise<number[]> {
    return Promise.all(this.nodes.map((node) => node.stop()));
  }

  async leader(): Promise<number> {
    for (const endMs = performance.now() + 10_000; performance.now() < endMs; await sleep(20)) {
      for (const [at, node] of this.nodes.entries()) {
        if (node.code === null && (await node.status())?.role === "leader") return at;
      }
    }
    return assert.fail("no leader");
  }

  async exchangeThird(folder: string | null): Promise<void> {
    const third = this.folders[2] ?? "";
    await rm(third, { recursive: true, force: true });
    if (folder !== null) await cp(folder, third, { recursive: true });
  }
}

describe("three nodes", () => {
  let cluster: Trio;
  before(async () => {
    cluster = new Trio(await configOf(3));
    await cluster.whenReady();
  });
  after(stopAll);

  test("form one cluster; the leader's stop hands leadership over", async () => {
    const ids = await Promise.all(cluster.nodes.map(async (node) => (await node.status())?.clusterId));
    assert.equal(new Set(ids).size, 1);
    const at = await cluster.leader();
    const term = (await cluster.nodes[at]?.status())?.term ?? 0;
    const beganMs = performance.now();
    assert.equal(await cluster.nodes[at]?.stop(), 0);
    const next = await cluster.leader();
    const tookMs = performance.now() - beganMs;
    assert.ok(tookMs < 2_000, `the stop and the new leader took ${tookMs} ms`);
    assert.equal((await cluster.nodes[next]?.status())?.term, term + 1, "one election, by transfer");
    for (const node of cluster.nodes)
      assert.ok(!node.log.lines.some(({ text }) => text.includes("process is gone")), "a goodbye is no death");
    await cluster.restart(at);
  });

  test("a wiped directory is refused at each start, and the old one taken back", async () => {
    assert.equal(await cluster.nodes[2]?.stop(), 0);
    const intact = `${cluster.folders[2]}.intact`;
    await cp(cluster.folders[2] ?? "", intact, { recursive: true });
    await cluster.exchangeThird(null);
    for (let start = 0; start < 2; start += 1) {
      const wiped = cluster.start(2);
      assert.equal(await wiped.ended, exitCodes.wrongInstance.code);
      assert.match(
        wiped.errors,
        /^holdfast: n3: n[12] refuses this node: the cluster knows n3 with another data directory/,
      );
    }
    assert.equal(await cluster.nodes[0]?.readiness(), 200);
    await cluster.exchangeThird(intact);
    await cluster.restart(2);
  });

  test("a directory of another cluster ends, and the cluster doesn't", async () => {
    const foreign = new Trio(await configOf(3));
    await foreign.whenReady();
    await foreign.stop();
    const own = `${cluster.folders[2]}.own`;
    await cluster.nodes[2]?.stop();
    await cp(cluster.folders[2] ?? "", own, { recursive: true });
    await cluster.exchangeThird(foreign.folders[2] ?? "");
    const stray = cluster.start(2);
    assert.equal(await stray.ended, exitCodes.wrongCluster.code);
    assert.match(stray.errors, /^holdfast: n3: n[12] refuses this node: n[12] belongs to cluster id \w+, not \w+\n$/);
    await sleep(1_200);
    assert.deepEqual([cluster.nodes[0]?.code, cluster.nodes[1]?.code], [null, null]);
    assert.equal(await cluster.nodes[0]?.readiness(), 200);
    await cluster.exchangeThird(own);
    await cluster.restart(2);
  });

  test("all stop and come back", async () => {
    const before = await cluster.nodes[0]?.status();
    assert.deepEqual(await cluster.stop(), [0, 0, 0]);
    for (const at of [0, 1, 2]) cluster.nodes[at] = cluster.start(at);
    await cluster.whenReady();
    assert.equal((await cluster.nodes[0]?.status())?.clusterId, before?.clusterId);
  });

  test("an old copy of a directory is refused, and its later starts too, whoever has forgotten", async () => {
    await cluster.nodes[2]?.stop();
    const old = `${cluster.folders[2]}.old`;
    await cp(cluster.folders[2] ?? "", old, { recursive: true });
    await cluster.restart(2);
    await cluster.nodes[2]?.stop();
    await cluster.exchangeThird(old);
    const copy = cluster.start(2);
    assert.equal(await copy.ended, exitCodes.oldCopy.code);
    assert.match(copy.errors, /refuses this node: n3's data directory is an old copy/);
    await cluster.stop();
    const again = cluster.start(2);
    assert.equal(await again.ended, exitCodes.oldCopy.code, "with nobody there to say so");
    assert.match(again.errors, /quarantine: old copy: /);
  });
});

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
    const file = join(folder, `config-${ports[0]}.json`);
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
    const { child } = await startChild();
    // While it is stopped, both become due together.
    child.kill("SIGSTOP");
    child.kill("SIGTERM");
    child.kill("SIGINT");
    child.kill("SIGCONT");
    const [code] = (await once(child, "exit")) as [number | null];
    assert.ok(code === exitCodes.interrupted.code || code === exitCodes.terminated.code, `${code}`);
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
