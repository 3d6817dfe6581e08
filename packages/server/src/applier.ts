/** Applies committed entries to the lock machine, in log order, each once. Knows no clock. */
import { checkVersion, LockMachine } from "@holdfast/lock";
import type { Effect, VersionRange } from "@holdfast/lock";
import type { Entry, IncomingChunk, Index, LogBase } from "@holdfast/raft";
import { decodeCommand } from "@holdfast/wire";
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

  /** The received snapshot is durable and takes the place of all that was applied. */
  install(base: LogBase): void {
    if (base.position.index <= this.applied) return;
    this.current = this.receiver.finish(base);
    this.applied = base.position.index;
  }

  /**
   * Throws UnknownCommandError on a command of a newer release, and VersionError when the log reaches a version that this one can't run:
   * the node stops, for skipping an entry would make it differ from the others.
   */
  apply(entries: readonly Entry[]): number {
    let bytes = 0;
    for (const entry of entries) {
      if (entry.index !== this.applied + 1) {
        throw new Error(`entry ${entry.index} is to be applied after ${this.applied}`);
      }
      this.applied = entry.index;
      bytes += entry.payload.length;
      if (entry.kind === "command") {
        const effects = this.current.apply(entry.index, decodeCommand(entry.payload));
        checkVersion(this.current.clusterVersion, this.versions);
        this.events.onEffects(entry.index, effects);
      } else if (entry.kind === "noop") {
        this.events.onNoop(entry);
      }
    }
    return bytes;
  }
}

export { LockMachine };
