/** Real node hosts over a virtual clock, network and disk. One process each, which can be paused, cut off, killed and started again. */
import { LockMachine, SnapshotLoader, versionRange } from "@holdfast/lock";
import type { Effect, SnapshotPiece, VersionRange } from "@holdfast/lock";
import type { Configuration, Index, LogBase, Member, Message, NodeId, Term } from "@holdfast/raft";
import type { ClientMessage, PeerHello, ServerMessage } from "@holdfast/wire";
import {
  decodeClientFrame,
  decodePeerFrame,
  decodeServerFrame,
  decodeSnapshotPiece,
  encodeClientFrame,
} from "@holdfast/wire";
import { encodePeerFrame, encodeServerFrame, entryCodec } from "@holdfast/wire";
import { durableFactsOf } from "../../src/formation.js";
import { NodeHost } from "../../src/node-host.js";
import type { NodeHostOptions, StopReason } from "../../src/node-host-types.js";
import { laneFor, lanes } from "../../src/peer-lanes.js";
import { PeerMemory } from "../../src/peer-memory.js";
import type { ClientConnection, Logger } from "../../src/ports.js";
import { MemoryDisk } from "./memory-disk.js";
import { ProcessClock, VirtualClock } from "./virtual-clock.js";

const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} };

export const electionTimeoutMs = 500;
const networkMs = 1;

/** A small seeded generator (mulberry32). */
export function seededRandom(seed: number): { integer(below: number): number } {
  let state = seed >>> 0;
  return {
    integer(below) {
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
    },
  };
}

export interface ClusterOptions {
  readonly nodes?: number;
  /** Index of the log's first entry; 1 by default. */
  readonly firstIndex?: number;
  readonly seed?: number;
  readonly snapshotEntries?: number;
  readonly recordsPerPiece?: number;
  readonly uncommittedBytesMax?: number;
  readonly unappliedEntriesMax?: number;
  /** How fast a node's clock runs; 1 by default. */
  rateFor?(id: NodeId): number;
  /** How long one message is under way; 1 ms by default. The messages of one lane keep their order. */
  delayFor?(from: NodeId, to: NodeId): number;
  /** What each node's release can run; it may change between two starts. */
  readonly versions?: VersionRange;
  /** What a node has just applied. */
  onEffects?(node: VirtualNode, index: number, effects: readonly Effect[]): void;
}

export class VirtualNode {
  readonly id: NodeId;
  readonly disk: MemoryDisk;
  clock: ProcessClock;
  host: NodeHost | null = null;
  stopped: StopReason | null = null;
  /** The number of its start. */
  boot = 0;
  /** What it knows of its peers' promises: dies with its process. */
  memory = new PeerMemory();
  /** Which start of each peer it has met. */
  met = new Map<NodeId, number>();
  /** What its release can run, from its next start on. */
  versions: VersionRange;
  /** What its directory held at its start. */
  hello: Pick<PeerHello, "term" | "last"> = { term: null, last: null };

  constructor(id: NodeId, disk: MemoryDisk, clock: ProcessClock, versions: VersionRange) {
    this.versions = versions;
    this.id = id;
    this.disk = disk;
    this.clock = clock;
  }
}

export class VirtualCluster {
  readonly clock: VirtualClock = new VirtualClock();
  readonly nodes: VirtualNode[] = [];
  /** Directed links that drop everything: "n1>n2". */
  readonly cuts: Set<string> = new Set();
  readonly errors: string[] = [];
  /** What nodes have logged of single requests. */
  readonly details: object[] = [];
  private readonly options: ClusterOptions;
  private readonly configuration: Configuration;
  private readonly arrivals = new Map<string, number>();
  private clientIds = 0;

  constructor(options: ClusterOptions = {}) {
    this.options = options;
    const ids = Array.from({ length: options.nodes ?? 3 }, (_, at) => `n${at + 1}`);
    const voters = ids.map(memberOf);
    this.configuration = { voters, outgoing: [], learners: [], removed: [] };
    for (const id of ids) this.place(id);
    for (const node of this.nodes) this.start(node);
  }

  /** Another node, with what a member hands to one that was added: the log's beginning, as far as it knows that. It runs at once. */
  join(id: NodeId, firstIndex?: number): VirtualNode {
    const node = this.place(id, firstIndex);
    this.start(node);
    return node;
  }

  private place(id: NodeId, firstIndex = this.options.firstIndex ?? 1): VirtualNode {
    const { configuration, clock, options } = this;
    const base: LogBase = { position: { term: 0 as Term, index: (firstIndex - 1) as Index }, chain: 0, configuration };
    const versions = options.versions ?? versionRange;
    const node = new VirtualNode(id, new MemoryDisk(base), new ProcessClock(clock), versions);
    this.nodes.push(node);
    return node;
  }

  node(id: NodeId): VirtualNode {
    return this.nodes.find((node) => node.id === id) as VirtualNode;
  }

  start(node: VirtualNode): void {
    node.clock = new ProcessClock(this.clock, this.options.rateFor?.(node.id) ?? 1);
    node.stopped = null;
    node.boot += 1;
    node.memory = new PeerMemory();
    node.met = new Map();
    const { clock } = node;
    const seed = (this.options.seed ?? 1) * 31 + Number(node.id.slice(1)) + this.clock.nowMs;
    const seeds = seededRandom(seed + 7_919);
    const restored = node.disk.restored();
    const host: NodeHost = new NodeHost(this.hostOptions(node), {
      clock,
      random: seededRandom(seed),
      drawSeed: () => Uint8Array.from({ length: 32 }, () => seeds.integer(256)),
      codec: entryCodec,
      store: node.disk.open(clock),
      restored,
      machine: machineFrom(node.disk, node.versions),
      links: {
        send: (to, messages) => this.deliver(node, host, to, messages),
        close: async () => {},
        noteConfiguration() {},
        notePromise: (peer, promise) => node.memory.notePromise(peer, promise),
        met: () => this.metBy(node),
      },
      logger: {
        ...silent,
        debug: (facts) => this.details.push(facts),
        error: (_, text) => this.errors.push(`${node.id}: ${text}`),
      },
      metrics: {
        observeFsync() {},
        observeAppend() {},
        noteEffects: (effects) => this.options.onEffects?.(node, host.status().lastApplied, effects),
        noteRole() {},
      },
    });
    node.host = host;
    void host.stopped.then((reason) => {
      node.stopped = reason;
      if (reason.kind === "internal")
        this.errors.push(`${node.id}: ${String((reason.error as Error)?.stack ?? reason.error)}`);
    });
    host.start();
    const { term, last } = durableFactsOf(restored);
    node.hello = { term, last };
    for (const other of this.nodes) if (other !== node) this.greet(node, other);
  }

  /** The process dies: what was not synced is gone. With `noticed`, its peers see the closed sockets and the refused reconnect. */
  kill(node: VirtualNode, noticed = true, isWriteDone = false): void {
    node.clock.kill();
    node.disk.crash(isWriteDone);
    node.host = null;
    if (!noticed) return;
    for (const other of this.nodes) {
      if (other === node || other.host === null || this.isCut(node, other)) continue;
      const { host } = other;
      other.clock.deliver(() => host.onPeerGone(node.id));
    }
  }

  /** Cuts the node from all others, both ways. */
  isolate(node: VirtualNode): void {
    for (const other of this.nodes) {
      if (other === node) continue;
      this.cuts.add(`${node.id}>${other.id}`);
      this.cuts.add(`${other.id}>${node.id}`);
    }
  }

  heal(): void {
    this.cuts.clear();
    this.relink();
  }

  /** All links that are not cut are made anew. */
  relink(): void {
    for (const [at, node] of this.nodes.entries())
      for (const other of this.nodes.slice(at + 1)) this.greet(node, other);
  }

  /** Those that run and say they lead. */
  leaders(): VirtualNode[] {
    const runs = (node: VirtualNode): boolean => node.stopped === null && !node.clock.isPaused;
    return this.nodes.filter((node) => runs(node) && node.host?.status().role === "leader");
  }

  async leader(limitMs = 10 * electionTimeoutMs): Promise<VirtualNode> {
    const followed = (): VirtualNode | undefined => {
      const running = this.nodes.filter((node) => node.host !== null && !node.clock.isPaused);
      return this.leaders().find((leader) => {
        const state = leader.host?.status();
        const followers = running.filter(
          (node) => node.host?.status().leader === leader.id && node.host.status().term === state?.term,
        );
        return state !== undefined && state.commitIndex > 0 && followers.length > this.nodes.length / 2;
      });
    };
    await this.clock.until("a leader", () => followed() !== undefined, limitMs);
    return followed() as VirtualNode;
  }

  /** All nodes have applied what the leader has, and hold the same state. */
  async converged(limitMs = 10_000): Promise<void> {
    const applied = (): Set<number | undefined> => new Set(this.nodes.map((node) => node.host?.status().lastApplied));
    await this.clock.until("all have applied the same", () => applied().size === 1, limitMs);
    const hashes = new Set(this.nodes.map((node) => node.host?.stateHash()));
    if (hashes.size !== 1) throw new Error(`states differ at index ${[...applied()].join()}: ${[...hashes].join(" ")}`);
  }

  client(node: VirtualNode, seenIndex = 0, features: readonly string[] = []): VirtualClient {
    this.clientIds += 1;
    const client = new VirtualClient(this.clientIds, node, this.clock);
    node.host?.gateway.onOpened(client);
    client.sendAll({ kind: "hello", protocol: 1, features, clusterId: null, seenIndex, info: "" });
    return client;
  }

  private metBy(node: VirtualNode): ReadonlyMap<NodeId, { readonly versions: VersionRange }> {
    const linked = this.nodes.filter((other) => other !== node && other.host !== null && !this.isCut(node, other));
    return new Map(linked.map(({ id, versions }) => [id, { versions }]));
  }

  private isCut(a: VirtualNode, b: VirtualNode): boolean {
    return this.cuts.has(`${a.id}>${b.id}`) || this.cuts.has(`${b.id}>${a.id}`);
  }

  /** New links between two running nodes, hello and all. Nobody here has an old copy of anything: who says so is wrong. */
  private greet(a: VirtualNode, b: VirtualNode): void {
    if (a.host === null || b.host === null || this.isCut(a, b)) return;
    for (const [judge, other] of [
      [a, b],
      [b, a],
    ] as const) {
      this.judgeHello(judge, other);
      const { host } = judge;
      judge.clock.deliver(() => host?.onPeerReset(other.id));
    }
  }

  private judgeHello(judge: VirtualNode, other: VirtualNode): void {
    const hello = this.helloOf(other, judge.id);
    const problem = judge.memory.problemWith(hello, processOf(other));
    if (problem !== null) this.errors.push(`${judge.id} takes ${other.id} for an old copy: ${problem}`);
    judge.memory.noteHello(hello, processOf(other));
    judge.met.set(other.id, other.boot);
  }

  private helloOf(node: VirtualNode, to: NodeId): PeerHello {
    const { id, boot, versions, hello } = node;
    const own = { from: id, to, instance: instanceOf(id), clusterId: "c".repeat(32), boot, versions, ...hello };
    return { kind: "hello", protocol: 1, cluster: "virtual", ...own };
  }

  /** Each lane of a link keeps its order; what comes late from an earlier process is dropped, as its sockets are. */
  private deliver(from: VirtualNode, sender: NodeHost, to: NodeId, messages: readonly Message[]): void {
    if (from.host !== sender || this.cuts.has(`${from.id}>${to}`)) return;
    const { boot } = from;
    for (const lane of lanes) {
      const own = messages.filter((message) => laneFor(message) === lane);
      if (own.length === 0) continue;
      const way = `${from.id}>${to}/${lane}`;
      const atMs = Math.max(
        this.arrivals.get(way) ?? 0,
        this.clock.nowMs + (this.options.delayFor?.(from.id, to) ?? networkMs),
      );
      this.arrivals.set(way, atMs);
      // Through the real codec: what can't be encoded can't be sent.
      const bytes = encodePeerFrame({ kind: "raft", messages: own });
      this.clock.at(atMs, () => {
        if (this.cuts.has(`${from.id}>${to}`)) return;
        const node = this.nodes.find((each) => each.id === to);
        if (node === undefined) return;
        const frame = decodePeerFrame(bytes);
        if (frame.kind !== "raft") throw new Error("not a raft frame");
        const { host } = node;
        node.clock.deliver(() => {
          if (node.host !== host || host === null || from.boot !== boot) return;
          // A link begins with a hello, whenever it was that it got through.
          if (node.met.get(from.id) !== boot) this.judgeHello(node, from);
          for (const message of frame.messages) node.memory.noteMessage(from.id, message);
          host.onMessages(from.id, frame.messages);
        });
      });
    }
  }

  private hostOptions({ id, versions }: VirtualNode): NodeHostOptions {
    return {
      versions,
      clusterId: "c".repeat(32),
      raft: {
        id,
        electionTimeoutMsMin: electionTimeoutMs,
        heartbeatMs: 100,
        diskStallMs: 1_000,
        limits: {
          uncommittedBytesMax: this.options.uncommittedBytesMax ?? 1_000_000,
          reservedBytesMax: 100_000,
          appendsInFlightMax: 8,
          appendBytesMax: 65_536,
          appendEntriesMax: 256,
          committedBytesPerOutputMax: 65_536,
          trailingEntriesMax: 10,
        },
      },
      gateway: { nodeId: id, version: "0", ttlMsMin: 2_000, ttlMsMax: 3_600_000, sessionsMax: 10_000 },
      unappliedEntriesMax: this.options.unappliedEntriesMax ?? 8_192,
      snapshots: {
        snapshotEntries: this.options.snapshotEntries ?? 100_000,
        snapshotBytes: 1 << 26,
        recordsPerPiece: this.options.recordsPerPiece ?? 1_000,
      },
      writeBytesMax: 1 << 20,
    };
  }
}

/** 32 digits, as a data directory draws them. */
export function instanceOf(id: NodeId): string {
  return id.slice(1).padStart(32, "0");
}

export function memberOf(id: NodeId): Member {
  return { id, instance: instanceOf(id), peer: `${id}:7201`, client: `${id}:7101` };
}

function processOf(node: VirtualNode): string {
  return `${node.id} ${node.boot}`;
}

function machineFrom(disk: MemoryDisk, versions: VersionRange): LockMachine {
  if (disk.snapshot === null) return new LockMachine();
  const loader = new SnapshotLoader(versions);
  for (const bytes of disk.chunks) loader.push(decodeSnapshotPiece(bytes) as SnapshotPiece);
  return loader.finish();
}

/** A client's connection, as a node sees it, and what it was told. */
export class VirtualClient implements ClientConnection {
  readonly id: number;
  readonly remote = "virtual:0";
  readonly received: ServerMessage[] = [];
  closed: string | null = null;
  private readonly node: VirtualNode;
  private readonly clock: VirtualClock;

  constructor(id: number, node: VirtualNode, clock: VirtualClock) {
    this.id = id;
    this.node = node;
    this.clock = clock;
  }

  send(message: ServerMessage): void {
    const [decoded] = decodeServerFrame(encodeServerFrame([message]));
    this.clock.after(networkMs, () => this.received.push(decoded as ServerMessage));
  }

  pause(): void {}

  resume(): void {}

  close(code: number, reason: string): void {
    this.closed = `${code} ${reason}`;
  }

  sendAll(...messages: ClientMessage[]): void {
    const { host } = this.node;
    const decoded = decodeClientFrame(encodeClientFrame(messages));
    this.clock.after(networkMs, () => {
      this.node.clock.deliver(() => {
        if (this.node.host === host) host?.gateway.onFrame(this, { bytes: 0, messages: () => decoded });
      });
    });
  }

  /** The first message that `test` accepts, when it comes. */
  async expectAny(test: (message: ServerMessage) => boolean, limitMs = 20_000): Promise<ServerMessage> {
    await this.clock.until("a client hears it", () => this.received.some(test), limitMs);
    return this.received.find(test) as ServerMessage;
  }

  /** The first message of that kind that `test` accepts, when it comes. */
  async expect<K extends ServerMessage["kind"]>(
    kind: K,
    test: (message: Extract<ServerMessage, { kind: K }>) => boolean = () => true,
    limitMs = 20_000,
  ): Promise<Extract<ServerMessage, { kind: K }>> {
    const find = (): Extract<ServerMessage, { kind: K }> | undefined =>
      this.received.find((message): message is Extract<ServerMessage, { kind: K }> => {
        return message.kind === kind && test(message as Extract<ServerMessage, { kind: K }>);
      });
    await this.clock.until(`a client hears ${kind}`, () => find() !== undefined, limitMs);
    return find() as Extract<ServerMessage, { kind: K }>;
  }
}
