/**
 * A node's data directory at the level of the Store port, with the faults of a disk. It knows three states of the database:
 *
 * - *durable*: up to the last batch that was really synced; nothing but rot takes that away;
 * - *live*: what reads and the next start see, which outlives a kill; ahead of durable by batches that are only in the cache: those of a
 *   lying disk, and one that was under way or failed when its process ended;
 * - the write in flight: on the disk as a whole, or not at all.
 *
 * A start makes all that it finds durable: LevelDB copies its logs into a synced table before it lets anybody write.
 *
 * The mark (mark.ts in @holdfast/storage) is written behind each batch, without sync: a kill leaves it, a power loss may put it back to
 * what the kernel last wrote out.
 */
import type { Index, LogBase, Restored } from "@holdfast/raft";
import { StorageError } from "@holdfast/storage";
import type { SnapshotInfo, Store, StoreWrite } from "@holdfast/storage";
import { newCounts } from "./disk-counts.js";
import type { DiskCounts } from "./disk-counts.js";
import { DiskState } from "./disk-state.js";
import type { DurableState } from "./disk-state.js";
import { rotReasons } from "./rot.js";
import type { Rot } from "./rot.js";
import { VirtualStore } from "./virtual-store.js";
import type { DiskClock, PendingWrite, ReadOutcome } from "./virtual-store.js";

/** LevelDB begins a new log when its memtable is full; the mark is synced then. */
const logBytesMax = 4 * 1_048_576;
const batchOverheadBytes = 200;

interface CachedBatch {
  readonly write: StoreWrite;
  /** Its write has returned. */
  readonly isPromised: boolean;
}

/** All that the files hold, by value: what a copy of the directory copies. */
interface Files {
  live: DiskState;
  /** The number in the mark file. */
  mark: number;
  boot: number;
  /** The boot of the machine in which the directory was last opened. */
  machineBoot: number;
  quarantine: string | null;
  rot: readonly Rot[];
}

/** A copy of the directory. */
export interface DiskImage {
  readonly boot: number;
  readonly batchNumber: number;
  /** For `restore` alone. */
  readonly files: Readonly<Files>;
}

export class VirtualDisk {
  /** What a sync and a read take; may be replaced at any time. */
  syncMs: () => number = () => 1;
  readMs: () => number = () => 0;
  /** ENOSPC: writes fail, and so does opening. */
  isFull = false;
  /** Syncs return, but what they should have written is only in the cache. */
  isLying = false;
  /** Called when the writer demands what the real store refuses: a bug of the writer. Throws unless replaced. */
  onBroken: (error: unknown) => void = (error) => {
    throw error;
  };
  readonly counts: DiskCounts = newCounts();
  private readonly random: { integer(below: number): number };
  private formed: Files | null = null;
  /** The same object as `live` when nothing is only in the cache. */
  private synced: DiskState | null = null;
  private cached: CachedBatch[] = [];
  private markSynced = 1;
  private bootSynced = 0;
  private machineBoot = 1;
  private logBytes = 0;
  private store: VirtualStore | null = null;
  private stalled = false;
  private failsWrite = false;
  private failsRead = false;
  private failsOpen = false;
  /** Promised batches are gone, and no start has looked since. */
  private isShort = false;

  constructor(random: { integer(below: number): number }) {
    this.random = random;
  }

  private get files(): Files {
    if (this.formed === null) throw new Error("the disk was never formatted");
    return this.formed;
  }

  private get safe(): DiskState {
    return this.synced ?? this.files.live;
  }

  /** Formation: the cluster's first base, durable. */
  format(base: LogBase): void {
    if (this.formed !== null) throw new Error("a node is formed once");
    const live = new DiskState(base);
    this.formed = { live, mark: 1, boot: 0, machineBoot: this.machineBoot, quarantine: null, rot: [] };
    this.synced = live;
  }

  /** Everything in it is deleted, while nobody has it open. */
  wipe(): void {
    this.formed = null;
    this.synced = null;
    this.cached = [];
    this.markSynced = 1;
    this.bootSynced = 0;
    this.logBytes = 0;
    this.store = null;
    this.isShort = false;
  }

  /** How often the directory was opened, as its identity says. */
  get boot(): number {
    return this.files.boot;
  }

  get isOpen(): boolean {
    return this.store !== null;
  }

  get isQuarantined(): boolean {
    return this.files.quarantine !== null;
  }

  get isStalled(): boolean {
    return this.stalled;
  }

  /** While it is true no write returns. */
  set isStalled(isStalled: boolean) {
    const ends = this.stalled && !isStalled;
    this.stalled = isStalled;
    if (ends) this.store?.onStallEnded();
  }

  /** The next write that ends rejects (EIO); whether its batch is on the disk is drawn. */
  failNextWrite(): void {
    this.failsWrite = true;
  }

  /** The next read of a chunk rejects (EIO). */
  failNextRead(): void {
    this.failsRead = true;
  }

  /** The next opening throws (EIO). */
  failNextOpen(): void {
    this.failsOpen = true;
  }

  /** What was to fail next doesn't, there is room, and syncs sync again. */
  mend(): void {
    this.failsWrite = false;
    this.failsRead = false;
    this.failsOpen = false;
    this.isFull = false;
    this.isLying = false;
    this.isStalled = false;
  }

  /** Throws the StorageError that openDataDirectory would reject with. */
  open(clock: DiskClock): { store: Store; restored: Restored } {
    const { files } = this;
    if (this.store !== null) throw this.refused("locked", "db is in use by another program");
    // The directory's lock needs room on the disk, and comes first.
    if (this.isFull) throw this.refused("io", "opening the data directory failed: ENOSPC");
    if (this.failsOpen) {
      this.failsOpen = false;
      this.counts.failedOpens += 1;
      throw this.refused("io", "opening the data directory failed: EIO");
    }
    if (files.quarantine !== null) throw this.refused("quarantined", `put into quarantine: ${files.quarantine}`);
    const damage = this.findDamage();
    if (damage !== null) {
      files.quarantine = damage;
      throw this.refused("damaged", damage);
    }
    this.settle();
    const store = new VirtualStore(this.portFor(), clock);
    this.store = store;
    this.counts.opens += 1;
    return { store, restored: files.live.restored() };
  }

  private refused(code: "locked" | "io" | "quarantined" | "damaged", reason: string): StorageError {
    this.counts.refusedOpens[code] += 1;
    return new StorageError(code, reason);
  }

  private findDamage(): string | null {
    const { live, mark, rot, machineBoot } = this.files;
    // One invalid slot of the mark may be a torn write of a power loss.
    const bad = rot.find((kind) => kind !== "mark" || machineBoot === this.machineBoot);
    if (bad !== undefined) return rotReasons[bad];
    if (live.batchNumber >= mark) return null;
    return `db is damaged: it ends with batch ${live.batchNumber}, and batch ${mark} was finished`;
  }

  /** A start found everything sound: the tables, the mark and the identity are written anew. */
  private settle(): void {
    const { files } = this;
    if (this.isShort) this.counts.silentLosses += 1;
    this.isShort = false;
    files.live.clean();
    files.rot = [];
    files.mark = files.live.batchNumber;
    files.machineBoot = this.machineBoot;
    files.boot += 1;
    this.logBytes = 0;
    if (this.isLying) return;
    this.syncAll();
    this.markSynced = files.mark;
    this.bootSynced = files.boot;
  }

  private syncAll(): void {
    this.synced = this.files.live;
    this.cached = [];
  }

  private portFor(): ConstructorParameters<typeof VirtualStore>[0] {
    const disk = this;
    return {
      get syncMs() {
        return disk.syncMs;
      },
      get readMs() {
        return disk.readMs;
      },
      get isStalled() {
        return disk.stalled;
      },
      get snapshot() {
        return disk.files.live.snapshot;
      },
      onBroken: (error) => disk.onBroken(error),
      check: (write): SnapshotInfo | null => disk.files.live.check(write),
      finish: (write) => disk.finish(write),
      read: (index, chunk, pending) => disk.read(index, chunk, pending),
      noteStalled: () => void (disk.counts.stalledWrites += 1),
      release: (store) => {
        if (disk.store === store) disk.store = null;
      },
    };
  }

  private finish(write: StoreWrite): StorageError | null {
    const fails = this.failsWrite;
    if (fails || this.isFull) {
      this.failsWrite = false;
      const isThere = this.random.integer(2) === 1;
      // A sync that failed leaves the batch in the cache, marked as clean: reads see it, a power loss takes it.
      if (isThere) this.put(write, { isSynced: false, isPromised: false });
      this.counts.failedWrites[fails ? "io" : "full"][isThere ? "kept" : "dropped"] += 1;
      return new StorageError("io", `a write to the database failed: ${fails ? "EIO" : "ENOSPC"}`);
    }
    this.counts.writes += 1;
    if (this.isLying) this.counts.unsyncedWrites += 1;
    this.put(write, { isSynced: !this.isLying, isPromised: true });
    this.writeMark(write);
    return null;
  }

  private put(write: StoreWrite, { isSynced, isPromised }: { isSynced: boolean; isPromised: boolean }): void {
    const { files } = this;
    if (!isSynced && this.synced === files.live) files.live = files.live.clone();
    files.live.apply(write);
    if (isSynced) this.syncAll();
    else this.cached.push({ write, isPromised });
  }

  private writeMark(write: StoreWrite): void {
    const { files } = this;
    files.mark = files.live.batchNumber;
    this.logBytes += batchOverheadBytes + (write.chunk?.bytes.length ?? 0);
    for (const { payload } of write.entries) this.logBytes += payload.length;
    if (this.logBytes < logBytesMax) return;
    this.logBytes = 0;
    if (!this.isLying) this.markSynced = files.mark;
  }

  /** What the real store's readChunk does, a batch under way included: it is in force already, and can't be read yet. */
  private read(index: Index, chunk: number, pending: PendingWrite | null): ReadOutcome {
    if (this.failsRead) {
      this.failsRead = false;
      this.counts.failedReads += 1;
      return { error: new StorageError("io", `reading chunk ${chunk} of the snapshot of index ${index} failed: EIO`) };
    }
    const { live, rot } = this.files;
    const coming = pending?.completed ?? null;
    const incoming = coming?.base.position.index === index ? pending?.write.chunk : null;
    if (coming !== null && incoming !== null && incoming !== undefined) {
      if (chunk >= coming.chunks) return { bytes: null };
      const bytes = live.incomingFrom(incoming.origin)[chunk];
      return bytes === undefined ? this.damagedChunk(index, chunk, "it is missing") : { bytes };
    }
    const newest = coming?.base ?? live.base;
    if (pending !== null && pending.write.removeThrough !== null && index !== newest.position.index)
      return { bytes: null };
    const snapshot = live.snapshotAt(index);
    if (snapshot === null || chunk >= snapshot.chunks.length) return { bytes: null };
    if (rot.includes("chunk")) return this.damagedChunk(index, chunk, "it has a wrong checksum");
    return { bytes: snapshot.chunks[chunk] ?? null };
  }

  private damagedChunk(index: Index, chunk: number, found: string): ReadOutcome {
    const reason = `db is damaged: chunk ${chunk} of the snapshot of index ${index}: ${found}`;
    this.counts.damagedReads += 1;
    this.quarantine(reason);
    return { error: new StorageError("damaged", reason) };
  }

  /** The next openings are refused, for ever. A full disk can't take the note: then the damage is there still, and is found again. */
  quarantine(reason: string): void {
    if (!this.isFull) this.files.quarantine = reason;
  }

  /** The process dies. What its returned writes wrote survives; the one in flight as a whole, or not at all. */
  kill(): "nothing" | "kept" | "dropped" {
    const write = this.store?.die() ?? null;
    this.store = null;
    if (write === null) return "nothing";
    // How far it had come: 0 nothing whole, 1 in the log, 2 synced, 3 its mark is written too.
    const stage = this.random.integer(2) === 0 ? 0 : 1 + this.random.integer(3);
    const outcome = stage === 0 ? "dropped" : "kept";
    this.counts.killsInFlight[outcome] += 1;
    if (stage > 0) this.put(write, { isSynced: stage > 1 && !this.isLying, isPromised: false });
    if (stage === 3) this.writeMark(write);
    return outcome;
  }

  /** The machine dies. Returns how many batches are gone whose writes had returned: none unless the disk lied. */
  powerLoss(): { lost: number } {
    this.kill();
    this.machineBoot += 1;
    this.counts.powerLosses += 1;
    const files = this.formed;
    if (files === null) return { lost: 0 };
    const kept = this.random.integer(this.cached.length + 1);
    const gone = this.cached.slice(kept);
    if (gone.length > 0) {
      files.live = this.safe;
      for (const { write } of this.cached.slice(0, kept)) files.live.apply(write);
    }
    this.syncAll();
    this.loseMark();
    if (this.bootSynced < files.boot) {
      files.boot -= this.random.integer(files.boot - this.bootSynced + 1);
      this.bootSynced = files.boot;
    }
    const lost = gone.filter(({ isPromised }) => isPromised).length;
    this.counts.lostBatches += lost;
    this.counts.lostUnpromised += gone.length - lost;
    if (lost > 0) this.isShort = true;
    return { lost };
  }

  /** The mark falls back to any that was written since its last sync; often it stays, for the kernel writes it out by itself. */
  private loseMark(): void {
    const { files } = this;
    const behind = files.mark - this.markSynced;
    if (behind > 0) {
      const draw = this.random.integer(3);
      const back = draw === 0 ? 0 : draw === 1 ? behind : this.random.integer(behind + 1);
      if (back > 0) this.counts.marksFallenBack += 1;
      files.mark -= back;
    }
    this.markSynced = files.mark;
  }

  /** Something that was durable goes bad, unnoticed until it is looked at. */
  rot(kind: Rot): void {
    const { files } = this;
    this.counts.rots[kind] += 1;
    files.rot = [...files.rot, kind];
  }

  /** A copy of the directory as it is now, without the write in flight. */
  copy(): DiskImage {
    const { files } = this;
    const { boot, live } = files;
    return { boot, batchNumber: live.batchNumber, files: { ...files, live: live.clone() } };
  }

  /** The directory is replaced by an old copy of it, while no process has it open. */
  restore(image: DiskImage): void {
    if (this.store !== null) throw new Error("a directory that is in use is not replaced");
    this.counts.restores += 1;
    this.formed = { ...image.files, live: image.files.live.clone() };
    this.isShort = false;
    this.syncAll();
    this.markSynced = image.files.mark;
    this.bootSynced = image.files.boot;
  }

  /** What nothing but rot and old copies takes away now: the write in flight and what is only in the cache left out. */
  durable(): DurableState {
    return this.safe;
  }

  /** What the next start would find after a kill that drops the write in flight. */
  visible(): DurableState {
    return this.files.live;
  }
}
