/** Whole nodes for tests, in the test's own process. */
import { strict as assert } from "node:assert";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { cp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodeServerFrame, encodeClientFrame, encodeCommand } from "@holdfast/wire";
import type { NodeStatus, ServerMessage } from "@holdfast/wire";
import { WebSocket } from "ws";
import { parseConfig } from "../src/config.js";
import type { Config } from "../src/config.js";
import { runNode } from "../src/run-node.js";
import { freePorts, memoryLogger, sleep, until } from "./helpers.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-run-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

export function pathInFolder(name: string): string {
  return join(folder, name);
}

export async function configOf(count: number, changes: object = {}): Promise<Config> {
  const ports = await freePorts(2 * count);
  const nodes = Array.from({ length: count }, (_, at) => ({
    id: `n${at + 1}`,
    peer: `127.0.0.1:${ports[2 * at]}`,
    client: `127.0.0.1:${ports[2 * at + 1]}`,
  }));
  return parseConfig(JSON.stringify({ cluster: "test", nodes, logLevel: "silent", ...changes }), "test");
}

/** A node in this process. */
export class Running {
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
    const endMs = performance.now() + 60_000;
    while ((await this.readiness()) !== 200) {
      assert.equal(this.code, null, `ended: ${this.errors}`);
      assert.ok(performance.now() < endMs, `not ready: ${JSON.stringify(this.log.lines.slice(-5))}`);
      await sleep(20);
    }
  }
}

const running: Running[] = [];
export const children: ChildProcess[] = [];
export async function stopAll(): Promise<void> {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  await Promise.all(running.splice(0).map((node) => node.stop()));
}

let directories = 0;
export function newDirectory(): string {
  return join(folder, `d${(directories += 1)}`);
}

/** To the highest cluster version that its nodes run; nothing happens when it is there. `endpoint`: the leader's. */
export async function raiseVersion(endpoint: string): Promise<void> {
  const socket = new WebSocket(`ws://${endpoint}/`);
  const answers: ServerMessage[] = [];
  socket.on("message", (data) => answers.push(...decodeServerFrame(data as Buffer)));
  await once(socket, "open");
  const hello = { kind: "hello", protocol: 1, features: [], clusterId: null, seenIndex: 0, info: "" } as const;
  socket.send(encodeClientFrame([hello, { kind: "finalize", id: 1 }]));
  await until(() => answers.some(({ kind }) => kind === "finalized"), "the version is raised");
  socket.terminate();
}

/** Opens sessions at a one-node cluster, one entry each. */
export async function openSessions(config: Config, count: number, info = ""): Promise<void> {
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

/** A cluster's nodes in this process; each can be stopped and started again. */
export class Trio {
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
    for (const endMs = performance.now() + 60_000; performance.now() < endMs; await sleep(20)) {
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
