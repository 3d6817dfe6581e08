/** A disk that keeps what was synced when its process dies, and forgets the rest. */
import type { Entry, HardState, IncomingChunk, Index, LogBase, Restored } from "@holdfast/raft";
import type { SnapshotInfo, Store, StoreWrite } from "@holdfast/storage";
import type { ProcessClock } from "./virtual-clock.js";

export class MemoryDisk {
  hardState: HardState;
  base: LogBase;
  entries: Entry[] = [];
  snapshot: SnapshotInfo | null = null;
  chunks: Uint8Array[] = [];
  private incoming: IncomingChunk[] = [];
  syncMs = 1;
  writes = 0;

  constructor(base: LogBase) {
    this.base = base;
    this.hardState = { term: 0 as HardState["term"], votedFor: null };
  }

  restored(): Restored {
    return { hardState: this.hardState, base: this.base, entries: [...this.entries] };
  }

  open(clock: ProcessClock): Store {
    const disk = this;
    let isWriting = false;
    return {
      get snapshot() {
        return disk.snapshot;
      },
      write(write: StoreWrite): Promise<void> {
        if (isWriting) throw new Error("two writes in flight");
        isWriting = true;
        return new Promise((resolve) => {
          clock.setTimer(disk.syncMs, () => {
            isWriting = false;
            disk.apply(write);
            resolve();
          });
        });
      },
      async readChunk(index: Index, chunk: number): Promise<Uint8Array | null> {
        return disk.snapshot?.base.position.index === index ? (disk.chunks[chunk] ?? null) : null;
      },
      async close(): Promise<void> {},
    };
  }

  private apply(write: StoreWrite): void {
    this.writes += 1;
    if (write.hardState !== null) this.hardState = write.hardState;
    const { truncateFrom, removeThrough } = write;
    if (truncateFrom !== null) this.entries = this.entries.filter((entry) => entry.index < truncateFrom);
    for (const entry of write.entries) {
      const last = this.entries.at(-1)?.index ?? this.base.position.index;
      if (entry.index !== last + 1) throw new Error(`a gap in the log: ${entry.index} after ${last}`);
      this.entries.push(entry);
    }
    if (write.chunk !== null) this.applyChunk(write.chunk);
    if (removeThrough !== null) this.entries = this.entries.filter((entry) => entry.index > removeThrough);
  }

  private applyChunk(chunk: IncomingChunk & { readonly origin: "own" | "received" }): void {
    if (chunk.chunk === 0) this.incoming = [];
    if (chunk.chunk !== this.incoming.length) throw new Error(`chunk ${chunk.chunk} after ${this.incoming.length}`);
    this.incoming.push(chunk);
    if (!chunk.done) return;
    this.chunks = this.incoming.map(({ bytes }) => bytes);
    this.incoming = [];
    this.snapshot = { base: chunk.base, chunks: this.chunks.length };
    this.base = chunk.base;
    const { index } = chunk.base.position;
    const same = this.entries.find((entry) => entry.index === index);
    const matches = same !== undefined && same.term === chunk.base.position.term && same.chain === chunk.base.chain;
    this.entries = matches ? this.entries.filter((entry) => entry.index > index) : [];
  }
}
