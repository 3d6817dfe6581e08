/** What storage gives at a start and takes while running. */
import type { Entry, HardState, IncomingChunk, Index, LogBase, Restored } from "@holdfast/raft";

/** The `identity` file: who this directory is. Lives outside the database, replaced by write, fsync, rename, fsync of the folder. */
export interface Identity {
  readonly formatVersion: number;
  readonly nodeId: string;
  /** Drawn at random at the first start. */
  readonly instance: string;
  /** Null until the cluster is formed. */
  readonly clusterId: string | null;
  /** Counts the starts of this directory. */
  readonly boot: number;
  /** The machine's boot id at this start (Linux: /proc/sys/kernel/random/boot_id). */
  readonly machineBootId: string;
  /** Why this directory is refused for ever; null in health. */
  readonly quarantine: string | null;
}

/** One synced batch. All of it becomes durable, or nothing. */
export interface StoreWrite {
  readonly hardState: HardState | null;
  /** Entries from here on are gone, before `entries` are appended. */
  readonly truncateFrom: Index | null;
  readonly entries: readonly Entry[];
  /** A chunk of a snapshot, received from the leader ("received") or taken here ("own"). */
  readonly chunk: (IncomingChunk & { readonly origin: "own" | "received" }) | null;
  /** Entries up to here are covered by the newest complete snapshot and may go. */
  readonly removeThrough: Index | null;
}

/** A complete snapshot on disk: its base, and how many chunks it has. */
export interface SnapshotInfo {
  readonly base: LogBase;
  readonly chunks: number;
}

/** An open, formed database. One write in flight at a time: the caller queues. Any rejection is final: the process must end. */
export interface Store {
  /** Resolves when the batch is synced and the mark is written. */
  write(write: StoreWrite): Promise<void>;
  /** The newest complete snapshot, if there is one. */
  readonly snapshot: SnapshotInfo | null;
  /** A chunk of the complete snapshot with this index; null when that one is gone. */
  readChunk(snapshotIndex: Index, chunk: number): Promise<Uint8Array | null>;
  close(): Promise<void>;
}

/** A data directory that this process has locked and checked. */
export interface DataDirectory {
  readonly identity: Identity;
  /** What was recovered; null before formation, and from the first write on: the log would be kept in memory for ever. */
  readonly restored: Restored | null;
  /** Null before formation. */
  readonly store: Store | null;
  /** Makes the database with the cluster's first base; synced when it resolves. */
  form(clusterId: string, base: LogBase): Promise<{ readonly store: Store; readonly restored: Restored }>;
  /** Writes the reason into `identity`, synced. The caller then ends the process with exit code 74. */
  quarantine(reason: string): Promise<void>;
  /** Closes the database and gives the directory free. */
  close(): Promise<void>;
}

/** Why a directory can't be used. `exitCode` is the process's. */
export type StorageProblemCode = "damaged" | "quarantined" | "locked" | "other_node" | "newer_format" | "io";

/** The part of pino's shape that storage uses. One line per thing that an operator should know of. */
export interface StorageLogger {
  info(facts: object, text: string): void;
  warn(facts: object, text: string): void;
}

export interface DataDirectoryOptions {
  /** Made when it is missing, with mode 0700. */
  readonly directory: string;
  readonly nodeId: string;
  /** From readMachineBootId(). */
  readonly machineBootId: string;
  /** Draws the instance at the first start: a random text, never the same twice. */
  randomInstance(): string;
  readonly logger?: StorageLogger;
}
