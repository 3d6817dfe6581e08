/**
 * The all-seeing watch over a simulated cluster: after every event of a node's process it checks what that event has changed, against what
 * all nodes have done in all their lives. It reads and never acts. Each rule has a file of its own here.
 */
import { checkInvariants, InvariantError as CoreInvariantError } from "@holdfast/raft";
import type { Configuration, Entry, Message, NodeId, RaftStatus } from "@holdfast/raft";
import type { NodeHost } from "@holdfast/server";
import type { ClientMessage, ServerMessage } from "@holdfast/wire";
import { checkBounds } from "./bounds.js";
import type { Bounds } from "./bounds.js";
import { Commits } from "./commits.js";
import { Configurations } from "./configurations.js";
import { assertConverged } from "./convergence.js";
import { tapCore } from "./core-tap.js";
import { GhostLog } from "./ghost-log.js";
import { HostProbe } from "./host-probe.js";
import { demand, InvariantError } from "./invariant-error.js";
import type { RuleName } from "./invariant-error.js";
import { Leadership } from "./leadership.js";
import { checkLog } from "./logs.js";
import { SequencerBook } from "./sequencers.js";
import { States } from "./states.js";
import { ChangeBook } from "./told-changes.js";
import { Life, WatchedNode } from "./watched-node.js";
import type { DurableView, NodeClock } from "./watched-node.js";

export interface WatchEvents {
  /** The first node's commitIndex has reached this entry: in order, once per index. */
  onCommitted(entry: Entry, node: NodeId): void;
  onLeader(node: NodeId, term: number): void;
  /** It leads no more, in that term: it steps down, or its process is gone. */
  onDeposed(node: NodeId, term: number): void;
  /** Something rare has happened to a configuration. */
  onMark?(mark: string): void;
}

export interface WatchOptions {
  readonly voters: readonly NodeId[];
  readonly firstIndex: number;
  readonly electionTimeoutMs: number;
  readonly events: WatchEvents;
  readonly bounds?: Bounds;
}

export class ClusterWatch {
  /** What watches may be told. */
  readonly changes: ChangeBook = new ChangeBook();
  /** What may be said of sequencers. */
  readonly sequencers: SequencerBook = new SequencerBook();
  readonly #nodes = new Map<NodeId, WatchedNode>();
  readonly #ghost: GhostLog;
  readonly #leadership: Leadership;
  readonly #commits: Commits;
  readonly #configurations: Configurations;
  readonly #states = new States();
  readonly #events: WatchEvents;
  readonly #electionTimeoutMs: number;
  readonly #bounds: Bounds | null;
  /** Found where nothing may be thrown: inside of a host's turn, which would take it for an error of its own. */
  #found: Error | null = null;

  constructor(options: WatchOptions) {
    for (const id of options.voters) this.#nodes.set(id, new WatchedNode(id));
    this.#ghost = new GhostLog(options.firstIndex);
    this.#leadership = new Leadership(options.electionTimeoutMs);
    this.#configurations = new Configurations(this.#ghost);
    this.#commits = new Commits(this.#nodes, this.#ghost, {
      onCommitted: (entry, node) => {
        const codec = this.#nodes.get(node)?.life?.probe.codec ?? null;
        if (codec !== null) this.#configurations.onCommitted(entry, codec);
        options.events.onCommitted(entry, node);
      },
    });
    this.#events = options.events;
    this.#electionTimeoutMs = options.electionTimeoutMs;
    this.#bounds = options.bounds ?? null;
  }

  /** The highest index that any node ever knew to be committed. */
  get commitPoint(): number {
    return this.#ghost.commitPoint;
  }

  /** The newest configuration that is committed; null before formation. */
  get configuration(): Configuration | null {
    return this.#configurations.committed;
  }

  /** That one, and those after it that stand in some log and may yet be committed: any of them may be in force somewhere. */
  get liveConfigurations(): readonly Configuration[] {
    return this.#configurations.live;
  }

  /** A life of a node begins, before it has taken its first turn. `disk`: what is durable, asked at any time. What it finds is thrown by the next afterEvent. */
  onStarted(id: NodeId, host: NodeHost, disk: DurableView, clock: NodeClock): void {
    const node = this.#nodeFor(id);
    this.#attempt(() => demand(!node.isWiped, "wiped-node", () => `${id} takes part again, with an emptied directory`));
    this.#end(node);
    node.disk = disk;
    const probe = new HostProbe(host, (machine, index, effects) => {
      this.changes.note(index, effects);
      this.sequencers.note(index, effects);
      this.#attempt(() => this.#states.onApplied(id, machine, index, effects));
    });
    node.life = new Life(probe, clock);
    node.life.tap = tapCore(id, probe.raft, {
      applied: probe,
      electionTimeoutMs: this.#electionTimeoutMs,
      attempt: (check) => this.#attempt(check),
      diskOf: (peer) => this.#nodes.get(peer)?.disk ?? null,
      isRemovedAt: (peer, index) => this.#configurations.isRemovedAt(peer, index),
      hadVoteAt: (peer, index) => this.#configurations.hadVoteAt(peer, index),
    });
    node.persistedIndex = probe.raft.persistedIndex;
    this.#attempt(() => {
      node.promises.checkAtStart(disk, probe.raft);
      this.#commits.checkKept(id);
    });
  }

  /** The process is gone. */
  onStopped(id: NodeId): void {
    this.#end(this.#nodeFor(id));
  }

  /** The disk of this node has lied: what it had acknowledged counts no more as its promise. To be told before its next start. */
  forgive(id: NodeId): void {
    const node = this.#nodeFor(id);
    node.promises.forgive(node.persistedIndex);
  }

  /** Its directory was emptied. Its process is gone. */
  onWiped(id: NodeId): void {
    this.forgive(id);
    const node = this.#nodeFor(id);
    node.isWiped = true;
    node.disk = null;
  }

  /** A raft message leaves the node: told when it is handed to the links. What it finds is thrown by the next afterEvent. */
  onSent(from: NodeId, to: NodeId, message: Message): void {
    const node = this.#nodeFor(from);
    this.#attempt(() => {
      if (node.disk === null) return;
      node.promises.checkSent(to, message, node.disk);
      node.life?.tap?.elections.checkSent(node.life.probe.raft, to, message);
      if (message.kind === "appendAccepted") this.#checkAcknowledged(node, to, message, node.disk);
    });
  }

  /** Raft messages of `from` are handed to the node's host. Not needed; with it, contact with a quorum is checked beyond what a leader believes. */
  onDelivered(id: NodeId, from: NodeId): void {
    const { life } = this.#nodeFor(id);
    if (life !== null) life.heardMs.set(from, life.clock.monotonicMs());
  }

  /** A client's message is read. What these two find is thrown by the next afterEvent. */
  onClientRead(id: NodeId, connection: number, message: ClientMessage): void {
    this.#nodes.get(id)?.life?.tap?.answers.onRead(connection, message);
  }

  /** A message to a client is handed to its connection. */
  onClientTold(id: NodeId, connection: number, message: ServerMessage): void {
    this.#attempt(() => this.#nodes.get(id)?.life?.tap?.answers.checkSaid(connection, message));
  }

  /** After an event of this node's process: checks what has changed. Throws InvariantError. To be called after what the event has resolved has run, too. */
  afterEvent(id: NodeId): void {
    this.#throwFound();
    const node = this.#nodes.get(id);
    const life = node?.life ?? null;
    if (node === undefined || life === null || life.isOver) return;
    // The event in which it stops by itself is its last: what it has committed there may be known to nobody else.
    life.isOver = life.probe.isStopped;
    const nowMs = life.clock.monotonicMs();
    if (nowMs - life.eventMs > this.#electionTimeoutMs / 2) life.wokenMs = nowMs;
    life.eventMs = nowMs;
    if (life.hasChanged) this.#check(node, life);
  }

  /** At rest: all these nodes agree. */
  assertConverged(ids: readonly NodeId[]): void {
    this.#throwFound();
    assertConverged(ids.map((id) => this.#nodeFor(id)));
  }

  #check(node: WatchedNode, life: Life): void {
    const { raft } = life.probe;
    const ghost = this.#ghost;
    const isNewLeader = raft.role === "leader" && (life.role !== "leader" || life.term !== raft.term);
    checkLog(node, life, ghost);
    if (isNewLeader) this.#leadership.onLeader(node, life, ghost);
    if (life.configuration !== null && life.configuration !== raft.configuration) life.votersSinceMs = life.eventMs;
    this.#commits.checkCommit(node, life);
    if (node.disk !== null) this.#checkDisk(node, life, node.disk);
    this.#configurations.check(node, life);
    this.#mark(life, isNewLeader);
    const status = checkCore(node, life, (after) => {
      this.#commits.checkMatches(node, life, after);
      this.#leadership.checkContact(node, life, after);
    });
    this.#states.check(node, life);
    if (this.#bounds !== null) checkBounds(node.id, life.probe, this.#bounds);
    const { role, term } = life;
    life.note(status);
    if (role === "leader" && (status.role !== "leader" || status.term !== term)) this.#events.onDeposed(node.id, term);
    if (isNewLeader) this.#events.onLeader(node.id, status.term);
  }

  #mark(life: Life, isNewLeader: boolean): void {
    const mark = (text: string): void => this.#events.onMark?.(text);
    const { raft } = life.probe;
    if (isNewLeader && raft.configuration.outgoing.length > 0) mark("leader elected in a joint change");
    if (raft.snapshotIndex !== life.snapshotIndex && raft.base.configuration.outgoing.length > 0)
      mark("snapshot of a joint configuration");
    if (life.truncatedConfigurations > 0) mark("configuration truncated");
    life.truncatedConfigurations = 0;
  }

  /** What the core takes for durable is. */
  #checkDisk(node: WatchedNode, life: Life, disk: DurableView): void {
    const { raft } = life.probe;
    node.promises.checkDurable(disk);
    if (raft.persistedIndex === life.persistedIndex) return;
    const { persistedIndex } = raft;
    node.persistedIndex = persistedIndex;
    const [stored, own] = [disk.chainAt(persistedIndex), raft.chainAt(persistedIndex)];
    const isStored = disk.last.index >= persistedIndex && (stored === null || own === null || stored === own);
    demand(isStored || node.promises.forgivenIndex >= persistedIndex, "durable-promises", () => {
      return `${node.id} takes its log for durable up to ${persistedIndex}, its disk ends at ${disk.last.index} or differs`;
    });
  }

  /** What is acknowledged to a leader are that leader's entries. */
  #checkAcknowledged(
    node: WatchedNode,
    to: NodeId,
    { term, matchIndex }: Message & { readonly kind: "appendAccepted" },
    disk: DurableView,
  ): void {
    if (disk.hardState.term > term) return;
    const stored = disk.chainAt(matchIndex);
    const known = this.#ghost.chainFor(matchIndex, disk.termAt(matchIndex) ?? 0);
    demand(stored === null || known === null || stored === known, "log-matching", () => {
      return `the disk of ${node.id} has another entry ${matchIndex} than others of its term have`;
    });
    const leader = this.#nodes.get(to)?.life?.probe.raft ?? null;
    if (leader === null || leader.role !== "leader" || leader.term !== term) return;
    const its = leader.chainAt(matchIndex);
    const isIts = stored === null || its === null || stored === its;
    demand(matchIndex <= leader.lastIndex && isIts, "durable-promises", () => {
      return `${node.id} acknowledges entry ${matchIndex} to ${to} in term ${term}, which has another or none`;
    });
  }

  #end(node: WatchedNode): void {
    const { life } = node;
    if (life === null) return;
    node.life = null;
    if (life.role === "leader") this.#events.onDeposed(node.id, life.term);
  }

  #nodeFor(id: NodeId): WatchedNode {
    const known = this.#nodes.get(id);
    if (known !== undefined) return known;
    const node = new WatchedNode(id);
    this.#nodes.set(id, node);
    return node;
  }

  #attempt(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.#found ??= error instanceof Error ? error : new Error(String(error));
    }
  }

  #throwFound(): void {
    const found = this.#found;
    this.#found = null;
    if (found !== null) throw found;
  }
}

/** The rules under which the core's own findings are known here. */
const coreRules: ReadonlyMap<string, RuleName> = new Map<string, RuleName>([
  ["a leader only appends", "leader-append-only"],
  ["the log has no gap", "contiguity"],
  ["terms never fall along the log", "contiguity"],
  ["no entry is of a later term than the node's", "contiguity"],
  ["commitIndex never falls", "monotonic"],
  ["lastApplied never falls", "monotonic"],
  ["matchIndex never falls in a term", "monotonic"],
  ["the term never falls", "monotonic"],
]);

function checkCore(node: WatchedNode, life: Life, then: (status: RaftStatus) => void): RaftStatus {
  let status: RaftStatus;
  try {
    status = checkInvariants(life.status, life.probe.raft);
  } catch (error) {
    if (!(error instanceof CoreInvariantError)) throw error;
    throw new InvariantError(coreRules.get(error.invariant) ?? "core", `${node.id}: ${error.message}`);
  }
  then(status);
  return status;
}
