/** Everything that runs in one run: network, store, nodes, workers; and what was seen of them. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { getJson } from "@holdfast/server/http-get";
import type { NodeStatus } from "@holdfast/wire";
import { machineMs } from "../clock.js";
import { NodeLogs } from "../history/node-log.js";
import { Recorder } from "../history/recorder.js";
import { keepEveryMs, WrittenLogs } from "../history/written-logs.js";
import type { MachineFault, MachineFaults } from "../machine/machine.js";
import { harness } from "../network/network.js";
import type { Network, Party } from "../network/network.js";
import type { ChildEnd } from "../processes/child.js";
import { clusterFileFor } from "../processes/cluster-file.js";
import { NodeProcess } from "../processes/node.js";
import { WorkerProcess } from "../processes/worker.js";
import type { Scenario } from "../scenario/scenario.js";
import type { PostgresServer } from "../store/postgres.js";
import type { StoreWays } from "../store/store-ways.js";
import type { Report } from "../worker/protocol.js";
import { Noise } from "./noise.js";
import { Links } from "./links.js";
import { hasQuorum } from "./quorum.js";

export const prober: Party = "prober";
/** The probe's own locks, taken in turn: one that it has lost stays closed for a while, and says nothing of the service. */
const probeLocks = Array.from({ length: 8 }, (_, at) => `probe:${at + 1}`);
/** Between two grants: the grain of what it sees. */
const probeRestMs = 50;
const statusTimeoutMs = 1_000;
const statusEveryMs = 100;
/** After a fault a node still speaks of it. */
const aftermathMs = 3_000;

export interface WorldParts {
  readonly scenario: Scenario;
  readonly folder: string;
  readonly network: Network;
  readonly machine: MachineFaults;
  readonly server: PostgresServer;
  readonly storeWays: StoreWays;
}

export class World {
  readonly parts: WorldParts;
  readonly recorder: Recorder = new Recorder();
  readonly logs: NodeLogs = new NodeLogs();
  readonly noise: Noise = new Noise();
  readonly written: WrittenLogs;
  readonly links: Links;
  readonly nodes: ReadonlyMap<Party, NodeProcess>;
  readonly workers: ReadonlyMap<Party, WorkerProcess>;
  /** Stopped or slowed by a fault: no promise about time counts on them. */
  readonly afflicted: Set<Party> = new Set();
  private readonly relievedAt = new Map<Party, number>();
  /** What should never have happened. */
  readonly problems: string[] = [];
  /** Workers that stand at the gate wait here for who armed it. */
  onGate: ((worker: WorkerProcess) => void) | null = null;
  /** Ends of nodes that nobody asked for are faults, unless a fault of the machine explains them. */
  readonly exits: { readonly node: Party; readonly end: ChildEnd }[] = [];
  private readonly statuses = new Map<Party, NodeStatus>();
  private isQuorumUp: boolean | null = null;
  private isWatching = true;
  private readonly keeping: NodeJS.Timeout;

  constructor(parts: WorldParts) {
    this.parts = parts;
    const { scenario, folder, network, machine, storeWays } = parts;
    this.links = new Links(network, storeWays);
    this.written = new WrittenLogs(join(folder, "data", "written"));
    this.keeping = setInterval(() => this.keepWritten(), keepEveryMs).unref();
    const ids = nodeIds(scenario);
    this.nodes = new Map(ids.map((id) => [id, this.makeNode(id, ids, folder, network, machine)]));
    const names = workerNames(scenario);
    this.workers = new Map([prober, ...names].map((name, at) => [name, this.makeWorker(name, at, ids)]));
  }

  get workerNames(): readonly Party[] {
    return workerNames(this.parts.scenario);
  }

  node(id: Party): NodeProcess {
    const node = this.nodes.get(id);
    if (node === undefined) throw new Error(`there is no node ${id}`);
    return node;
  }

  worker(name: Party): WorkerProcess {
    const worker = this.workers.get(name);
    if (worker === undefined) throw new Error(`there is no worker ${name}`);
    return worker;
  }

  /** All faults of the machine that the schedule ever puts under this party. */
  machineFaultsOf(party: Party): readonly MachineFault[] {
    return this.parts.scenario.schedule.flatMap(({ action }): MachineFault[] => {
      if (action.kind === "pause") return action.how === "freeze" && !this.nodes.has(party) ? [{ kind: "frozen" }] : [];
      // Who a role is shows only when the step begins: everybody who may be meant is made ready.
      return action.kind === "machine" && action.who.some((role) => mayMean(role, party)) ? [action.fault] : [];
    });
  }

  async startNode(id: Party): Promise<void> {
    await this.node(id).start(this.machineFaultsOf(id));
  }

  /** Of each node that answers. */
  async askAll(): Promise<ReadonlyMap<Party, NodeStatus>> {
    const answers = await Promise.all([...this.nodes.keys()].map(async (id) => [id, await this.ask(id)] as const));
    return new Map(answers.flatMap(([id, status]) => (status === null ? [] : [[id, status] as const])));
  }

  /** Looks at the nodes until `stopWatching`. */
  watch(): readonly Promise<void>[] {
    return [...this.nodes.keys()].map((id) => this.watchNode(id));
  }

  stopWatching(): void {
    this.noise.stop();
    this.isWatching = false;
  }

  /** Nodes have stopped: what they wrote last is kept, and nothing more comes. */
  stopKeeping(): void {
    clearInterval(this.keeping);
    this.keepWritten();
    this.written.stop();
  }

  private keepWritten(): void {
    for (const { id, directory } of this.nodes.values()) this.written.keep(id, directory);
  }

  /** Tells the history when a majority comes or goes. */
  tellQuorum(): void {
    const isUp = hasQuorum(
      [...this.nodes.keys()],
      (id) => this.statuses.has(id) && !this.afflicted.has(id),
      (one, other) => this.links.areWhole(one, other),
    );
    if (isUp === this.isQuorumUp) return;
    this.isQuorumUp = isUp;
    this.recorder.event({ kind: "quorum", up: isUp });
  }

  async ask(id: Party): Promise<NodeStatus | null> {
    if (!this.node(id).isRunning) return null;
    try {
      const address = this.parts.network.addressOf(harness, id, "client");
      return await getJson<NodeStatus>(address, "/v1/status", { timeoutMs: statusTimeoutMs });
    } catch {
      return null;
    }
  }

  relieve(party: Party): void {
    this.afflicted.delete(party);
    this.relievedAt.set(party, machineMs());
  }

  private wasAfflicted(party: Party): boolean {
    return this.afflicted.has(party) || machineMs() - (this.relievedAt.get(party) ?? 0) < aftermathMs;
  }

  private async watchNode(id: Party): Promise<void> {
    while (this.isWatching) {
      const status = await this.ask(id);
      if (status === null) this.statuses.delete(id);
      else {
        this.statuses.set(id, status);
        this.recorder.commitSeen(status.commitIndex);
      }
      this.tellQuorum();
      await new Promise((resolve) => setTimeout(resolve, statusEveryMs));
    }
  }

  private makeNode(
    id: Party,
    ids: readonly Party[],
    folder: string,
    network: Network,
    machine: MachineFaults,
  ): NodeProcess {
    const { electionTimeoutMs, limits } = this.parts.scenario;
    const timing = { electionTimeoutMs, heartbeatMs: Math.max(10, Math.floor(electionTimeoutMs / 5)) };
    const configFile = join(folder, `${id}.json`);
    writeFileSync(configFile, clusterFileFor(id, ids, network, { timing, limits }));
    const directory = join(folder, "data", id);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const options = { id, configFile, directory, logFile: join(folder, `${id}.log`) };
    const events = {
      onStart: (node: Party) => this.recorder.event({ kind: "started", node, index: 0 }),
      onLine: (node: Party, line: string) => {
        for (const event of this.logs.eventsOf(node, line)) this.recorder.event(event);
        // One that we have stopped or slowed down says so too.
        if (!this.wasAfflicted(node)) this.noise.note(this.logs.waitMsIn(line));
      },
      onExit: (node: Party, end: ChildEnd) => {
        this.logs.onDeath(node);
        this.exits.push({ node, end });
        this.recorder.event({ kind: "crashed", process: node });
      },
    };
    return new NodeProcess(options, { network, machine, events });
  }

  private makeWorker(name: Party, number: number, ids: readonly Party[]): WorkerProcess {
    const { scenario, network, machine, folder, server, storeWays } = this.parts;
    const isProber = name === prober;
    const addresses = Object.fromEntries(
      ids.map((id) => [network.bindAddress(id, "client"), network.addressOf(name, id, "client")]),
    );
    const directory = join(folder, "data", name);
    mkdirSync(directory, { recursive: true });
    const order = {
      role: isProber ? ("prober" as const) : ("worker" as const),
      endpoints: ids.map((id) => network.bindAddress(id, "client")),
      addresses,
      ttlMs: scenario.ttlMs,
      locks: isProber ? probeLocks : lockNames(scenario),
      storeUrl: isProber ? null : server.urlAt(storeWays.addressFor(name)),
      holdMs: scenario.holdMs,
      restMs: isProber ? probeRestMs : scenario.restMs,
    };
    const options = { name, number: number + 1, order, logFile: join(folder, `${name}.log`), directory };
    const events = {
      onReport: (worker: WorkerProcess, client: string, report: Report) => this.onReport(worker, client, report),
      onExit: (worker: WorkerProcess, client: string, end: ChildEnd) => {
        if (end !== 0) this.recorder.event({ kind: "crashed", process: client });
        if (end !== 0 && end !== "SIGKILL") this.problems.push(`${worker.name} ended with ${end}`);
      },
    };
    return new WorkerProcess({ ...options, faults: this.machineFaultsOf(name) }, { network, machine, events });
  }

  private onReport(worker: WorkerProcess, client: string, said: Report): void {
    const report = this.hasOwnClock(worker.name) ? withoutDeadline(said) : said;
    switch (report.kind) {
      case "event":
        this.recorder.event(report.event, report.at);
        return;
      case "guarded":
        this.recorder.guardedOperation({ ...report, client });
        return;
      case "acknowledgedBy":
        this.recorder.acknowledgedBy(report);
        return;
      case "atGate":
        this.onGate?.(worker);
        return;
      case "broken":
        this.problems.push(`${client}: ${report.problem}`);
        return;
      case "holding":
      case "drained":
        return;
      default:
        report satisfies never;
    }
  }

  /** Its clocks run at a rate of their own. */
  private hasOwnClock(worker: Party): boolean {
    return this.machineFaultsOf(worker).some(({ kind }) => kind === "clockRate");
  }
}

/** It tells true times, but how much is left of a lease only by its own clock. */
function withoutDeadline(report: Report): Report {
  if (report.kind !== "event" || report.event.kind !== "state") return report;
  return { ...report, event: { ...report.event, since: null } };
}

export function nodeIds({ nodes }: Scenario): readonly Party[] {
  return Array.from({ length: nodes }, (_, at) => `n${at + 1}`);
}

export function workerNames({ workers }: Scenario): readonly Party[] {
  return Array.from({ length: workers }, (_, at) => `w${at + 1}`);
}

export function lockNames({ locks }: Scenario): readonly string[] {
  return Array.from({ length: locks }, (_, at) => `lock:${at + 1}`);
}

function mayMean(role: string, party: Party): boolean {
  const isNode = /^n\d/.test(party);
  if (role === party || role === "nodes") return role === party || isNode;
  if (/^(leader|follower\d*|followers)$/.test(role)) return isNode;
  return (role === "holder" || role === "workers" || role === "clients") && !isNode;
}
