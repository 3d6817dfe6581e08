/** The disk as one process has it open. After the process's death nothing that it asked for is ever answered. */
import type { Index } from "@holdfast/raft";
import { StorageError } from "@holdfast/storage";
import type { SnapshotInfo, Store, StoreWrite } from "@holdfast/storage";

/** Of the process that opened the disk: nothing comes when it is paused or dead. */
export interface DiskClock {
  setTimer(delayMs: number, run: () => void): { cancel(): void };
}

export interface PendingWrite {
  readonly write: StoreWrite;
  /** The snapshot that it makes the newest. */
  readonly completed: SnapshotInfo | null;
}

export type ReadOutcome = { readonly bytes: Uint8Array | null } | { readonly error: StorageError };

/** What a store needs of its disk. */
export interface StorePort {
  readonly syncMs: () => number;
  readonly readMs: () => number;
  readonly isStalled: boolean;
  readonly onBroken: (error: unknown) => void;
  readonly snapshot: SnapshotInfo | null;
  check(write: StoreWrite): SnapshotInfo | null;
  /** The time of the write is over: it is on the disk, or has failed. */
  finish(write: StoreWrite): StorageError | null;
  read(index: Index, chunk: number, pending: PendingWrite | null): ReadOutcome;
  noteStalled(): void;
  release(store: VirtualStore): void;
}

const never: Promise<never> = new Promise(() => undefined);

interface Flight extends PendingWrite {
  readonly settled: Promise<void>;
  readonly settle: (failure: StorageError | null) => void;
}

export class VirtualStore implements Store {
  private readonly disk: StorePort;
  private readonly clock: DiskClock;
  private flight: Flight | null = null;
  private timer: { cancel(): void } | null = null;
  /** Its time is over, and the disk stalls. */
  private isHeld = false;
  private failure: StorageError | null = null;
  private isDead = false;

  constructor(disk: StorePort, clock: DiskClock) {
    this.disk = disk;
    this.clock = clock;
  }

  get pending(): PendingWrite | null {
    return this.flight;
  }

  /** As in the real store that of the batch under way, if it completes one. */
  get snapshot(): SnapshotInfo | null {
    return this.flight?.completed ?? this.disk.snapshot;
  }

  write(write: StoreWrite): Promise<void> {
    if (this.isDead) return never;
    if (this.failure !== null) return Promise.reject(this.failure);
    let completed: SnapshotInfo | null;
    try {
      if (this.flight !== null) throw new Error("one write is in flight at a time");
      if (isEmpty(write)) return Promise.resolve();
      completed = this.disk.check(write);
    } catch (error) {
      this.fail(new StorageError("io", `a write to the database failed: ${String(error)}`, error));
      this.disk.onBroken(error);
      return Promise.reject(this.failure);
    }
    let settle: Flight["settle"] = () => undefined;
    const settled = new Promise<void>((resolve, reject) => {
      settle = (failure) => (failure === null ? resolve() : reject(failure));
    });
    this.flight = { write, completed, settled, settle };
    this.startSync();
    return settled;
  }

  private startSync(): void {
    this.timer = this.clock.setTimer(this.disk.syncMs(), () => this.onSynced());
  }

  private onSynced(): void {
    const { flight } = this;
    if (this.isDead || flight === null) return;
    this.timer = null;
    if (this.disk.isStalled) {
      this.isHeld = true;
      this.disk.noteStalled();
      return;
    }
    this.flight = null;
    const failure = this.disk.finish(flight.write);
    if (failure !== null) this.fail(failure);
    flight.settle(failure);
  }

  /** The disk works again. */
  onStallEnded(): void {
    if (!this.isHeld) return;
    this.isHeld = false;
    this.startSync();
  }

  readChunk(snapshotIndex: Index, chunk: number): Promise<Uint8Array | null> {
    if (this.isDead) return never;
    if (this.failure !== null) return Promise.reject(this.failure);
    const delayMs = this.disk.readMs();
    if (delayMs <= 0) return this.read(snapshotIndex, chunk);
    return new Promise((resolve) => {
      this.clock.setTimer(delayMs, () => {
        if (!this.isDead) resolve(this.read(snapshotIndex, chunk));
      });
    });
  }

  private read(snapshotIndex: Index, chunk: number): Promise<Uint8Array | null> {
    const outcome = this.disk.read(snapshotIndex, chunk, this.flight);
    if ("bytes" in outcome) return Promise.resolve(outcome.bytes);
    this.fail(outcome.error);
    return Promise.reject(outcome.error);
  }

  close(): Promise<void> {
    if (this.isDead) return never;
    this.fail(new StorageError("io", "the store is closed"));
    const release = (): void => this.disk.release(this);
    if (this.flight !== null) return this.flight.settled.then(release, release);
    release();
    return Promise.resolve();
  }

  /** Final: what memory says and what the disk holds may differ from here on. */
  private fail(failure: StorageError): void {
    this.failure ??= failure;
  }

  /** Its process is gone. Returns the write that was under way. */
  die(): StoreWrite | null {
    const write = this.flight?.write ?? null;
    this.isDead = true;
    this.timer?.cancel();
    this.timer = null;
    this.flight = null;
    this.isHeld = false;
    return write;
  }
}

function isEmpty({ hardState, truncateFrom, entries, chunk, removeThrough }: StoreWrite): boolean {
  return (
    hardState === null && truncateFrom === null && entries.length === 0 && chunk === null && removeThrough === null
  );
}
