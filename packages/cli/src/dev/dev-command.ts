/** `holdfast dev`: a cluster of real processes on this machine. */
import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { CommandFailure } from "../command-failure.js";
import type { Io } from "../io.js";
import { json, plain } from "../output.js";
import { defaultEndpoints } from "./cluster-file.js";
import type { ClusterSize } from "./cluster-file.js";
import { configFor, makeFolder, newConfig, storageFailure, usage, writeConfig } from "./folder.js";
import type { NodeEnd, NodeProcess } from "./node-process.js";
import { clusterOf, takenPorts } from "./ports.js";
import type { PortAddress, TakenPort } from "./ports.js";
import { takeRunFile } from "./run-file.js";
import type { RunFile } from "./run-file.js";
import { show } from "./show.js";
import { Supervisor } from "./supervisor.js";

export interface DevOptions {
  /** Null: as many as the folder holds, else 3. */
  readonly size: ClusterSize | null;
  readonly data: string;
  /** A configuration file of one's own, copied into the folder at the first start; null: the folder's, or a new one. */
  readonly config: string | null;
  readonly isJson: boolean;
}

export interface DevNode {
  readonly id: string;
  /** Advertised to clients, "host:port". */
  readonly client: string;
  /** Where it listens, for both. */
  readonly listens: readonly PortAddress[];
}

export interface DevParts {
  readonly io: Io;
  /** Checks the text of a configuration. */
  readonly readNodes: (text: string, file: string) => readonly DevNode[];
  /** The id of the leader, null while there is none that can be reached. */
  readonly findLeader: (endpoints: readonly string[]) => Promise<string | null>;
  /** What runs one node. */
  readonly wordsFor: (id: string, config: string, folder: string) => readonly [string, ...string[]];
  /** Called once with what to do at SIGINT, SIGTERM and SIGHUP. */
  readonly onStopSignal: (stop: () => void) => void;
}

/** Nodes of a cluster that was killed a moment ago let go of their ports within this time. */
const staleWaitMs = 10_000;
const leaderPollMs = 100;
const helpPage = "docs/operations.md#a-node-that-refuses-to-start";

/** Runs until it is asked to stop, or no node is left. Returns the exit code. A start that is refused leaves no files behind. */
export async function runDev(options: DevOptions, parts: DevParts): Promise<number> {
  if (options.data === "") throw usage("--data is empty: name the folder that the nodes keep their data in");
  if (options.config === "") throw usage("--config is empty: name a configuration file");
  try {
    return await startIn(path.resolve(options.data), options, parts);
  } catch (error) {
    throw storageFailure(error) ?? error;
  }
}

async function startIn(data: string, options: DevOptions, parts: DevParts): Promise<number> {
  const own = options.config === null ? null : path.resolve(options.config);
  const config = configFor(data, own) ?? newConfig(data, options.size ?? 3);
  const nodes = parts.readNodes(config.text, show(config.source));
  if (options.size !== null && !config.isNew && nodes.length !== options.size) {
    throw usage(
      `${show(data)} holds a cluster of ${nodesText(nodes.length)}, not of ${options.size}; leave out --nodes, or name another folder with --data`,
    );
  }
  const isNewFolder = !existsSync(data);
  if (isNewFolder) await portsAreFree(nodes, false);
  makeFolder(data);
  const runFile = takeFolder(data, nodes);
  try {
    if (!isNewFolder) await portsAreFree(nodes, runFile.wasStale);
    writeConfig(config);
    return await new LocalCluster(options, parts, { data, config: config.file, nodes }).run();
  } finally {
    runFile.remove();
  }
}

function takeFolder(data: string, nodes: readonly DevNode[]): RunFile {
  const runFile = takeRunFile(
    data,
    nodes.map((node) => node.client),
  );
  if (runFile.other === null) return runFile;
  const { pid, endpoints } = runFile.other;
  throw new CommandFailure(
    "directoryInUse",
    "directory_in_use",
    `a cluster runs here already: process ${pid}, ports ${endpoints.join(", ")}, data in ${show(data)}; stop it with Ctrl-C in its terminal or kill ${pid}`,
  );
}

async function portsAreFree(nodes: readonly DevNode[], wasStale: boolean): Promise<void> {
  const addresses = nodes.flatMap((node) => node.listens);
  const endMs = performance.now() + (wasStale ? staleWaitMs : 0);
  let taken = await takenPorts(addresses);
  while (taken.length > 0 && performance.now() < endMs) {
    await sleep(leaderPollMs);
    taken = await takenPorts(addresses);
  }
  if (taken.length === 0) return;
  throw new CommandFailure("portInUse", "port_in_use", portsText(taken));
}

function portsText(taken: readonly TakenPort[]): string {
  const texts = taken.map(({ port, pid }) => `${port}${pid === null ? "" : ` (process ${pid})`}`);
  const pids = [...new Set(taken.flatMap(({ pid }) => (pid === null ? [] : [pid])))];
  const clusters = new Set(pids.map(clusterOf));
  const [cluster = null] = clusters;
  const isOneCluster = clusters.size === 1 && cluster !== null;
  const owner = isOneCluster ? `, all by the cluster of process ${cluster} (holdfast dev)` : "";
  const kill = isOneCluster ? `kill ${cluster}` : `kill ${pids.join(" ")}`;
  const advice = pids.length === 0 ? "free it" : `stop it (${kill})`;
  return `${taken.length === 1 ? "a port is" : "ports are"} in use: ${texts.join(", ")}${owner}; ${advice}, or give --config with other ports`;
}

class LocalCluster {
  readonly #options: DevOptions;
  readonly #parts: DevParts;
  readonly #place: { readonly data: string; readonly config: string; readonly nodes: readonly DevNode[] };
  readonly #supervisor: Supervisor;
  #isStopping = false;

  constructor(
    options: DevOptions,
    parts: DevParts,
    place: { readonly data: string; readonly config: string; readonly nodes: readonly DevNode[] },
  ) {
    this.#options = options;
    this.#parts = parts;
    this.#place = place;
    const { data, config, nodes } = place;
    const starts = nodes.map(({ id }) => {
      const folder = path.join(data, id);
      return { id, folder, words: parts.wordsFor(id, config, folder) };
    });
    this.#supervisor = new Supervisor(starts, { onEnded: (end, node, running) => this.#onEnded(end, node, running) });
  }

  async run(): Promise<number> {
    let stops = 0;
    this.#parts.onStopSignal(() => {
      stops += 1;
      this.#isStopping = true;
      if (stops === 1) void this.#supervisor.stop();
      else this.#supervisor.killAll();
    });
    this.#tellNodes();
    void this.#tellLeader();
    await this.#supervisor.allEnded;
    if (this.#isStopping) {
      this.#tell(`stopped; the data stays in ${show(this.#place.data)}`);
      return 0;
    }
    this.#parts.io.err("holdfast: no node is left\n");
    return 1;
  }

  #tellNodes(): void {
    const { data, nodes } = this.#place;
    this.#tell(`starting ${nodesText(nodes.length)}, data in ${show(data)}`);
    for (const node of this.#supervisor.nodes) {
      const client = nodes.find(({ id }) => id === node.id)?.client ?? "";
      this.#tell(`  ${node.id}  clients ${client}  process ${node.pid ?? "-"}  log ${show(node.logFile)}`);
    }
  }

  async #tellLeader(): Promise<void> {
    const startMs = performance.now();
    const endpoints = this.#place.nodes.map((node) => node.client);
    let leader: string | null = null;
    while (leader === null && !this.#isStopping && this.#supervisor.running > 0) {
      leader = await this.#parts.findLeader(endpoints);
      if (leader === null) await sleep(leaderPollMs);
    }
    if (leader === null || this.#isStopping) return;
    if (this.#options.isJson) this.#tellAsJson(leader, endpoints);
    const seconds = ((performance.now() - startMs) / 1_000).toFixed(1);
    const extra = endpoints.join(",") === defaultEndpoints ? "" : ` --endpoints ${endpoints.join(",")}`;
    this.#tell(`leader: ${leader} (after ${seconds} s)`);
    this.#tell("type in another terminal:");
    this.#tell(`  npx holdfast status${extra}`);
    this.#tell(`  npx holdfast lock demo${extra} -- sleep 10`);
    this.#tell("Ctrl-C here stops the cluster");
  }

  #tellAsJson(leader: string, endpoints: readonly string[]): void {
    const { data, config } = this.#place;
    const nodes = this.#supervisor.nodes.map((node) => ({ id: node.id, pid: node.pid ?? null, log: node.logFile }));
    this.#parts.io.tell(json({ pid: process.pid, leader, endpoints, data, config, nodes }));
  }

  /** The rest goes on: a cluster is there to survive this. */
  #onEnded(end: NodeEnd, node: NodeProcess, running: number): void {
    const { io } = this.#parts;
    const how = end.signal === null ? `ended with exit code ${end.code}` : `was ended by ${end.signal}`;
    // A signal comes from outside: what the node said before has nothing to do with it.
    const words = end.signal === null ? node.lastWords() : null;
    io.err(
      `holdfast: node ${end.id} ${how}${words === null ? "" : `: ${plain(words)}`} (log: ${show(node.logFile)})\n`,
    );
    if (running === 0) return;
    const majority = Math.floor(this.#place.nodes.length / 2) + 1;
    const state = running >= majority ? "the others go on" : "no majority is left: nothing is granted until it is back";
    io.err(`holdfast: ${state}; ${this.#advice(end)}\n`);
  }

  #advice({ id, code }: NodeEnd): string {
    if (code !== null && code >= 77 && code <= 84) {
      const data = show(this.#place.data);
      return `starting it again can't help: see ${helpPage}, or, when nothing in it is needed, stop this cluster and remove the whole of ${data}`;
    }
    const damage = code === 74 ? `; if its data is damaged that can't help: see ${helpPage}` : "";
    return `start it again with\n  ${this.#words(id)}${damage}`;
  }

  #words(id: string): string {
    const { data, config } = this.#place;
    return `npx holdfast node --config ${quote(show(config))} --id ${id} --data ${quote(show(path.join(data, id)))}`;
  }

  #tell(line: string): void {
    if (!this.#options.isJson) this.#parts.io.tell(`${line}\n`);
  }
}

/** The executable that is committed. */
export function nodeWords(id: string, config: string, folder: string): readonly [string, ...string[]] {
  const program = fileURLToPath(new URL("../../../bin/holdfast.js", import.meta.url));
  return [process.execPath, program, "node", "--config", config, "--id", id, "--data", folder];
}

function nodesText(count: number): string {
  return `${count} node${count === 1 ? "" : "s"}`;
}

function quote(word: string): string {
  return /^[\w./:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
