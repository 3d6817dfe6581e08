/** A node under test: the core, its disk, its writes in flight and a small state machine. */
import assert from "node:assert/strict";
import { checkInvariants, Raft } from "../../src/index.js";
import type {
  Entry,
  Event,
  Index,
  LogBase,
  NodeId,
  Outbound,
  Output,
  RaftOptions,
  RaftStatus,
  Random,
} from "../../src/index.js";
import { bytesOf, testCodec, textOf } from "./codec.js";
import type { Disk } from "./disk.js";
import type { Ghost } from "./ghost.js";

/** How the world outside of a node learns what it does. */
export interface NodeEvents {
  onOutput(node: TestNode, output: Output): void;
  onSend(node: TestNode, messages: readonly Outbound[], isAfterPersist: boolean): void;
}

type SnapshotRead = Output["snapshotReads"][number];

export class TestNode {
  readonly id: NodeId;
  readonly disk: Disk;
  raft: Raft;
  isUp = true;
  /** Outputs that the disk has not finished. */
  writes: Output[] = [];
  reads: SnapshotRead[] = [];
  /** State of the machine: the last index applied, and a hash over all that was. */
  applied: number;
  hash: number;
  appliedTexts: string[] = [];
  status: RaftStatus | null = null;
  /** Bytes of each chunk of its snapshots. */
  chunkBytes = 4;
  readonly #options: RaftOptions;
  readonly #random: Random;
  readonly #ghost: Ghost;
  readonly #events: NodeEvents;
  readonly #nodes: ReadonlyMap<NodeId, TestNode>;
  #outputNumber = 0;

  constructor(
    options: RaftOptions,
    random: Random,
    disk: Disk,
    ghost: Ghost,
    events: NodeEvents,
    nodes: ReadonlyMap<NodeId, TestNode>,
  ) {
    this.id = options.id;
    this.#options = options;
    this.#random = random;
    this.disk = disk;
    this.#ghost = ghost;
    this.#events = events;
    this.#nodes = nodes;
    this.raft = this.#newRaft();
    [this.applied, this.hash] = this.#restoredMachine();
  }

  /** What was not written is lost, and so are all messages that waited for it. */
  crash(): void {
    this.isUp = false;
    this.writes = [];
    this.reads = [];
  }

  restart(): void {
    this.isUp = true;
    this.status = null;
    this.#outputNumber = 0;
    this.raft = this.#newRaft();
    [this.applied, this.hash] = this.#restoredMachine();
  }

  step(event: Event): void {
    const commitIndex = this.raft.commitIndex;
    const role = this.raft.role;
    this.raft.step(event);
    this.#check(commitIndex, role);
    if (event.kind === "tick" && this.raft.role === "leader")
      this.#ghost.onLeading(this, this.#options.electionTimeoutMsMin);
  }

  /** Takes one output; false when there is none. */
  takeOutput(): boolean {
    const commitIndex = this.raft.commitIndex;
    const isDue = this.raft.hasOutput();
    const output = this.raft.takeOutput();
    assert.equal(output !== null, isDue, "hasOutput says what takeOutput does");
    this.#check(commitIndex, this.raft.role);
    if (output === null) return false;
    this.#handle(output);
    return true;
  }

  /** The disk finishes the first `count` outputs in one batch; with `isCrashing` the node dies before it can tell anybody. */
  finishWrites(count: number, nowMs: number, isCrashing = false): void {
    const finished = this.writes.splice(0, count);
    const last = finished.at(-1);
    if (last === undefined) return;
    for (const output of finished) this.disk.write(output);
    if (isCrashing) {
      this.crash();
      return;
    }
    for (const output of finished) {
      for (const { to, message } of output.sendAfterPersist) this.#ghost.onLeaving(this, to, message);
      this.#events.onSend(this, output.sendAfterPersist, true);
    }
    this.step({ kind: "persisted", nowMs, number: last.number });
  }

  /** Takes a snapshot of what has been applied, if the log is durable up to there. */
  takeSnapshot(nowMs: number): boolean {
    const { raft, applied } = this;
    if (applied <= raft.snapshotIndex || raft.persistedIndex < applied || raft.lastApplied !== applied) return false;
    const base = raft.baseAt(applied as Index);
    if (!this.disk.writeOwnSnapshot(base, this.#chunks())) return false;
    this.step({ kind: "snapshotTaken", nowMs, base });
    return true;
  }

  answerRead(read: SnapshotRead, nowMs: number): void {
    const { to, base, chunk } = read;
    const { bytes, done } = this.disk.chunk(base.position.index, chunk);
    this.step({ kind: "snapshotRead", nowMs, to, base, chunk, bytes, done });
  }

  #check(commitIndex: number, role: string): void {
    // What an event commits is committed by those who were in force before it: only afterwards a leader goes on to others.
    const { configuration } = this.status ?? this.raft;
    this.status = checkInvariants(this.status, this.raft);
    if (this.raft.role === "leader" && role !== "leader") this.#ghost.onLeader(this);
    if (this.raft.commitIndex > commitIndex) this.#ghost.onCommitted(this, commitIndex, this.#nodes, configuration);
    this.#ghost.membership.onStepped(this, this.#ghost.lastCommitted);
  }

  #handle(output: Output): void {
    assert.equal(output.number, this.#outputNumber + 1, "output numbers rise by one");
    this.#outputNumber = output.number;
    this.#events.onOutput(this, output);
    this.#ghost.onAppended(output.entries);
    for (const { message } of output.send) this.#ghost.onSent(message);
    for (const { message } of [...output.send, ...output.sendAfterPersist])
      this.#ghost.membership.onSent(this, message);
    for (const outcome of output.changes) this.#ghost.membership.onOutcome(outcome);
    this.#events.onSend(this, output.send, false);
    this.writes.push(output);
    for (const { id, index } of output.confirmed) this.#ghost.onConfirmed(this, id, index);
    for (const id of output.unconfirmed) this.#ghost.onUnconfirmed(id);
    if (output.install !== null) this.#install(output.install);
    for (const entry of output.committed) this.#apply(entry);
    assert.equal(this.applied, this.raft.lastApplied, "every committed entry is handed out, once");
    this.reads.push(...output.snapshotReads);
  }

  #install(base: LogBase): void {
    assert.equal(this.disk.base.position.index, base.position.index, "what is installed is on the disk");
    [this.applied, this.hash] = this.#restoredMachine();
    this.#ghost.onApplied(this.applied, this.hash);
  }

  #apply(entry: Entry): void {
    assert.equal(entry.index, this.applied + 1, "entries are applied in order");
    this.applied = entry.index;
    this.hash = testCodec.chainFor(this.hash, entry.index, entry.term, entry.kind, entry.payload);
    if (entry.kind === "command") this.appliedTexts.push(textOf(entry.payload));
    this.#ghost.onApplied(entry.index, this.hash);
  }

  #chunks(): Uint8Array[] {
    const text = `${this.applied}:${this.hash}`;
    const chunks: Uint8Array[] = [];
    for (let at = 0; at < text.length; at += this.chunkBytes)
      chunks.push(bytesOf(text.slice(at, at + this.chunkBytes)));
    return chunks;
  }

  #restoredMachine(): [number, number] {
    const { base, snapshot } = this.disk;
    if (snapshot.length === 0) return [base.position.index, 1];
    const [applied, hash] = snapshot.map(textOf).join("").split(":").map(Number);
    assert.equal(applied, base.position.index, "the snapshot is the one of its base");
    return [applied ?? 0, hash ?? 0];
  }

  #newRaft(): Raft {
    return new Raft(this.#options, { random: this.#random, codec: testCodec }, this.disk.restored());
  }
}
