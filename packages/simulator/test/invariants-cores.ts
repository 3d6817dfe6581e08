/**
 * Real cores and lock machines under the watch, in memory: packets that are lost, doubled and overtaken, disks that take their time, crashes.
 * What a faulty host does wrong can be planted.
 */
import { LockMachine } from "@holdfast/lock";
import type { Command } from "@holdfast/lock";
import { Raft } from "@holdfast/raft";
import type { Index, LogBase, NodeId, Outbound, Output, RaftOptions, Term } from "@holdfast/raft";
import { decodeCommand, encodeCommand, entryCodec } from "@holdfast/wire";
import { ClusterWatch } from "../src/invariants/cluster-watch.js";
import { Random } from "../src/random.js";
import { configurationOf, FakeDisk, hostOf } from "./invariants-world.js";

export type Flaw = "none" | "sendsBeforeDisk" | "losesVotes" | "losesEntries" | "skipsCommand" | "imaginesAnswers";

const electionTimeoutMs = 100;

const options: Omit<RaftOptions, "id"> = {
  electionTimeoutMsMin: electionTimeoutMs,
  heartbeatMs: 20,
  diskStallMs: 200,
  limits: {
    uncommittedBytesMax: 100_000,
    reservedBytesMax: 10_000,
    appendsInFlightMax: 4,
    appendBytesMax: 10_000,
    appendEntriesMax: 5,
    committedBytesPerOutputMax: 10_000,
    trailingEntriesMax: 0,
  },
};

class CoreNode {
  readonly id: NodeId;
  readonly disk: FakeDisk;
  raft: Raft;
  machine = new LockMachine();
  applied = 0;
  writes: Output[] = [];
  isUp = false;
  events: { onEffects(index: number, effects: readonly unknown[]): void } = { onEffects: () => {} };

  constructor(id: NodeId, base: LogBase, random: Random) {
    this.id = id;
    this.disk = new FakeDisk(base);
    this.raft = this.#load(random);
  }

  start(random: Random): void {
    this.raft = this.#load(random);
    this.machine = new LockMachine();
    this.applied = this.disk.base.position.index;
    this.writes = [];
    this.isUp = true;
    this.events = { onEffects: () => {} };
  }

  #load(random: Random): Raft {
    const { hardState, base, entries } = this.disk;
    return new Raft({ ...options, id: this.id }, { random, codec: entryCodec }, { hardState, base, entries });
  }
}

export class CoreCluster {
  readonly counts = { committed: 0, leaders: 0, deposed: 0, restarts: 0, events: 0 };
  readonly watch: ClusterWatch;
  readonly nodes: readonly CoreNode[];
  readonly random: Random;
  nowMs = 1_000;
  readonly #flaw: Flaw;
  #packets: { readonly from: NodeId; readonly to: NodeId; readonly message: Outbound["message"] }[] = [];
  #proposals = 0;

  constructor(seed: number, flaw: Flaw = "none", size = 3) {
    this.random = new Random(seed);
    this.#flaw = flaw;
    const ids = Array.from({ length: size }, (_, at) => `n${at + 1}`);
    const position = { term: 0 as Term, index: 0 as Index };
    const base: LogBase = { position, chain: 0, configuration: configurationOf(ids) };
    const { counts } = this;
    this.watch = new ClusterWatch({
      voters: ids,
      firstIndex: 1,
      electionTimeoutMs,
      events: {
        onCommitted: () => void (counts.committed += 1),
        onLeader: () => void (counts.leaders += 1),
        onDeposed: () => void (counts.deposed += 1),
      },
    });
    this.nodes = ids.map((id) => new CoreNode(id, base, this.random));
    for (const node of this.nodes) this.#start(node);
  }

  get leader(): CoreNode | null {
    return this.nodes.find(({ isUp, raft }) => isUp && raft.role === "leader") ?? null;
  }

  /** One random event. */
  act(): void {
    const kind = this.random.integer(100);
    if (kind < 55) this.deliver(this.random.integer(Math.min(this.#packets.length, 3)));
    else if (kind < 78) this.#finishWrites(this.random.pick(this.nodes));
    else if (kind < 85) this.passTime(this.random.integer(12));
    else if (kind < 95) this.propose();
    else if (kind < 97) this.#packets.splice(this.random.integer(this.#packets.length + 1), 3);
    else if (kind < 98 && this.#packets.length > 0) this.#packets.push(this.random.pick(this.#packets));
    else this.#crashOrRestart(this.random.pick(this.nodes));
  }

  /** Delivers and writes all there is, as far as it goes. */
  settle(): void {
    for (const node of this.nodes) if (!node.isUp) this.#start(node);
    while (this.#packets.length > 0 || this.nodes.some(({ writes }) => writes.length > 0)) {
      this.deliver(0);
      for (const node of this.nodes) this.#finishWrites(node);
    }
  }

  deliver(at: number): void {
    const [packet] = this.#packets.splice(at, 1);
    const node = this.nodes.find(({ id }) => id === packet?.to);
    if (packet === undefined || node === undefined || !node.isUp || this.#isDeaf(node)) return;
    this.watch.onDelivered(node.id, packet.from);
    node.raft.step({ kind: "received", nowMs: this.nowMs, from: packet.from, message: packet.message });
    this.#turn(node);
  }

  passTime(ms: number): void {
    this.nowMs += ms;
    for (const node of this.nodes) {
      if (!node.isUp || this.nowMs < node.raft.nextDeadlineMs()) continue;
      if (this.#isDeaf(node)) this.#imagineAnswers(node);
      node.raft.step({ kind: "tick", nowMs: this.nowMs });
      this.#turn(node);
    }
  }

  propose(): void {
    const { leader, random } = this;
    if (leader === null) return;
    this.#proposals += 1;
    const key = this.#proposals.toString(16).padStart(32, "0");
    const ids = [...leader.machine.sessions()].map(({ id }) => id);
    const command: Command =
      ids.length < 8
        ? { kind: "openSession", key, ttlMs: 2_000 + random.integer(10), info: "" }
        : { kind: "suspectSessions", ids, eighths: 1 + random.integer(3) };
    const proposal = { id: this.#proposals, payload: encodeCommand(command), reserved: false, decidedInTerm: null };
    leader.raft.step({ kind: "propose", nowMs: this.nowMs, proposal });
    this.#turn(leader);
  }

  #isDeaf(node: CoreNode): boolean {
    return this.#flaw === "imaginesAnswers" && node.raft.role === "leader";
  }

  #imagineAnswers({ id, raft }: CoreNode): void {
    for (const peer of this.nodes) {
      if (peer.id === id) continue;
      const message = { kind: "heartbeatAnswer", term: raft.term, round: 0 } as const;
      raft.step({ kind: "received", nowMs: this.nowMs, from: peer.id, message });
    }
  }

  #start(node: CoreNode): void {
    node.start(this.random);
    const host = hostOf({
      raft: node.raft,
      machine: () => node.machine,
      applied: () => node.applied,
      events: node.events,
      frames: [],
    });
    this.watch.onStarted(node.id, host, node.disk, { monotonicMs: () => this.nowMs });
    this.#after(node);
  }

  #turn(node: CoreNode): void {
    for (let output = node.raft.takeOutput(); output !== null; output = node.raft.takeOutput()) {
      this.#post(node, output.send);
      if (this.#flaw === "sendsBeforeDisk") this.#post(node, output.sendAfterPersist);
      node.writes.push(output);
      for (const { index, kind, payload } of output.committed) {
        node.applied = index;
        const isSkipped = this.#flaw === "skipsCommand" && node.id === "n2" && this.random.chance(0.05);
        if (kind === "command" && !isSkipped) {
          node.events.onEffects(index, node.machine.apply(index, decodeCommand(payload)));
        }
      }
    }
    this.#after(node);
  }

  #finishWrites(node: CoreNode): void {
    if (!node.isUp) return;
    const finished = node.writes.splice(0);
    const last = finished.at(-1);
    if (last === undefined) return;
    const { disk } = node;
    for (const { hardState, truncateFrom, entries } of finished) {
      disk.hardState = hardState ?? disk.hardState;
      disk.entries = [...disk.entries.filter(({ index }) => index < (truncateFrom ?? Infinity)), ...entries];
    }
    if (this.#flaw !== "sendsBeforeDisk") for (const output of finished) this.#post(node, output.sendAfterPersist);
    node.raft.step({ kind: "persisted", nowMs: this.nowMs, number: last.number });
    this.#turn(node);
  }

  #crashOrRestart(node: CoreNode): void {
    if (!node.isUp) {
      this.counts.restarts += 1;
      this.#start(node);
      return;
    }
    // They are up for most of the time.
    if (this.random.chance(0.7)) return;
    node.isUp = false;
    this.watch.onStopped(node.id);
    const { disk } = node;
    if (this.#flaw === "losesVotes") disk.hardState = { ...disk.hardState, votedFor: null };
    if (this.#flaw === "losesEntries") disk.entries = disk.entries.slice(0, -1);
  }

  #post(node: CoreNode, messages: readonly Outbound[]): void {
    for (const { to, message } of messages) {
      this.watch.onSent(node.id, to, message);
      this.#packets.push({ from: node.id, to, message });
    }
  }

  #after(node: CoreNode): void {
    this.counts.events += 1;
    this.watch.afterEvent(node.id);
  }
}
