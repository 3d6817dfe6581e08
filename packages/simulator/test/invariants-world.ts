/** Nodes of plain, mutable facts, for planting breaches that no real node would make: a healthy cluster, and ways to bend it. */
import { LockMachine } from "@holdfast/lock";
import type { Command } from "@holdfast/lock";
import type {
  Configuration,
  Entry,
  EntryKind,
  HardState,
  Index,
  LogBase,
  Member,
  NodeId,
  PeerStatus,
  Position,
  Raft,
  RaftStatus,
  RoleName,
  Term,
} from "@holdfast/raft";
import { entryCodec } from "@holdfast/wire";
import type { NodeHost } from "@holdfast/server";
import { ClusterWatch } from "../src/invariants/cluster-watch.js";
import type { Bounds } from "../src/invariants/bounds.js";
import type { ProbedHost } from "../src/invariants/host-probe.js";

export const electionTimeoutMs = 500;

export function configurationOf(
  voters: readonly NodeId[],
  outgoing: readonly NodeId[] = [],
  removed: readonly NodeId[] = [],
): Configuration {
  return { voters: voters.map(memberOf), outgoing: outgoing.map(memberOf), learners: [], removed };
}

function memberOf(id: NodeId): Member {
  return { id, instance: `${id}-1`, peer: `${id}:1`, client: `${id}:2` };
}

/** What the watch looks at in a host. */
export function hostOf(parts: {
  readonly raft: Raft;
  machine(): LockMachine;
  applied(): number;
  isStopped?(): boolean;
  readonly events: ProbedHost["applier"]["events"];
  readonly frames: readonly object[];
}): NodeHost {
  const host: ProbedHost = {
    raft: parts.raft,
    get isStopped() {
      return parts.isStopped?.() ?? false;
    },
    applier: {
      get machine() {
        return parts.machine();
      },
      get lastApplied() {
        return parts.applied();
      },
      events: parts.events,
    },
    snapshots: { keeper: { taking: null } },
    queue: { events: [], clients: { lanes: new Map([["a connection", { frames: parts.frames }]]) } },
    persister: { queue: [] },
    rounds: { inFlight: new Map(), unapplied: [] },
    parts: { codec: entryCodec },
  };
  return host as unknown as NodeHost;
}

export class FakeDisk {
  hardState: HardState = { term: 0 as Term, votedFor: null };
  base: LogBase;
  entries: Entry[] = [];

  constructor(base: LogBase) {
    this.base = base;
  }

  get last(): Position {
    const entry = this.entries.at(-1);
    return entry === undefined ? this.base.position : { term: entry.term, index: entry.index };
  }

  termAt(index: Index): Term | null {
    if (index === this.base.position.index) return this.base.position.term;
    return this.entries[index - this.base.position.index - 1]?.term ?? null;
  }

  chainAt(index: Index): number | null {
    if (index === this.base.position.index) return this.base.chain;
    return this.entries[index - this.base.position.index - 1]?.chain ?? null;
  }
}

export class FakeRaft {
  readonly id: NodeId;
  term = 0 as Term;
  votedFor: NodeId | null = null;
  role: RoleName = "follower";
  leader: NodeId | null = null;
  commitIndex: Index;
  lastApplied: Index;
  entries: Entry[] = [];
  logBase: LogBase;
  base: LogBase;
  persistedIndex: Index;
  persisted: HardState = { term: 0 as Term, votedFor: null };
  configuration: Configuration;
  peers: PeerStatus[] = [];

  constructor(id: NodeId, base: LogBase) {
    this.id = id;
    this.logBase = base;
    this.base = base;
    this.commitIndex = base.position.index;
    this.lastApplied = base.position.index;
    this.persistedIndex = base.position.index;
    this.configuration = base.configuration;
  }

  get lastIndex(): Index {
    return (this.logBase.position.index + this.entries.length) as Index;
  }

  get snapshotIndex(): Index {
    return this.base.position.index;
  }

  /** Its peers are made up: nothing is ever on its way to them, but always about to be. */
  hasOutput(): boolean {
    return true;
  }

  entryAt(index: Index): Entry | null {
    return this.entries[index - this.logBase.position.index - 1] ?? null;
  }

  termAt(index: Index): Term | null {
    return index === this.logBase.position.index ? this.logBase.position.term : (this.entryAt(index)?.term ?? null);
  }

  chainAt(index: Index): number | null {
    return index === this.logBase.position.index ? this.logBase.chain : (this.entryAt(index)?.chain ?? null);
  }

  status(): RaftStatus {
    const last = { term: this.termAt(this.lastIndex) ?? (0 as Term), index: this.lastIndex };
    return {
      ...{ id: this.id, term: this.term, votedFor: this.votedFor, role: this.role, leader: this.leader },
      ...{ commitIndex: this.commitIndex, lastApplied: this.lastApplied, last },
      lastChain: this.chainAt(this.lastIndex) ?? 0,
      ...{ persistedIndex: this.persistedIndex, persisted: this.persisted },
      logBase: this.logBase.position,
      snapshot: this.base.position,
      ...{ isInstalling: false, isDiskOverdue: false, uncommittedBytes: 0, transferTo: null },
      configuration: this.configuration,
      ...{ configurationIndex: this.logBase.position.index, isChanging: false, isRemoved: false },
      peers: this.peers,
    };
  }
}

export class FakeNode {
  readonly id: NodeId;
  readonly disk: FakeDisk;
  nowMs = 1_000;
  raft: FakeRaft;
  machine = new LockMachine();
  frames: object[] = [];
  applied = 0;
  isStopped = false;
  readonly #onEffects: ProbedHost["applier"]["events"] = { onEffects: () => {} };

  constructor(id: NodeId, base: LogBase) {
    this.id = id;
    this.disk = new FakeDisk(base);
    this.raft = new FakeRaft(id, base);
  }

  get host(): NodeHost {
    return hostOf({
      raft: this.raft as unknown as Raft,
      machine: () => this.machine,
      applied: () => this.applied,
      isStopped: () => this.isStopped,
      events: this.#onEffects,
      frames: this.frames,
    });
  }

  append(kind: EntryKind = "command", text = "", term: number = this.raft.term): Entry {
    const { raft } = this;
    const index = (raft.lastIndex + 1) as Index;
    const payload = new TextEncoder().encode(text);
    const chain = entryCodec.chainFor(raft.chainAt(raft.lastIndex) ?? 0, index, term as Term, kind, payload);
    const entry: Entry = { index, term: term as Term, kind, payload, chain };
    raft.entries = [...raft.entries, entry];
    return entry;
  }

  configure(configuration: Configuration): void {
    const payload = entryCodec.encodeConfiguration(configuration);
    const index = (this.raft.lastIndex + 1) as Index;
    const chain = entryCodec.chainFor(
      this.raft.chainAt(this.raft.lastIndex) ?? 0,
      index,
      this.raft.term,
      "configuration",
      payload,
    );
    const entry: Entry = { index, term: this.raft.term, kind: "configuration", payload, chain };
    this.raft.entries = [...this.raft.entries, entry];
    this.raft.configuration = configuration;
  }

  /** What it has in memory is durable. */
  persist(): void {
    const { raft, disk } = this;
    disk.hardState = { term: raft.term, votedFor: raft.votedFor };
    disk.entries = [...raft.entries];
    raft.persisted = disk.hardState;
    raft.persistedIndex = raft.lastIndex;
  }

  apply(index: number, command: Command): void {
    this.applied = index;
    this.#onEffects.onEffects(index, this.machine.apply(index, command));
  }
}

export class World {
  readonly nodes: Map<NodeId, FakeNode>;
  readonly watch: ClusterWatch;
  readonly told: string[] = [];

  constructor(ids: readonly NodeId[] = ["n1", "n2", "n3"], bounds: Bounds = {}) {
    const base: LogBase = {
      position: { term: 0 as Term, index: 0 as Index },
      chain: 0,
      configuration: configurationOf(ids),
    };
    this.nodes = new Map(ids.map((id) => [id, new FakeNode(id, base)]));
    this.watch = new ClusterWatch({
      voters: ids,
      firstIndex: 1,
      electionTimeoutMs,
      bounds,
      events: {
        onCommitted: ({ index }, node) => this.told.push(`${node} commits ${index}`),
        onLeader: (node, term) => this.told.push(`${node} leads ${term}`),
        onDeposed: (node, term) => this.told.push(`${node} led ${term}`),
      },
    });
    for (const node of this.nodes.values()) this.start(node);
  }

  node(id: NodeId): FakeNode {
    const node = this.nodes.get(id);
    if (node === undefined) throw new Error(`no node ${id}`);
    return node;
  }

  start(node: FakeNode): void {
    this.watch.onStarted(node.id, node.host, node.disk, { monotonicMs: () => node.nowMs });
  }

  /** A new life on what the disk holds. */
  restart(id: NodeId): FakeNode {
    const node = this.node(id);
    this.watch.onStopped(id);
    const raft = new FakeRaft(id, node.disk.base);
    raft.term = node.disk.hardState.term;
    raft.votedFor = node.disk.hardState.votedFor;
    raft.persisted = node.disk.hardState;
    raft.entries = [...node.disk.entries];
    raft.persistedIndex = raft.lastIndex;
    node.raft = raft;
    node.machine = new LockMachine();
    node.applied = 0;
    this.start(node);
    return node;
  }

  look(...ids: readonly NodeId[]): void {
    for (const id of ids.length > 0 ? ids : this.nodes.keys()) this.watch.afterEvent(id);
  }

  /** It wins an election, with everybody's vote. */
  elect(id: NodeId, term: number): FakeNode {
    for (const { raft, disk } of this.nodes.values()) {
      raft.term = term as Term;
      raft.votedFor = id;
      raft.role = raft.id === id ? "leader" : "follower";
      raft.leader = id;
      raft.peers = [];
      disk.hardState = { term: raft.term, votedFor: id };
      raft.persisted = disk.hardState;
    }
    const leader = this.node(id);
    for (const other of this.nodes.keys()) if (other !== id) leader.raft.peers.push(peerOf(other, 0, 1));
    return leader;
  }

  /** The leader's log is everybody's, on all disks and known to be. */
  replicate(id: NodeId): void {
    const leader = this.node(id);
    for (const node of this.nodes.values()) {
      node.raft.entries = [...leader.raft.entries];
      node.persist();
    }
    leader.raft.peers = leader.raft.peers.map((peer) =>
      peerOf(peer.id, leader.raft.lastIndex, leader.raft.lastIndex + 1),
    );
  }

  commit(...ids: readonly NodeId[]): void {
    for (const id of ids) this.node(id).raft.commitIndex = this.node(id).raft.lastIndex;
  }
}

export function peerOf(id: NodeId, matchIndex: number, nextIndex: number, heardMsAgo = 0): PeerStatus {
  return {
    ...{
      id,
      membership: "voter",
      state: "replicate",
      behindEntries: 0,
      isCaughtUp: true,
      inFlight: 0,
      heardMsAgo,
      snapshot: null,
    },
    matchIndex: matchIndex as Index,
    nextIndex: nextIndex as Index,
  };
}

/** n1 leads in term 1; three entries are committed everywhere and looked at. */
export function healthyWorld(bounds: Bounds = {}): World {
  const world = new World(["n1", "n2", "n3"], bounds);
  world.look();
  const leader = world.elect("n1", 1);
  world.look();
  for (const kind of ["noop", "command", "command"] as const) leader.append(kind);
  world.look();
  world.replicate("n1");
  world.commit("n1");
  world.look();
  world.commit("n2", "n3");
  world.look();
  return world;
}
