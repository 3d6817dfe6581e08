/** A disk that keeps what was synced when its process dies, and forgets the rest. It demands of its writer what the real store demands. */
import type { Entry, HardState, IncomingChunk, Index, LogBase, Restored } from "@holdfast/raft";
import type { SnapshotInfo, Store, StoreWrite } from "@holdfast/storage";
import type { ProcessClock } from "./virtual-clock.js";

type StoredChunk = NonNullable<StoreWrite["chunk"]>;

interface StoredSnapshot {
  readonly base: LogBase;
  readonly chunks: readonly Uint8Array[];
}

export class MemoryDisk {
  hardState: HardState;
  base: LogBase;
  entries: Entry[] = [];
  /** Complete ones; the older of them until a removal. */
  readonly snapshots = new Map<Index, StoredSnapshot>();
  private readonly incoming = new Map<StoredChunk["origin"], IncomingChunk[]>();
  private pending: StoreWrite | null = null;
  /** What a sync and a read take; may change at any time. */
  syncMs: () => number = () => 1;
  readMs: () => number = () => 0;
  /** Writes are refused from now on. */
  fails = false;
  writes = 0;

  constructor(base: LogBase) {
    this.base = base;
    this.hardState = { term: 0 as HardState["term"], votedFor: null };
  }

  get snapshot(): SnapshotInfo | null {
    const newest = this.snapshots.get(this.base.position.index);
    return newest === undefined ? null : { base: newest.base, chunks: newest.chunks.length };
  }

  get chunks(): readonly Uint8Array[] {
    return this.snapshots.get(this.base.position.index)?.chunks ?? [];
  }

  restored(): Restored {
    const { index } = this.base.position;
    return { hardState: this.hardState, base: this.base, entries: this.entries.filter((entry) => entry.index > index) };
  }

  /** Its process dies. A write that was under way is on the disk as a whole, or not at all. */
  crash(isWritten: boolean): void {
    if (this.pending !== null && isWritten) this.apply(this.pending);
    this.pending = null;
    this.incoming.clear();
  }

  open(clock: ProcessClock): Store {
    const disk = this;
    return {
      get snapshot() {
        return disk.snapshot;
      },
      write(write: StoreWrite): Promise<void> {
        if (disk.pending !== null) throw new Error("two writes in flight");
        disk.pending = write;
        return new Promise((resolve, reject) => {
          clock.setTimer(disk.syncMs(), () => {
            disk.pending = null;
            if (disk.fails) return reject(new Error("EIO"));
            disk.apply(write);
            resolve();
          });
        });
      },
      async readChunk(index: Index, chunk: number): Promise<Uint8Array | null> {
        const delayMs = disk.readMs();
        if (delayMs > 0) await new Promise<void>((resolve) => clock.setTimer(delayMs, resolve));
        return disk.snapshots.get(index)?.chunks[chunk] ?? null;
      },
      async close(): Promise<void> {},
    };
  }

  private apply(write: StoreWrite): void {
    this.writes += 1;
    const { hardState, truncateFrom, removeThrough } = write;
    if (hardState !== null) this.setHardState(hardState);
    if (truncateFrom !== null) this.truncate(truncateFrom);
    for (const entry of write.entries) this.append(entry);
    if (write.chunk !== null) this.applyChunk(write.chunk);
    if (removeThrough !== null) this.remove(removeThrough);
    if (this.hardState.term < (this.entries.at(-1)?.term ?? 0)) throw new Error("the term is older than the log's");
  }

  private setHardState(next: HardState): void {
    const { term, votedFor } = this.hardState;
    if (next.term < term) throw new Error(`the term falls from ${term} to ${next.term}`);
    const isKept = next.term > term || votedFor === null || votedFor === next.votedFor;
    if (!isKept) throw new Error(`the vote of term ${term} changes from ${votedFor} to ${next.votedFor}`);
    this.hardState = next;
  }

  private truncate(from: Index): void {
    const kept = Math.max(from - 1, this.base.position.index);
    this.entries = this.entries.filter((entry) => entry.index <= kept);
  }

  private append(entry: Entry): void {
    if (entry.index <= this.base.position.index) return;
    const last = this.entries.at(-1)?.index ?? this.base.position.index;
    if (entry.index !== last + 1) throw new Error(`a gap in the log: ${entry.index} after ${last}`);
    this.entries.push(entry);
  }

  private remove(through: Index): void {
    if (this.snapshot === null || through > this.base.position.index)
      throw new Error("only what a snapshot covers is removed");
    this.entries = this.entries.filter((entry) => entry.index > through);
    for (const index of this.snapshots.keys()) if (index < this.base.position.index) this.snapshots.delete(index);
  }

  private applyChunk(chunk: StoredChunk): void {
    const incoming = chunk.chunk === 0 ? [] : (this.incoming.get(chunk.origin) ?? []);
    if (chunk.chunk !== incoming.length)
      throw new Error(`${chunk.origin} chunk ${chunk.chunk} after ${incoming.length}`);
    const first = incoming[0] ?? chunk;
    if (!isSameBase(first.base, chunk.base)) throw new Error("the chunks of a snapshot have one base");
    incoming.push(chunk);
    this.incoming.set(chunk.origin, incoming);
    if (!chunk.done) return;
    this.incoming.delete(chunk.origin);
    this.complete(
      chunk,
      incoming.map(({ bytes }) => bytes),
    );
  }

  private complete({ base, origin }: StoredChunk, chunks: readonly Uint8Array[]): void {
    const { index, term } = base.position;
    if (this.snapshots.has(index)) return;
    this.snapshots.set(index, { base, chunks });
    if (index <= this.base.position.index) return;
    const same = this.entries.find((entry) => entry.index === index);
    const isHeld = same !== undefined && same.term === term && same.chain === base.chain;
    if (origin === "own" && !isHeld) throw new Error("an own snapshot ends with an entry of the log");
    if (!isHeld) this.entries = [];
    this.base = base;
  }
}

function isSameBase(a: LogBase, b: LogBase): boolean {
  return a.position.index === b.position.index && a.position.term === b.position.term && a.chain === b.chain;
}
