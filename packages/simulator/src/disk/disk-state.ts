/**
 * What the database of one node holds after a number of whole batches: the state of @holdfast/storage without its rows. It demands of its
 * writer what the real store demands, and a batch costs no more than its own entries and what it truncates.
 */
import type { Entry, HardState, Index, LogBase, Position, Restored } from "@holdfast/raft";
import type { SnapshotInfo, StoreWrite } from "@holdfast/storage";
import { entryCodec } from "@holdfast/wire";
import assert from "node:assert/strict";

type StoredChunk = NonNullable<StoreWrite["chunk"]>;

export interface StoredSnapshot {
  readonly base: LogBase;
  readonly chunks: readonly Uint8Array[];
}

interface Incoming {
  readonly base: LogBase;
  readonly chunks: Uint8Array[];
}

/** For the judges of a run. It speaks of one moment: ask for it anew after each event. */
export interface DurableState {
  /** Of the last batch. */
  readonly batchNumber: number;
  readonly hardState: HardState;
  /** Of the newest complete snapshot, or the first base. */
  readonly base: LogBase;
  /** The first entry that is still there; one above the last when there is none. At most one above the base. */
  readonly firstIndex: Index;
  readonly last: Position;
  readonly lastChain: number;
  entryAt(index: Index): Entry | null;
  /** Null where nothing is known: below the first entry but for the base, and above the last. */
  termAt(index: Index): Position["term"] | null;
  chainAt(index: Index): number | null;
}

interface Chained extends Position {
  readonly chain: number;
}

export class DiskState implements DurableState {
  batchNumber = 1;
  hardState: HardState;
  private readonly firstBase: LogBase;
  private newest: StoredSnapshot | null = null;
  /** Complete ones, by index. */
  private readonly complete = new Map<Index, StoredSnapshot>();
  private readonly incoming = new Map<StoredChunk["origin"], Incoming>();
  /** Without a gap. Those at or below the base stay until a removal. Empty, or the last one is at the base or above. */
  private readonly entries: Entry[] = [];

  /** Just formed. A base with a term is that of a restored cluster: a vote in that term may have been given. */
  constructor(firstBase: LogBase) {
    this.firstBase = firstBase;
    this.hardState = { term: firstBase.position.term, votedFor: null };
  }

  /** Costs as much as the log is long. */
  clone(): DiskState {
    const clone = new DiskState(this.firstBase);
    clone.batchNumber = this.batchNumber;
    clone.hardState = this.hardState;
    clone.newest = this.newest;
    for (const [index, snapshot] of this.complete) clone.complete.set(index, snapshot);
    for (const [origin, { base, chunks }] of this.incoming) clone.incoming.set(origin, { base, chunks: [...chunks] });
    for (const entry of this.entries) clone.entries.push(entry);
    return clone;
  }

  get base(): LogBase {
    return this.newest?.base ?? this.firstBase;
  }

  get snapshot(): SnapshotInfo | null {
    return this.newest === null ? null : { base: this.newest.base, chunks: this.newest.chunks.length };
  }

  get firstIndex(): Index {
    return this.entries[0]?.index ?? ((this.base.position.index + 1) as Index);
  }

  get last(): Position {
    const { term, index } = this.end;
    return { term, index };
  }

  get lastChain(): number {
    return this.end.chain;
  }

  entryAt(index: Index): Entry | null {
    return this.entries[index - this.firstIndex] ?? null;
  }

  termAt(index: Index): Position["term"] | null {
    return this.positionAt(index)?.term ?? null;
  }

  chainAt(index: Index): number | null {
    return this.positionAt(index)?.chain ?? null;
  }

  snapshotAt(index: Index): StoredSnapshot | null {
    return this.complete.get(index) ?? null;
  }

  /** What came of an unfinished snapshot. */
  incomingFrom(origin: StoredChunk["origin"]): readonly Uint8Array[] {
    return this.incoming.get(origin)?.chunks ?? [];
  }

  restored(): Restored {
    const above = this.base.position.index + 1 - this.firstIndex;
    return { hardState: this.hardState, base: this.base, entries: this.entries.slice(Math.max(0, above)) };
  }

  /** A start finds the newest snapshot only: older ones and unfinished ones are rows out of force, and are deleted. */
  clean(): void {
    this.incoming.clear();
    for (const index of this.complete.keys())
      if (index !== this.newest?.base.position.index) this.complete.delete(index);
  }

  /** Throws if the real store wouldn't take this batch. Returns the snapshot that the batch makes the newest, if it does. */
  check(write: StoreWrite): SnapshotInfo | null {
    const { hardState, truncateFrom, entries, chunk, removeThrough } = write;
    if (hardState !== null) this.checkHardState(hardState);
    const kept = truncateFrom === null ? this.end : this.endWhenCutAt(truncateFrom);
    const end = this.checkEntries(entries, kept);
    const { completed, last } =
      chunk === null ? { completed: null, last: end } : this.checkChunk(chunk, kept, end, entries);
    const newest = completed?.base ?? this.newest?.base ?? null;
    if (removeThrough !== null)
      assert(removeThrough <= (newest?.position.index ?? -1), "only what a complete snapshot covers is removed");
    assert((hardState ?? this.hardState).term >= last.term, "the term is not older than the log's");
    return completed;
  }

  private checkHardState(next: HardState): void {
    const { term, votedFor } = this.hardState;
    assert(next.term >= term, `the term does not fall, from ${term} to ${next.term}`);
    const isKept = next.term > term || votedFor === null || votedFor === next.votedFor;
    assert(isKept, `a vote stands for its whole term: ${votedFor} in term ${term}, and now ${next.votedFor}`);
  }

  /** Returns where the log ends then. */
  private checkEntries(entries: readonly Entry[], kept: Chained): Chained {
    const { position, chain } = this.base;
    let end = kept;
    for (const entry of entries) {
      if (entry.index === position.index) {
        assert(entry.term === position.term && entry.chain === chain, "an entry equals the base that covers it");
      }
      if (entry.index <= position.index) continue;
      assert(entry.index === end.index + 1, `the log has no gap: ${entry.index} after ${end.index}`);
      assert(entry.term >= end.term, "terms do not fall along the log");
      const expected = entryCodec.chainFor(end.chain, entry.index, entry.term, entry.kind, entry.payload);
      assert(entry.chain === expected, "each entry is chained to the one before");
      end = entry;
    }
    return end;
  }

  private checkChunk(
    chunk: StoredChunk,
    kept: Chained,
    end: Chained,
    entries: readonly Entry[],
  ): { completed: SnapshotInfo | null; last: Chained } {
    const incoming = chunk.chunk === 0 ? undefined : this.incoming.get(chunk.origin);
    assert(chunk.chunk === (incoming?.chunks.length ?? 0), "the chunks of a snapshot come in order");
    const { position, chain } = chunk.base;
    const base = incoming?.base ?? chunk.base;
    assert(base.position.index === position.index && base.chain === chain, "the chunks of a snapshot have one base");
    if (!chunk.done || !this.isNewer(position.index)) return { completed: null, last: end };
    const { index } = position;
    const at = index <= kept.index ? this.positionAt(index) : (entries.find((entry) => entry.index === index) ?? null);
    const isHeld = isAt(at, base);
    if (chunk.origin === "own") assert(isHeld, "an own snapshot ends with an entry of the log");
    return {
      completed: { base, chunks: chunk.chunk + 1 },
      last: isHeld ? end : { ...base.position, chain: base.chain },
    };
  }

  /** The batch is on the disk. It must have passed `check` in this very state. */
  apply(write: StoreWrite): void {
    const { hardState, truncateFrom, entries, chunk, removeThrough } = write;
    this.batchNumber += 1;
    if (hardState !== null) this.hardState = hardState;
    if (truncateFrom !== null && this.entries.length > 0) {
      const end = this.endWhenCutAt(truncateFrom);
      this.entries.length = end.index + 1 - this.firstIndex;
    }
    const { index: baseIndex } = this.base.position;
    for (const entry of entries) if (entry.index > baseIndex) this.entries.push(entry);
    if (chunk !== null) this.applyChunk(chunk);
    if (removeThrough !== null) this.remove(removeThrough);
  }

  private applyChunk(chunk: StoredChunk): void {
    const known = chunk.chunk === 0 ? undefined : this.incoming.get(chunk.origin);
    const incoming = known ?? { base: chunk.base, chunks: [] };
    incoming.chunks.push(chunk.bytes);
    this.incoming.set(chunk.origin, incoming);
    if (!chunk.done) return;
    this.incoming.delete(chunk.origin);
    const { index } = incoming.base.position;
    const isNewer = this.isNewer(index);
    if (!this.complete.has(index)) this.complete.set(index, incoming);
    if (!isNewer) return;
    if (!isAt(this.positionAt(index), incoming.base)) this.entries.length = 0;
    this.newest = incoming;
  }

  private remove(through: Index): void {
    const count = this.entries.findIndex((entry) => entry.index > through);
    this.entries.splice(0, count < 0 ? this.entries.length : count);
    for (const index of this.complete.keys())
      if (index !== this.newest?.base.position.index) this.complete.delete(index);
  }

  /** A second snapshot of one index is passed over: the same state is there already. */
  private isNewer(index: Index): boolean {
    return this.newest === null || index > this.newest.base.position.index;
  }

  private get end(): Chained {
    return this.entries.at(-1) ?? { ...this.base.position, chain: this.base.chain };
  }

  private endWhenCutAt(from: Index): Chained {
    const keptTo = Math.max(from - 1, this.base.position.index) as Index;
    const { end } = this;
    return keptTo >= end.index ? end : (this.positionAt(keptTo) ?? end);
  }

  private positionAt(index: Index): Chained | null {
    const { position, chain } = this.base;
    return this.entryAt(index) ?? (index === position.index ? { ...position, chain } : null);
  }
}

function isAt(at: Chained | null, { position, chain }: LogBase): boolean {
  return at !== null && at.index === position.index && at.term === position.term && at.chain === chain;
}
