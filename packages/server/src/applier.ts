/** Applies committed entries to the lock machine, in log order, each once. Knows no clock. */
import { checkVersion, LockMachine } from "@holdfast/lock";
import type { Effect, VersionRange } from "@holdfast/lock";
import type { Entry, IncomingChunk, Index, LogBase } from "@holdfast/raft";
import { decodeCommand } from "@holdfast/wire";
import { Fifo } from "./fifo.js";
import { SnapshotReceiver } from "./snapshot-keeper.js";

export interface ApplierEvents {
  onEffects(index: Index, effects: readonly Effect[]): void;
  /** A leader's first entry of its term is applied. */
  onNoop(entry: Entry): void;
}

export class Applier {
  private current: LockMachine;
  private applied: Index;
  private readonly versions: VersionRange;
  private readonly receiver: SnapshotReceiver;
  private readonly events: ApplierEvents;
  /** Committed, and to be applied next. */
  private readonly backlog = new Fifo<Entry>();

  /** `machine` is the state at `lastApplied`; `versions`: what this node can run. */
  constructor(machine: LockMachine, lastApplied: Index, versions: VersionRange, events: ApplierEvents) {
    this.current = machine;
    this.applied = lastApplied;
    this.versions = versions;
    this.receiver = new SnapshotReceiver(versions);
    this.events = events;
  }

  get machine(): LockMachine {
    return this.current;
  }

  get lastApplied(): Index {
    return this.applied;
  }

  /** A chunk of a snapshot that a leader sends. */
  receive(chunk: IncomingChunk): void {
    this.receiver.push(chunk);
  }

  /** The received snapshot is durable and takes the place of all that was applied, or was to be. */
  install(base: LogBase): void {
    if (base.position.index <= this.applied) return;
    this.backlog.clear();
    this.current = this.receiver.finish(base);
    this.applied = base.position.index;
  }

  /** They are committed. */
  push(entries: readonly Entry[]): void {
    for (const entry of entries) this.backlog.push(entry);
  }

  get hasBacklog(): boolean {
    return this.backlog.length > 0;
  }

  /**
   * Those that were pushed: one at least, then until `isLong`; by default all. A single entry may end thousands of holds. Tells how many entries were applied, and their bytes. Throws
   * UnknownCommandError on a command of a newer release, and VersionError when the log reaches a version that this one can't run: the node
   * stops, for skipping an entry would make it differ from the others.
   */
  apply(isLong: () => boolean = () => false): { readonly entries: number; readonly bytes: number } {
    let entries = 0;
    let bytes = 0;
    for (let entry = this.backlog.shift(); entry !== undefined; entry = this.backlog.shift()) {
      this.applyOne(entry);
      entries += 1;
      bytes += entry.payload.length;
      if (isLong()) break;
    }
    return { entries, bytes };
  }

  private applyOne(entry: Entry): void {
    if (entry.index !== this.applied + 1)
      throw new Error(`entry ${entry.index} is to be applied after ${this.applied}`);
    this.applied = entry.index;
    if (entry.kind === "command") {
      const effects = this.current.apply(entry.index, decodeCommand(entry.payload));
      checkVersion(this.current.clusterVersion, this.versions);
      this.events.onEffects(entry.index, effects);
    } else if (entry.kind === "noop") {
      this.events.onNoop(entry);
    }
  }
}

export { LockMachine };
