/** A node's data directory: the identity that outlives its processes, and the disk below. What openDataDirectory is in production. */
import type { LogBase, Restored } from "@holdfast/raft";
import { StorageError } from "@holdfast/storage";
import type { DataDirectory, Identity, Store, StoreWrite } from "@holdfast/storage";
import type { DiskImage, VirtualDisk } from "../disk/virtual-disk.js";
import type { SimulatedProcess } from "../process.js";

/** Named places between two effects, at which a process can be made to die. */
export const crashPoints = [
  "before a write",
  "after a write",
  "before a snapshot chunk",
  "after a snapshot chunk",
  "before a received chunk",
  "after a received chunk",
  "after a received chunk that is not the last",
  "after an install",
  "before a removal",
  "after a removal",
  "before a hard state",
  "after a hard state",
  "before a truncation",
  "before a chunk is read",
  "before a frame is sent",
  "after an entry is applied",
] as const;

export type CrashPoint = (typeof crashPoints)[number];

export interface DirectoryHooks {
  hit(point: CrashPoint): void;
  note(mark: string): void;
}

interface OpenRequest {
  readonly nodeId: string;
  readonly machineBootId: string;
  randomInstance(): string;
}

/** A copy of everything in it. */
export interface DirectoryImage {
  readonly disk: DiskImage;
  readonly startsUnformed: number;
}

export class NodeDirectory {
  readonly disk: VirtualDisk;
  #instance: string | null = null;
  #clusterId: string | null = null;
  /** Starts before it was formed: the boot counter counts them too. */
  #startsUnformed = 0;
  /** Of a directory that was refused before it was formed; a formed one's is its disk's. */
  #refusal: string | null = null;

  constructor(disk: VirtualDisk) {
    this.disk = disk;
  }

  /** Drawn at its first start; null before that. */
  get instance(): string | null {
    return this.#instance;
  }

  get isFormed(): boolean {
    return this.#clusterId !== null;
  }

  get isQuarantined(): boolean {
    return this.isFormed ? this.disk.isQuarantined : this.#refusal !== null;
  }

  quarantine(reason: string): void {
    if (this.isFormed) this.disk.quarantine(reason);
    else if (!this.disk.isFull) this.#refusal = reason;
  }

  copy(): DirectoryImage {
    return { disk: this.disk.copy(), startsUnformed: this.#startsUnformed };
  }

  /** An old copy takes its place, its boot counter and all. */
  restore(image: DirectoryImage): void {
    this.disk.restore(image.disk);
    this.#startsUnformed = image.startsUnformed;
  }

  wipe(): void {
    this.disk.wipe();
    this.#instance = null;
    this.#clusterId = null;
    this.#startsUnformed = 0;
    this.#refusal = null;
  }

  /** Rejects with the StorageError that the real one rejects with. */
  async open(request: OpenRequest, process: SimulatedProcess, hooks: DirectoryHooks): Promise<DataDirectory> {
    await wait(process, this.disk.syncMs());
    this.#instance ??= request.randomInstance();
    if (this.#clusterId === null) {
      if (this.disk.isFull) throw new StorageError("io", "opening the data directory failed: ENOSPC");
      if (this.#refusal !== null) throw new StorageError("quarantined", `put into quarantine: ${this.#refusal}`);
      this.#startsUnformed += 1;
      return new OpenDirectory(this, this.#identityFor(request, null), null, { process, hooks });
    }
    const opened = this.disk.open(process);
    return new OpenDirectory(this, this.#identityFor(request, this.#clusterId), opened, { process, hooks });
  }

  async form(clusterId: string, base: LogBase, process: SimulatedProcess): Promise<Opened> {
    await wait(process, 2 * this.disk.syncMs());
    this.disk.format(base);
    this.#clusterId = clusterId;
    const opened = this.disk.open(process);
    // The start that formed it is counted already.
    this.#startsUnformed -= 1;
    return opened;
  }

  #identityFor({ nodeId, machineBootId }: OpenRequest, clusterId: string | null): Identity {
    const boot = this.#startsUnformed + (clusterId === null ? 0 : this.disk.boot);
    const instance = this.#instance ?? "";
    return { formatVersion: 1, nodeId, instance, clusterId, boot, machineBootId, quarantine: null };
  }
}

interface Opened {
  readonly store: Store;
  readonly restored: Restored;
}

class OpenDirectory implements DataDirectory {
  readonly identity: Identity;
  readonly restored: Restored | null;
  readonly store: Store | null;
  readonly #directory: NodeDirectory;
  readonly #parts: { readonly process: SimulatedProcess; readonly hooks: DirectoryHooks };
  #openStore: Store | null;

  constructor(
    directory: NodeDirectory,
    identity: Identity,
    opened: Opened | null,
    parts: { readonly process: SimulatedProcess; readonly hooks: DirectoryHooks },
  ) {
    this.#directory = directory;
    this.identity = identity;
    this.#parts = parts;
    this.#openStore = opened?.store ?? null;
    this.restored = opened?.restored ?? null;
    this.store = opened === null ? null : watched(opened.store, parts.hooks);
  }

  async form(clusterId: string, base: LogBase): Promise<Opened> {
    const { store, restored } = await this.#directory.form(clusterId, base, this.#parts.process);
    this.#openStore = store;
    return { store: watched(store, this.#parts.hooks), restored };
  }

  async quarantine(reason: string): Promise<void> {
    await wait(this.#parts.process, this.#directory.disk.syncMs());
    this.#directory.quarantine(reason);
  }

  async close(): Promise<void> {
    await this.#openStore?.close();
  }
}

/** The store with crash points on both sides of each write. */
function watched(store: Store, hooks: DirectoryHooks): Store {
  return {
    get snapshot() {
      return store.snapshot;
    },
    async write(write) {
      if (write.truncateFrom !== null) hooks.note("log truncated");
      if (write.removeThrough !== null) hooks.note("log compacted");
      for (const point of pointsBefore(write)) hooks.hit(point);
      await store.write(write);
      for (const point of pointsAfter(write)) hooks.hit(point);
    },
    readChunk(snapshotIndex, chunk) {
      if (chunk > 0) hooks.note("a later chunk was read");
      hooks.hit("before a chunk is read");
      return store.readChunk(snapshotIndex, chunk);
    },
    close: () => store.close(),
  };
}

function pointsBefore(write: StoreWrite): CrashPoint[] {
  const points: CrashPoint[] = ["before a write"];
  if (write.hardState !== null) points.push("before a hard state");
  if (write.truncateFrom !== null) points.push("before a truncation");
  if (write.chunk !== null)
    points.push(write.chunk.origin === "own" ? "before a snapshot chunk" : "before a received chunk");
  if (write.removeThrough !== null) points.push("before a removal");
  return points;
}

function pointsAfter(write: StoreWrite): CrashPoint[] {
  const points: CrashPoint[] = ["after a write"];
  if (write.hardState !== null) points.push("after a hard state");
  if (write.chunk !== null) {
    points.push(write.chunk.origin === "own" ? "after a snapshot chunk" : "after a received chunk");
    if (write.chunk.origin === "received")
      points.push(write.chunk.done ? "after an install" : "after a received chunk that is not the last");
  }
  if (write.removeThrough !== null) points.push("after a removal");
  return points;
}

function wait(process: SimulatedProcess, ms: number): Promise<void> {
  return new Promise((resolve) => process.deliverIn(ms, "disk", resolve));
}
