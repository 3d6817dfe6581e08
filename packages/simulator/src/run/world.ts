/** One run's whole world: virtual time and network, nodes, clients, resources, the watch and the history. */
import type { Config } from "@holdfast/server";
import type { Ending } from "@holdfast/server/parts";
import { Counts } from "../clients/counts.js";
import { ClusterWatch } from "../invariants/index.js";
import type { Bounds } from "../invariants/index.js";
import { probed } from "../node/host-access.js";
import { SimulatedNode } from "../node/simulated-node.js";
import { Network, usualNetwork } from "../network/index.js";
import type { SimulatedProcess } from "../process.js";
import { streamOf } from "../random.js";
import type { Random } from "../random.js";
import { Recorder } from "../recorder.js";
import { Scheduler } from "../scheduler.js";
import { TraceHash } from "../trace-hash.js";
import { Clients } from "./clients.js";
import { Cuts } from "./cuts.js";
import { Administrator } from "./administrator.js";
import { configFor, firstIdsOf, spareIdsOf } from "./config.js";
import { watchHost } from "./host-watch.js";
import { Members } from "./members.js";
import type { Plan } from "./plan.js";
import { Processes } from "./processes.js";
import { QuorumClock } from "./quorum-clock.js";
import { StuckError } from "./stuck-error.js";
import type { Undo } from "./faults.js";

/** Far above what a run of this size needs. */
const bounds: Bounds = {
  sessions: 5_000,
  waiters: 5_000,
  queuedEvents: 2_000,
  queuedFrames: 2_000,
  queuedWrites: 20_000,
  openRounds: 2_000,
};

export class World {
  readonly plan: Plan;
  readonly hash: TraceHash = new TraceHash();
  readonly scheduler: Scheduler;
  readonly network: Network;
  readonly recorder: Recorder;
  /** All machines for nodes, those too that were never used, and those of nodes that were removed. */
  readonly nodes: readonly SimulatedNode[];
  readonly members: Members;
  readonly administrator: Administrator;
  readonly clients: Clients;
  readonly processes: Processes;
  readonly watch: ClusterWatch;
  readonly counts: Counts = new Counts();
  areFaultsOver = false;
  readonly #quorum: QuorumClock;
  readonly #cuts: Cuts;
  /** Nodes that were started when their removal was committed already. */
  readonly #returned = new Set<string>();
  #impairments = 0;
  #clusterId: string | null = null;
  /** A broken rule, found inside of a process's code, where nothing may be thrown. */
  #failure: Error | null = null;

  constructor(plan: Plan, options: { readonly isShown: boolean }) {
    const { seed, firstIndex } = plan;
    this.plan = plan;
    this.scheduler = new Scheduler(streamOf(seed, "scheduler"), this.hash);
    this.recorder = new Recorder(this.scheduler, { firstIndex, isShown: options.isShown });
    const { latencyMsMax, kernelBytes } = plan.world;
    this.network = new Network(
      { ...usualNetwork, latencyMsMin: latencyMsMax / 5, latencyMsMax, kernelBytes },
      { scheduler: this.scheduler, random: streamOf(seed, "network"), hash: this.hash },
    );
    const firstIds = firstIdsOf(plan);
    this.watch = new ClusterWatch({
      voters: firstIds,
      firstIndex,
      electionTimeoutMs: plan.timing.electionTimeoutMs,
      bounds: plan.limits.snapshotEntries < 1_000 ? { ...bounds, logEntries: 5_000 } : bounds,
      events: {
        onCommitted: () => undefined,
        onLeader: () => {
          this.counts.add("leader elected");
          this.administrator.onLeader();
        },
        onDeposed: () => undefined,
        onMark: (mark) => this.counts.add(mark),
      },
    });
    const config = configFor(plan, firstIds);
    this.nodes = [
      ...firstIds.map((id) => this.#createNode(id, config, () => null)),
      ...spareIdsOf(plan).map((id) => this.#createNode(id, configFor(plan, [id]), () => this.clusterId)),
    ];
    this.#cuts = new Cuts(this.network, () => this.#quorum.note());
    this.members = new Members(this, firstIds);
    this.administrator = new Administrator(this);
    this.clients = new Clients(this);
    this.processes = new Processes(this);
    this.#quorum = new QuorumClock(this);
  }

  /** The first thing that broke a rule. */
  get failure(): Error | null {
    return this.#failure;
  }

  get nowMs(): number {
    return this.scheduler.nowMs;
  }

  stream(name: string): Random {
    return streamOf(this.plan.seed, name);
  }

  /** Those whom a fault may concern: members, and whatever else runs. */
  get cluster(): readonly SimulatedNode[] {
    return this.nodes.filter((node) => node.isRunning || this.members.isMember(node.id));
  }

  /** Null before formation. */
  get clusterId(): string | null {
    return this.#clusterId;
  }

  start(): void {
    const firstIds = firstIdsOf(this.plan);
    for (const node of this.nodes) {
      const random = this.stream(`rate ${node.id}`);
      node.setRate(1 + (2 * random.fraction() - 1) * this.plan.world.driftMax);
      this.recorder.emit({ kind: "clockRate", process: node.id, rate: node.rate });
      if (firstIds.includes(node.id)) node.start();
    }
    for (let count = 0; count < this.plan.clients; count += 1) this.addClient();
    for (let count = 0; count < this.plan.rawClients; count += 1) this.clients.addRaw();
  }

  /** Of those who believe to lead, the one of the latest term. */
  leader(): SimulatedNode | null {
    let leader: SimulatedNode | null = null;
    let term = -1;
    for (const node of this.nodes) {
      const { host } = node;
      if (host === null || node.process?.isPaused === true) continue;
      const { raft } = probed(host);
      if (raft.role !== "leader" || raft.term <= term) continue;
      leader = node;
      term = raft.term;
    }
    return leader;
  }

  node(id: string): SimulatedNode | null {
    return this.nodes.find((node) => node.id === id) ?? null;
  }

  process(id: string): SimulatedProcess | null {
    return this.node(id)?.process ?? this.clients.process(id);
  }

  fail(error: unknown): void {
    this.#failure ??= error instanceof Error ? error : new Error(String(error));
  }

  /** Lets time pass, until a condition holds. Throws what broke a rule meanwhile. */
  async run(ms: number, isDone: () => boolean = () => false): Promise<void> {
    const untilMs = this.nowMs + ms;
    await this.scheduler.run(untilMs, () => this.#failure !== null || isDone());
    if (this.#failure !== null) throw this.#failure;
  }

  /** Of all sessions; locks may have sessions of their own. */
  get longestTtlMs(): number {
    return 2 * this.plan.ttlMs;
  }

  /** Nothing slows or loses what nodes say to one another. */
  get isNetworkPlain(): boolean {
    return this.#impairments === 0;
  }

  /** Delays, losses and narrow links; counted, so that it is known when there are none. */
  impair(undo: Undo): Undo {
    this.#impairments += 1;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#impairments -= 1;
      undo();
    };
  }

  /** A step of a fault: not taken any more when faults are over. */
  later(delayMs: number, run: () => void): void {
    this.after(delayMs, () => {
      if (!this.areFaultsOver) run();
    });
  }

  /** For errands: never resolves once faults are over. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.later(ms, resolve));
  }

  /** Of the world itself, not of a process in it. */
  after(delayMs: number, run: () => void): void {
    this.scheduler.after(delayMs, "world", run);
  }

  // Nodes.

  crash(node: SimulatedNode, kind: "process" | "machine"): void {
    if (!node.isRunning) return;
    this.recorder.tell(node.id, kind === "process" ? "is killed" : "loses power");
    this.recorder.emit({ kind: "crashed", process: node.id });
    // It may die in mid-turn, after it has told others what the watch hasn't seen yet.
    this.#guard(() => this.watch.afterEvent(node.id));
    const lostBefore = node.disk.counts.lostBatches;
    node.crash(kind);
    if (node.disk.counts.lostBatches > lostBefore) this.watch.forgive(node.id);
    this.counts.add(kind === "process" ? "node killed" : "node lost power");
  }

  /** Whether a majority is left when this one never comes back, and one that all clients know. */
  canLose(node: SimulatedNode): boolean {
    if (node.refusedFor !== null) return false;
    const isLeft = (each: SimulatedNode): boolean => each !== node && !each.isSpoilt;
    return this.members.isQuorum(isLeft) && this.members.firstMembers.some(isLeft) && this.administrator.canSpare(node);
  }

  /** Its directory is emptied, while it is down. */
  wipe(node: SimulatedNode): void {
    node.wipe();
    this.watch.onWiped(node.id);
    this.recorder.tell(node.id, "is wiped");
    this.counts.add("node wiped");
  }

  mendDisk(node: SimulatedNode): void {
    const { syncMsMax, readMsMax } = this.plan.world;
    const random = this.stream(`disk ${node.id} ${Math.round(this.nowMs)}`);
    node.disk.syncMs = () => 0.2 + random.fraction() * syncMsMax;
    node.disk.readMs = () => random.fraction() * readMsMax;
  }

  // The network.

  /** All ways between two nodes. */
  ways(): (readonly [string, string])[] {
    const ids = this.nodes.map(({ id }) => id);
    return ids.flatMap((a) => ids.filter((b) => b !== a).map((b) => [a, b] as const));
  }

  cut(from: string, to: string): Undo {
    return this.#cuts.cut(from, to);
  }

  isCut(from: string, to: string): boolean {
    return this.#cuts.isCut(from, to);
  }

  /** Whatever is cut is whole again. */
  healNetwork(): void {
    this.#cuts.heal();
  }

  // Clients.

  clientIds(): readonly string[] {
    return this.clients.liveIds;
  }

  holderIds(): readonly string[] {
    return this.clients.holderIds;
  }

  addClient(): string {
    return this.clients.add();
  }

  killClient(id: string, kind: "process" | "machine" = "process"): void {
    this.recorder.emit({ kind: "crashed", process: id });
    this.counts.add(kind === "process" ? "client killed" : "client lost power");
    if (kind === "machine") this.processes.noteDark(id);
    this.clients.kill(id, kind);
  }

  drainClient(id: string): void {
    this.clients.drain(id);
  }

  #createNode(id: string, config: Config, joins: () => string | null): SimulatedNode {
    const node: SimulatedNode = new SimulatedNode(id, {
      scheduler: this.scheduler,
      network: this.network,
      recorder: this.recorder,
      counts: this.counts,
      config,
      joins,
      firstIndex: this.plan.firstIndex,
      busy: this.plan.world.busy,
      recordsPerPiece: this.plan.limits.recordsPerPiece,
      random: this.stream(`node ${id}`),
      events: {
        onUp: (up) => {
          if (this.members.isRemoved(up.id)) this.#returned.add(up.id);
          this.#quorum.note();
        },
        onHost: (up, host) => {
          this.#clusterId ??= probed(host).options.clusterId;
          watchHost(this, up, host);
        },
        afterEvent: (up) => this.#guard(() => this.watch.afterEvent(up.id)),
        onRead: (node, connection, message) => this.watch.onClientRead(node.id, connection, message),
        onTold: (node, connection, message) => this.watch.onClientTold(node.id, connection, message),
        onDown: (down, ending) => this.#onDown(down, ending),
      },
    });
    node.disk.onBroken = (error) => this.fail(error);
    this.mendDisk(node);
    return node;
  }

  #onDown(node: SimulatedNode, ending: Ending | null): void {
    this.watch.onStopped(node.id);
    this.#quorum.note();
    if (ending === null) return;
    this.recorder.tell(node.id, `ends: ${ending.exit}${ending.sentence === null ? "" : `, ${ending.sentence}`}`);
    this.recorder.emit({ kind: "crashed", process: node.id });
    this.counts.add(`node ended: ${ending.exit}`);
    if (ending.exit === "removed" && this.#returned.has(node.id))
      this.counts.add("removed node came back and was refused");
    if (ending.exit === "wrongInstance") this.counts.add("wiped node refused");
    if (ending.exit === "internal") this.fail(ending.error ?? new Error(ending.sentence ?? "internal"));
    else if (!this.#explains(node, ending))
      this.fail(
        new StuckError("sound-node-ends", `${node.id} ends without a reason: ${ending.sentence ?? ending.exit}`),
      );
    if (node.refusedFor !== null) this.counts.add("node refused for ever");
  }

  #explains(node: SimulatedNode, ending: Ending): boolean {
    return ending.exit === "removed" ? this.members.isRemoved(node.id) : node.explains(ending);
  }

  #guard(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.fail(error);
    }
  }
}
