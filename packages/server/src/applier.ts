/** Applies committed entries to the lock machine, in log order, each once. Knows no clock. */
import { LockMachine } from "@holdfast/lock";
import type { Effect } from "@holdfast/lock";
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
  private readonly receiver: SnapshotReceiver = new SnapshotReceiver();
  private readonly events: ApplierEvents;

  /** `machine` is the state at `lastApplied`. */
  constructor(machine: LockMachine, lastApplied: Index, events: ApplierEvents) {
    this.current = machine;
    this.applied = lastApplied;
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

  /** Throws UnknownCommandError on a command of a newer version: the node stops, for skipping it would make it differ from the others. */
  apply(entries: readonly Entry[]): number {
    let bytes = 0;
    for (const entry of entries) {
      if (entry.index !== this.applied + 1) {
        throw new Error(`entry ${entry.index} is to be applied after ${this.applied}`);
      }
      this.applied = entry.index;
      bytes += entry.payload.length;
      if (entry.kind === "command") {
        this.events.onEffects(entry.index, this.current.apply(entry.index, decodeCommand(entry.payload)));
      } else if (entry.kind === "noop") {
        this.events.onNoop(entry);
      }
    }
    return bytes;
  }
}

export { LockMachine };
