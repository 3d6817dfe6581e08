/**
 * Takes this node's snapshots piece by piece, and puts together those that a leader sends. A snapshot is complete only when the own
 * log is durable up to its index: otherwise a crash would leave a state that the log can't explain.
 */
import { SnapshotLoader } from "@holdfast/lock";
import type { LockMachine, SnapshotCursor, SnapshotPiece, VersionRange } from "@holdfast/lock";
import type { IncomingChunk, Index, LogBase } from "@holdfast/raft";
import { decodeSnapshotPiece, encodeSnapshotPiece } from "@holdfast/wire";

export interface SnapshotOptions {
  /** A snapshot is begun after this many applied entries, or this many bytes of payload, since the last. */
  readonly snapshotEntries: number;
  readonly snapshotBytes: number;
  /** Bounds the work of one turn. */
  readonly recordsPerPiece: number;
}

interface Taking {
  readonly base: LogBase;
  readonly cursor: SnapshotCursor;
  /** The piece to write next, and the one after it: null when there is none, for the last one must say that it is; undefined: not asked for yet. */
  piece: readonly unknown[];
  following: readonly unknown[] | null | undefined;
  chunk: number;
  isWriting: boolean;
}

export class SnapshotKeeper {
  private readonly options: SnapshotOptions;
  private taking: Taking | null = null;
  private entries = 0;
  private bytes = 0;

  constructor(options: SnapshotOptions) {
    this.options = options;
  }

  get isTaking(): boolean {
    return this.taking !== null;
  }

  noteApplied(entries: number, bytes: number): void {
    this.entries += entries;
    this.bytes += bytes;
  }

  get isDue(): boolean {
    return (
      this.taking === null && (this.entries >= this.options.snapshotEntries || this.bytes >= this.options.snapshotBytes)
    );
  }

  begin(machine: LockMachine, base: LogBase): void {
    const cursor = machine.beginSnapshot();
    this.taking = {
      base,
      cursor,
      piece: cursor.next(this.options.recordsPerPiece) ?? [],
      following: undefined,
      chunk: 0,
      isWriting: false,
    };
    this.entries = 0;
    this.bytes = 0;
  }

  /** The next chunk to write, if none is being written; the last one waits until the log is durable up to the snapshot's index. */
  next(persistedIndex: Index): IncomingChunk | null {
    const { taking } = this;
    if (taking === null || taking.isWriting) return null;
    if (taking.following === undefined) taking.following = taking.cursor.next(this.options.recordsPerPiece);
    const { base, chunk, piece, following } = taking;
    const done = following === null;
    if (done && persistedIndex < base.position.index) return null;
    taking.piece = following ?? [];
    taking.following = undefined;
    taking.isWriting = true;
    taking.chunk += 1;
    return { base, chunk, bytes: encodeSnapshotPiece(piece), done };
  }

  /** A chunk is durable. Returns the base when the snapshot is complete. */
  onWritten(chunk: IncomingChunk): LogBase | null {
    const { taking } = this;
    if (taking === null || taking.base !== chunk.base) return null;
    taking.isWriting = false;
    if (!chunk.done) return null;
    this.abandon();
    return chunk.base;
  }

  /** A received snapshot replaces the machine that was being walked. */
  abandon(): void {
    this.taking?.cursor.close();
    this.taking = null;
  }
}

/** Builds a lock machine out of a received snapshot's chunks, as they come. */
export class SnapshotReceiver {
  private base: LogBase | null = null;
  private expected = 0;
  private loader: SnapshotLoader | null = null;
  private machine: LockMachine | null = null;
  private readonly versions: VersionRange;

  constructor(versions: VersionRange) {
    this.versions = versions;
  }

  /**
   * Chunks come in order; one that came before is passed over, chunk 0 begins anew. Throws on what can't be loaded, and with the last one
   * on what isn't whole: before that chunk is handed to the disk, where it would take the place of the log.
   */
  push(chunk: IncomingChunk): void {
    if (chunk.chunk === 0) {
      this.base = chunk.base;
      this.expected = 0;
      this.loader = new SnapshotLoader(this.versions);
      this.machine = null;
    }
    if (this.loader === null || this.base === null || !isSameBase(this.base, chunk.base)) return;
    if (chunk.chunk !== this.expected) return;
    // The loader checks the shape of every record.
    this.loader.push(decodeSnapshotPiece(chunk.bytes) as SnapshotPiece);
    this.expected += 1;
    if (!chunk.done) return;
    this.machine = this.loader.finish();
    this.loader = null;
  }

  /** The machine as of `base`, whose last chunk has been pushed. */
  finish(base: LogBase): LockMachine {
    const { machine } = this;
    if (machine === null || this.base === null || !isSameBase(this.base, base)) {
      throw new Error(`the snapshot at index ${base.position.index} is to be installed, but was not received`);
    }
    this.machine = null;
    this.base = null;
    return machine;
  }
}

function isSameBase(a: LogBase, b: LogBase): boolean {
  return a.position.index === b.position.index && a.position.term === b.position.term && a.chain === b.chain;
}
