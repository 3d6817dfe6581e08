/** A cluster of real processes on free ports, with its data in a temporary folder. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect } from "@holdfast/client";
import type { Holdfast } from "@holdfast/client";
import { freePorts as freePortsAt } from "@holdfast/nemesis/free-ports";
import { until } from "./until.js";

export const holdfastBin = fileURLToPath(new URL("../../../packages/cli/bin/holdfast.js", import.meta.url));

export interface ClusterOptions {
  readonly nodes?: number;
  readonly timing?: Readonly<Record<string, number>>;
  readonly limits?: Readonly<Record<string, number>>;
  /** Web origins that may use the client ports. */
  readonly origins?: readonly string[];
  /** Of node itself, before the program. */
  readonly nodeOptions?: readonly string[];
  /** For its first leader; 30 s unless a slow machine needs more. */
  readonly leaderMs?: number;
}

/** As `holdfast dev` starts its nodes: they end when the pipe to this process closes, however it ends. */
const endsWithParent = { HOLDFAST_PARENT_PIPE: "1" };

/** Ports that nobody takes before a node listens on them, or while it is down. */
export async function freePorts(count: number): Promise<readonly number[]> {
  return freePortsAt("127.0.0.1", count);
}

export class TestNode {
  readonly id: string;
  readonly clientPort: number;
  readonly peerPort: number;
  readonly directory: string;
  readonly logFile: string;
  /** The program that the next start runs: this build's, or another release's. */
  bin: string = holdfastBin;
  /** It is started with --join and these endpoints, not with the configuration file. */
  joins: readonly string[] | null = null;
  /** Its writes fail where a file would grow beyond this many KiB: to a program that is what a full disk does. For the next start. */
  fileKibMax: number | null = null;
  private child: ChildProcess | null = null;
  private readonly configFile: string;
  private readonly nodeOptions: readonly string[];

  constructor(id: string, clientPort: number, peerPort: number, root: string, nodeOptions: readonly string[]) {
    this.id = id;
    this.clientPort = clientPort;
    this.peerPort = peerPort;
    this.directory = join(root, id);
    this.logFile = join(root, `${id}.log`);
    this.configFile = join(root, "cluster.json");
    this.nodeOptions = nodeOptions;
  }

  get endpoint(): string {
    return `127.0.0.1:${this.clientPort}`;
  }

  get peer(): string {
    return `127.0.0.1:${this.peerPort}`;
  }

  get isRunning(): boolean {
    return this.child !== null && this.child.exitCode === null && this.child.signalCode === null;
  }

  get pid(): number {
    const pid = this.child?.pid;
    if (pid === undefined) throw new Error(`${this.id} does not run`);
    return pid;
  }

  start(...extra: string[]): void {
    const from =
      this.joins === null
        ? ["--config", this.configFile]
        : ["--join", this.joins.join(","), "--peer", this.peer, "--client", this.endpoint];
    this.startWith("node", ...from, "--id", this.id, "--data", this.directory, ...extra);
  }

  /** With all of its words: a command of the manual. */
  startWith(...words: string[]): void {
    if (this.isRunning) throw new Error(`${this.id} runs already`);
    const log = openSync(this.logFile, "a");
    const command = [process.execPath, ...this.nodeOptions, this.bin, ...words];
    const limited = ["bash", "-c", `ulimit -f ${this.fileKibMax} && exec "$0" "$@"`, ...command];
    const [program, ...args] = this.fileKibMax === null ? command : limited;
    const env = { ...process.env, ...endsWithParent };
    this.child = spawn(program ?? "", args, { stdio: ["pipe", log, log], env });
    // Nothing is written to it, and its end is the node's.
    this.child.stdin?.on("error", () => undefined);
    closeSync(log);
  }

  signal(name: NodeJS.Signals): void {
    this.child?.kill(name);
  }

  /** Resolves with the exit code, or the signal's name. */
  async exited(limitMs = 30_000): Promise<number | string> {
    const child = this.child;
    if (child === null) throw new Error(`${this.id} was never started`);
    return until(
      `${this.id} ends`,
      () => child.signalCode ?? (child.exitCode === null ? null : { code: child.exitCode }),
      limitMs,
    ).then((end) => (typeof end === "string" ? end : end.code));
  }

  async kill(): Promise<void> {
    if (!this.isRunning) return;
    this.signal("SIGKILL");
    await this.exited();
  }

  /** The last lines of its log. */
  get logEnd(): string {
    return this.log().split("\n").slice(-6).join("\n");
  }

  log(): string {
    return readFileSync(this.logFile, "utf8");
  }

  /** So far (Linux): how often its main thread has slept and been woken, and the bytes it has sent to the disk. */
  activity(): { readonly wakeups: number; readonly writtenBytes: number } {
    const count = (file: string, field: RegExp): number => {
      const found = field.exec(readFileSync(`/proc/${this.pid}/${file}`, "utf8"));
      if (found === null) throw new Error(`/proc/${this.pid}/${file} has no ${field.source}`);
      return Number(found[1]);
    };
    return {
      wakeups: count("status", /^voluntary_ctxt_switches:\s+(\d+)/m),
      writtenBytes: count("io", /^write_bytes: (\d+)/m),
    };
  }
}

export class TestCluster {
  readonly root: string;
  private readonly all: TestNode[];
  private readonly clients: Holdfast[] = [];

  private constructor(root: string, nodes: readonly TestNode[]) {
    this.root = root;
    this.all = [...nodes];
  }

  get nodes(): readonly TestNode[] {
    return this.all;
  }

  /** Another node, on ports of its own; it runs, and waits until somebody adds it. */
  async join(id: string): Promise<TestNode> {
    const node = await this.prepareJoin(id);
    node.start();
    return node;
  }

  /** The same, not started. */
  async prepareJoin(id: string): Promise<TestNode> {
    const [clientPort = 0, peerPort = 0] = await freePorts(2);
    const node = new TestNode(id, clientPort, peerPort, this.root, []);
    node.joins = this.all.filter((other) => other.isRunning).map((other) => other.endpoint);
    this.all.push(node);
    return node;
  }

  /** Started, formed, and with a leader. When none comes, nothing of it stays. */
  static async start(options: ClusterOptions = {}): Promise<TestCluster> {
    const cluster = await TestCluster.create(options);
    try {
      for (const node of cluster.nodes) node.start();
      await cluster.leader(options.leaderMs);
      return cluster;
    } catch (error) {
      const ends = cluster.nodes.map(
        ({ id, isRunning, logEnd }) => `${id} ${isRunning ? "runs" : "has ended"}:\n${logEnd}`,
      );
      await cluster.close();
      throw new Error(`${String(error)}\n${ends.join("\n")}`, { cause: error });
    }
  }

  /** Configured, not started. */
  static async create(options: ClusterOptions = {}): Promise<TestCluster> {
    const count = options.nodes ?? 3;
    const ports = await freePorts(2 * count);
    const root = mkdtempSync(join(tmpdir(), "holdfast-test-"));
    const nodes = Array.from({ length: count }, (_, at) => {
      return new TestNode(
        `n${at + 1}`,
        ports[2 * at] as number,
        ports[2 * at + 1] as number,
        root,
        options.nodeOptions ?? [],
      );
    });
    const config = {
      cluster: "test",
      nodes: nodes.map(({ id, clientPort, peerPort }) => ({
        id,
        peer: `127.0.0.1:${peerPort}`,
        client: `127.0.0.1:${clientPort}`,
      })),
      ...(options.timing === undefined ? {} : { timing: options.timing }),
      ...(options.limits === undefined ? {} : { limits: options.limits }),
      ...(options.origins === undefined ? {} : { origins: options.origins }),
    };
    mkdirSync(root, { recursive: true });
    writeFileSync(join(root, "cluster.json"), JSON.stringify(config));
    const cluster = new TestCluster(root, nodes);
    process.once("exit", cluster.killAll);
    return cluster;
  }

  get endpoints(): string[] {
    return this.nodes.map((node) => node.endpoint);
  }

  node(id: string): TestNode {
    const node = this.nodes.find((one) => one.id === id);
    if (node === undefined) throw new Error(`no node ${id}`);
    return node;
  }

  others(than: TestNode): TestNode[] {
    return this.nodes.filter((node) => node !== than);
  }

  async connect(options: Partial<Parameters<typeof connect>[0]> = {}): Promise<Holdfast> {
    const client = await connect({ endpoints: this.endpoints, connectTimeoutMs: 30_000, ...options });
    this.clients.push(client);
    return client;
  }

  /** At the newest cluster version: a client that is faster than the links between the nodes finds the first one. */
  async raise(): Promise<void> {
    const client = await this.connect();
    await until("the newest version", async () => {
      const version = await client.finalizeUpgrade().catch(() => 0);
      const states = await Promise.all(this.nodes.map((node) => statusOf(node)));
      return version > 0 && states.every((state) => state !== null && state.clusterVersion === state.versions.max);
    });
  }

  /** The leader that a majority of the running nodes agree on and that serves. */
  async leader(limitMs = 30_000): Promise<TestNode> {
    return until(
      "a leader",
      async () => {
        const states = await Promise.all(this.nodes.filter((node) => node.isRunning).map((node) => statusOf(node)));
        const known = states.filter((state) => state !== null);
        const leader = known.find((state) => state.role === "leader" && state.lastApplied > 0);
        if (leader === undefined) return null;
        const agreeing = known.filter((state) => state.leader === leader.id && state.term === leader.term);
        return agreeing.length > this.nodes.length / 2 ? this.node(leader.id) : null;
      },
      limitMs,
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.clients.map((client) => client.close({ drainMs: 0 }).catch(() => {})));
    this.killAll();
    await Promise.all(this.nodes.filter((node) => node.isRunning).map((node) => node.exited()));
    process.removeListener("exit", this.killAll);
    rmSync(this.root, { recursive: true, force: true });
  }

  private readonly killAll = (): void => {
    for (const node of this.nodes) {
      if (!node.isRunning) continue;
      node.signal("SIGCONT");
      node.signal("SIGKILL");
    }
  };
}

export interface NodeState {
  readonly id: string;
  readonly role: string;
  readonly term: number;
  readonly leader: string | null;
  readonly commitIndex: number;
  readonly lastApplied: number;
  readonly snapshotIndex: number;
  readonly clusterVersion: number;
  readonly versions: { readonly min: number; readonly max: number };
}

/** What a node says of itself at /v1/status, or null when it doesn't answer within a second. */
export async function statusOf(node: TestNode): Promise<NodeState | null> {
  try {
    const response = await fetch(`http://${node.endpoint}/v1/status`, { signal: AbortSignal.timeout(1_000) });
    return response.ok ? ((await response.json()) as NodeState) : null;
  } catch {
    return null;
  }
}
