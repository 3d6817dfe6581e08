/**
 * How a node gets the configuration that its log begins with: how a cluster begins, and how a node that was added to one does.
 * The first configuration is made once, by the lowest id, when all nodes of the file have met and none is formed;
 * every other node takes it from one that has it. A node without it neither votes, acknowledges nor campaigns: it has no core yet.
 *
 * Each step may be cut off by a crash. Before the maker's copy is durable nothing has happened, and the nodes meet again. Afterwards
 * the maker is formed, and hands it on to each node whose (id, instance) it names, for as long as that takes.
 */
import type { Configuration, Index, LogBase, NodeId, Restored, Term } from "@holdfast/raft";
import type { DataDirectory, Store } from "@holdfast/storage";
import { entryCodec } from "@holdfast/wire";
import type { FormedFrame } from "./incoming-link.js";
import type { FormedFacts } from "./peer-hello.js";
import type { DurableFacts, MetPeer } from "./peer-links.js";
import type { Clock, Logger, Timer } from "./ports.js";

export interface FormationOptions {
  readonly self: { readonly id: NodeId; readonly instance: string };
  /** All nodes of the file, this one too. */
  readonly nodes: readonly { readonly id: NodeId; readonly peer: string; readonly client: string }[];
  /** Index of the first entry; above 1 when fences of a lost cluster must stay below every new token. */
  readonly firstIndex: number;
  /** A running cluster's id: this node makes no configuration, and waits until that cluster has it as a member. */
  readonly joins?: string;
}

export interface FormationParts {
  readonly directory: Pick<DataDirectory, "form">;
  readonly links: { met(): ReadonlyMap<NodeId, MetPeer> };
  readonly clock: Clock;
  readonly logger: Logger;
  /** A fresh random cluster id. */
  drawClusterId(): string;
}

export interface FormedNode {
  readonly clusterId: string;
  readonly store: Store;
  readonly restored: Restored;
}

/** A formed peer's first configuration, whose log begins too low for this node: somebody has to put it right. */
export interface RefusedBeginning {
  readonly from: NodeId;
  readonly problem: string;
}

const reminderMs = 10_000;

export class Formation {
  /**
   * Resolves when this node is formed and its copy durable: only then may the links say so and hand it on. Rejects on a storage error,
   * which ends the process.
   */
  readonly formed: Promise<FormedNode>;
  private readonly options: FormationOptions;
  private readonly parts: FormationParts;
  private readonly peers: readonly NodeId[];
  private readonly isLowest: boolean;
  private resolve: (node: FormedNode) => void = () => undefined;
  private reject: (error: unknown) => void = () => undefined;
  private reminder: Timer | null = null;
  /** A configuration is being written: from here on no other one is taken. */
  private isForming = false;
  private isStopped = false;
  private lastRefused: (RefusedBeginning & { readonly clusterId: string }) | null = null;

  constructor(options: FormationOptions, parts: FormationParts) {
    this.options = options;
    this.parts = parts;
    const { self, nodes } = options;
    this.peers = nodes.map((node) => node.id).filter((id) => id !== self.id);
    this.isLowest = options.joins === undefined && this.peers.every((id) => self.id < id);
    this.formed = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    // Whoever awaits `formed` hears of it; before that it is no unhandled rejection.
    this.formed.catch(() => undefined);
  }

  start(): void {
    if (this.options.joins !== undefined) this.remind();
    this.armReminder();
    this.onMet();
  }

  stop(): void {
    this.isStopped = true;
    this.reminder?.cancel();
  }

  /** The last one that began too low, while whoever offered it is linked and still has it. */
  get refused(): RefusedBeginning | null {
    if (this.lastRefused === null) return null;
    const { from, problem, clusterId } = this.lastRefused;
    return this.parts.links.met().get(from)?.clusterId === clusterId ? { from, problem } : null;
  }

  /** Links have come or gone. */
  onMet(): void {
    if (this.isForming || this.isStopped || !this.isLowest) return;
    const met = this.parts.links.met();
    for (const id of this.peers) {
      const peer = met.get(id);
      // A formed peer has a configuration to hand on; to make another one beside it would be a second cluster.
      if (peer === undefined || peer.clusterId !== null) return;
    }
    const instanceFor = (id: NodeId): string => met.get(id)?.instance ?? this.options.self.instance;
    const configuration = firstConfiguration(this.options.nodes, instanceFor);
    const { firstIndex } = this.options;
    const clusterId = this.parts.drawClusterId();
    this.parts.logger.info({ clusterId, firstIndex }, "all nodes have met: making the first configuration");
    this.form({ clusterId, firstIndex, configuration });
  }

  /** A formed peer hands on what it has. */
  onFormed(from: NodeId, frame: FormedFrame): void {
    if (this.isForming || this.isStopped) return;
    const problem = this.problemWith(frame);
    if (problem !== null) {
      if (frame.firstIndex < this.options.firstIndex) this.lastRefused = { from, problem, clusterId: frame.clusterId };
      this.parts.logger.error(
        { peer: from, clusterId: frame.clusterId, reason: problem },
        "refused a first configuration",
      );
      return;
    }
    this.parts.logger.info(
      { peer: from, clusterId: frame.clusterId, firstIndex: frame.firstIndex },
      "taking the first configuration",
    );
    const { clusterId, firstIndex, configuration, firstConfiguration } = frame;
    // What stands before the first entry doesn't name a node that was added later.
    this.form({ clusterId, firstIndex, configuration: firstConfiguration ?? configuration });
  }

  private problemWith(frame: FormedFrame): string | null {
    const { self, firstIndex, joins } = this.options;
    const { voters, outgoing, learners } = frame.configuration;
    const members = [...voters, ...outgoing, ...learners];
    if (joins !== undefined && frame.clusterId !== joins) return `this node waits to join cluster id ${joins}`;
    if (!members.some((member) => member.id === self.id && member.instance === self.instance)) {
      return `it doesn't name ${self.id} with instance ${self.instance}`;
    }
    if (frame.firstIndex < firstIndex) {
      return `its log begins at ${frame.firstIndex}, and this node was told to begin at ${firstIndex}, above the fences of a lost cluster`;
    }
    return null;
  }

  private form(facts: FormedFacts): void {
    this.isForming = true;
    this.reminder?.cancel();
    const { clusterId, firstIndex, configuration } = facts;
    this.parts.directory.form(clusterId, firstBase(firstIndex, configuration)).then(
      ({ store, restored }) => this.resolve({ clusterId, store, restored }),
      (error: unknown) => this.reject(error),
    );
  }

  private armReminder(): void {
    this.reminder = this.parts.clock.setTimer(reminderMs, () => {
      this.remind();
      this.armReminder();
    });
  }

  private remind(): void {
    const { self, nodes, joins } = this.options;
    if (joins !== undefined) {
      const own = nodes.find((node) => node.id === self.id);
      return this.parts.logger.info({ clusterId: joins }, waitsToBeAdded(self.id, own?.peer ?? "", own?.client ?? ""));
    }
    const met = this.parts.links.met();
    const missing = this.peers.filter((id) => !met.has(id));
    const text =
      missing.length > 0 ? `waiting for ${missing.join(", ")} to form the cluster` : "waiting for a configuration";
    this.parts.logger.info({ missing }, text);
  }
}

/** What a node says that was started to join a cluster. */
export function waitsToBeAdded(id: NodeId, peer: string, client: string): string {
  return `${id} waits to be added: holdfast member add ${id} --peer ${peer} --client ${client}`;
}

/** Ordered by id, so that all copies are equal byte for byte. */
function firstConfiguration(nodes: FormationOptions["nodes"], instanceFor: (id: NodeId) => string): Configuration {
  const sorted = [...nodes].sort((a, b) => (a.id < b.id ? -1 : 1));
  const voters = sorted.map(({ id, peer, client }) => ({ id, instance: instanceFor(id), peer, client }));
  return { voters, outgoing: [], learners: [], removed: [] };
}

/** The state before the first entry. */
export function firstBase(firstIndex: number, configuration: Configuration): LogBase {
  return { position: { term: 0 as Term, index: (firstIndex - 1) as Index }, chain: 0, configuration };
}

/** What a hello says of this directory. */
export function durableFactsOf(restored: Restored): DurableFacts {
  const last = restored.entries.at(-1);
  const position = last === undefined ? restored.base.position : { term: last.term, index: last.index };
  return { term: restored.hardState.term, last: position };
}

/**
 * What a formed node knows of its cluster at a start. A node that begins with nothing gets the log's true beginning while it is still
 * known; later a snapshot of the leader takes the place of whatever it began with.
 */
export function formedFactsOf(clusterId: string, restored: Restored, configuration: Configuration): FormedFacts {
  const { position, configuration: firstConfiguration } = restored.base;
  if (position.term > 0) return { clusterId, firstIndex: 1, configuration };
  return { clusterId, firstIndex: position.index + 1, configuration, firstConfiguration };
}

/** The newest configuration in the log, committed or not (thesis 4.1). */
export function configurationIn(restored: Restored): Configuration {
  const entry = restored.entries.findLast((each) => each.kind === "configuration");
  return entry === undefined ? restored.base.configuration : entryCodec.decodeConfiguration(entry.payload);
}
