/** A cluster in memory: a clock that the test moves, a network whose packets the test delivers, disks that it lets finish. */
import type {
  Configuration,
  Event,
  Index,
  LogBase,
  MembershipChange,
  Message,
  NodeId,
  Outbound,
  Output,
  RaftLimits,
  RaftOptions,
  Term,
} from "../../src/index.js";
import { bytesOf, memberOf } from "./codec.js";
import { Disk } from "./disk.js";
import { Ghost } from "./ghost.js";
import { TestNode } from "./node.js";
import { SeededRandom } from "./random.js";

export interface Packet {
  readonly from: NodeId;
  readonly to: NodeId;
  readonly message: Message;
}

export interface ClusterOptions {
  readonly ids: readonly NodeId[];
  readonly configuration: Configuration;
  readonly seed: number;
  readonly electionTimeoutMsMin: number;
  readonly heartbeatMs: number;
  readonly diskStallMs: number;
  readonly limits: RaftLimits;
  readonly firstIndex?: number;
}

export const generousLimits: RaftLimits = {
  uncommittedBytesMax: 1_000_000,
  reservedBytesMax: 10_000,
  appendsInFlightMax: 8,
  appendBytesMax: 100_000,
  appendEntriesMax: 1_000,
  committedBytesPerOutputMax: 100_000,
  trailingEntriesMax: 0,
};

type WithoutTime<T> = T extends Event ? Omit<T, "nowMs"> : never;
export type TimelessEvent = WithoutTime<Event>;

export class Cluster {
  readonly nodes = new Map<NodeId, TestNode>();
  readonly ghost = new Ghost();
  readonly random: SeededRandom;
  nowMs = 1_000;
  packets: Packet[] = [];
  /** Links that lose everything, as "from>to". */
  readonly cut = new Set<string>();
  /** Nodes whose disk finishes nothing until it is let. */
  readonly slowDisks = new Set<NodeId>();
  onOutput: (node: TestNode, output: Output) => void = () => {};
  onSend: (node: TestNode, messages: readonly Outbound[], isAfterPersist: boolean) => void = () => {};
  #proposalId = 0;
  #confirmId = 0;
  #changeId = 0;

  constructor(options: ClusterOptions) {
    this.random = new SeededRandom(options.seed);
    const base: LogBase = {
      position: { term: 0 as Term, index: ((options.firstIndex ?? 1) - 1) as Index },
      chain: 7,
      configuration: options.configuration,
    };
    const { electionTimeoutMsMin, heartbeatMs, diskStallMs, limits } = options;
    for (const id of options.ids) {
      const raftOptions: RaftOptions = { id, electionTimeoutMsMin, heartbeatMs, diskStallMs, limits };
      const events = {
        onOutput: (node: TestNode, output: Output) => this.onOutput(node, output),
        onSend: (node: TestNode, messages: readonly Outbound[], isAfterPersist: boolean) => {
          this.onSend(node, messages, isAfterPersist);
          this.#post(node.id, messages);
        },
      };
      this.nodes.set(id, new TestNode(raftOptions, this.random, new Disk(base), this.ghost, events, this.nodes));
    }
  }

  node(id: NodeId): TestNode {
    const node = this.nodes.get(id);
    if (node === undefined) throw new Error(`no node ${id}`);
    return node;
  }

  get upNodes(): TestNode[] {
    return [...this.nodes.values()].filter((node) => node.isUp);
  }

  /** The leader of the latest term among nodes that are up. */
  get leader(): TestNode | null {
    const leaders = this.upNodes.filter((node) => node.raft.role === "leader");
    return leaders.sort((a, b) => b.raft.term - a.raft.term)[0] ?? null;
  }

  /** One event and the turn that follows it. */
  step(id: NodeId, event: TimelessEvent): void {
    const node = this.node(id);
    if (!node.isUp) return;
    node.step({ ...event, nowMs: this.nowMs });
    this.turn(node);
  }

  /** Takes outputs until there is none; disks that aren't slow finish at once. */
  turn(node: TestNode): void {
    for (;;) {
      while (node.isUp && node.takeOutput());
      if (!node.isUp || this.slowDisks.has(node.id) || node.writes.length === 0) return;
      node.finishWrites(node.writes.length, this.nowMs);
    }
  }

  propose(id: NodeId, text: string, reserved = false, decidedInTerm: number | null = null): number {
    this.#proposalId += 1;
    const proposal = {
      id: this.#proposalId,
      payload: bytesOf(text),
      reserved,
      decidedInTerm: decidedInTerm as Term | null,
    };
    this.step(id, { kind: "propose", proposal });
    return proposal.id;
  }

  /** Ids of those to add, to promote and to remove. */
  changeMembers(
    id: NodeId,
    ids: { readonly [Part in keyof MembershipChange]?: readonly NodeId[] },
    isForced = false,
  ): number {
    this.#changeId += 1;
    const { add = [], promote = [], remove = [] } = ids;
    if (this.node(id).isUp) this.ghost.membership.onAsked(this.#changeId);
    this.step(id, {
      kind: "changeMembers",
      id: this.#changeId,
      change: { add: add.map(memberOf), promote, remove },
      isForced,
    });
    return this.#changeId;
  }

  confirm(id: NodeId): number {
    this.#confirmId += 1;
    if (this.node(id).isUp) this.ghost.onConfirmAsked(this.#confirmId);
    this.step(id, { kind: "confirm", id: this.#confirmId });
    return this.#confirmId;
  }

  finishWrites(id: NodeId, count = Number.POSITIVE_INFINITY): void {
    const node = this.node(id);
    if (!node.isUp) return;
    node.finishWrites(count, this.nowMs);
    this.turn(node);
  }

  takeSnapshot(id: NodeId): boolean {
    const node = this.node(id);
    const isTaken = node.isUp && node.takeSnapshot(this.nowMs);
    if (node.isUp) this.turn(node);
    return isTaken;
  }

  /** Answers the oldest request for a snapshot's chunk; false when there is none. */
  answerRead(id: NodeId): boolean {
    const node = this.node(id);
    const read = node.reads.shift();
    if (!node.isUp || read === undefined) return false;
    node.answerRead(read, this.nowMs);
    this.turn(node);
    return true;
  }

  /** The leader's other end notices: links to `id` were lost and made anew. */
  restart(id: NodeId): void {
    this.node(id).restart();
    for (const other of this.upNodes) if (other.id !== id) this.step(other.id, { kind: "peerReset", peer: id });
  }

  deliver(packet: Packet): void {
    const { from, to, message } = packet;
    this.step(to, { kind: "received", from, message });
  }

  /** Time passes; everybody whose deadline has come is ticked. */
  advance(byMs: number): void {
    this.nowMs += byMs;
    for (const node of this.upNodes) {
      if (this.nowMs >= node.raft.nextDeadlineMs()) this.step(node.id, { kind: "tick" });
    }
  }

  /** Delivers what is in the network and answers what is asked, in order, until all is quiet. No time passes. */
  settle(roundsMax = 100_000): void {
    for (let rounds = 0; rounds < roundsMax; rounds += 1) {
      const packet = this.packets.shift();
      if (packet !== undefined) {
        this.deliver(packet);
        continue;
      }
      if (!this.upNodes.some((node) => this.answerRead(node.id))) return;
    }
    throw new Error("the network does not come to rest");
  }

  /** Lets time pass from deadline to deadline, with a perfect network, until `isDone` or `withinMs` have passed. */
  run(withinMs: number, isDone: () => boolean = () => false): boolean {
    const untilMs = this.nowMs + withinMs;
    this.settle();
    while (!isDone()) {
      const dueMs = Math.min(...this.upNodes.map((node) => node.raft.nextDeadlineMs()));
      if (Math.max(dueMs, this.nowMs) > untilMs) {
        this.nowMs = untilMs;
        return false;
      }
      this.advance(Math.max(dueMs - this.nowMs, 0));
      this.settle();
    }
    return true;
  }

  #post(from: NodeId, messages: readonly Outbound[]): void {
    for (const { to, message } of messages) {
      if (!this.cut.has(`${from}>${to}`) && this.nodes.has(to)) this.packets.push({ from, to, message });
    }
  }
}
