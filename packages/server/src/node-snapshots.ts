/** This node's snapshots: when one is taken, what is written of it, who reads it, and when what lies behind it may go. */
import type { Event, IncomingChunk, LogBase, Output, Raft } from "@holdfast/raft";
import type { Store } from "@holdfast/storage";
import type { Applier } from "./applier.js";
import { BackupTaking } from "./backup-taking.js";
import type { TakenBackup } from "./backup-taking.js";
import type { Persister } from "./persister.js";
import { SnapshotKeeper } from "./snapshot-keeper.js";
import type { SnapshotOptions } from "./snapshot-keeper.js";
import { SnapshotSource } from "./snapshot-source.js";

export interface NodeSnapshotsOptions extends SnapshotOptions {
  /** A follower that wasn't heard for so long takes no snapshot any more. */
  readonly heardWithinMs: number;
}

export interface NodeSnapshotsParts {
  readonly raft: Raft;
  readonly applier: Applier;
  readonly store: Store;
  readonly persister: Pick<Persister, "enqueueOwnChunk" | "enqueueRemoval">;
}

/** What it asks of the host. */
export interface NodeSnapshotsHost {
  /** In a later turn. */
  step(event: (nowMs: number) => Event): void;
  /** Something is to be done in a turn. */
  schedule(): void;
  /** The disk failed: the node ends. */
  onFailed(error: unknown): void;
}

export class NodeSnapshots {
  private readonly options: NodeSnapshotsOptions;
  private readonly parts: NodeSnapshotsParts;
  private readonly host: NodeSnapshotsHost;
  private readonly keeper: SnapshotKeeper;
  private readonly source: SnapshotSource;
  private readonly backup: BackupTaking;

  constructor(options: NodeSnapshotsOptions, parts: NodeSnapshotsParts, host: NodeSnapshotsHost) {
    this.options = options;
    this.parts = parts;
    this.host = host;
    this.keeper = new SnapshotKeeper(options);
    this.source = new SnapshotSource(parts.store);
    this.backup = new BackupTaking({
      begin: () => this.begin(),
      closingMs: () => parts.applier.machine.closingMs,
      pin: (index) => this.source.pin(index),
      read: (index, chunk) => this.source.read(index, chunk),
      onFailed: (error) => host.onFailed(error),
    });
  }

  /** Of this node's newest snapshot; null when it isn't known any more. */
  chunksOf(index: number): number | null {
    return this.source.chunksOf(index);
  }

  /** Rejects with BackupRefusedError. */
  takeBackup(): Promise<TakenBackup> {
    this.host.schedule();
    return this.backup.take();
  }

  /** So many entries, and so many bytes of them, were applied. */
  noteApplied(entries: number, bytes: number): void {
    this.keeper.noteApplied(entries, bytes);
  }

  /** A leader's snapshot takes the place of what was being walked. */
  onInstall(): void {
    this.keeper.abandon();
    this.backup.noteAbandoned();
  }

  /** Once a turn. */
  advance(): void {
    const { raft, applier, store, persister } = this.parts;
    // While a received snapshot takes the log's place, what was applied last may lie in neither.
    if (raft.persistedIndex > 0) {
      if (!this.keeper.isTaking) this.backup.advance(store.snapshot, applier.lastApplied);
      if (this.keeper.isDue) this.begin();
    }
    const chunk = this.keeper.next(raft.persistedIndex);
    if (chunk !== null) persister.enqueueOwnChunk(chunk);
    if (!this.source.isRemovalDue) return;
    const through = this.source.takeRemovable(raft.status(), this.options.heardWithinMs);
    if (through !== null) persister.enqueueRemoval(through);
  }

  /** A chunk of a snapshot of this node's own is durable. */
  onOwnChunk(chunk: IncomingChunk): void {
    const base = this.keeper.onWritten(chunk);
    if (base === null) return this.host.schedule();
    this.source.noteTaken(base.position.index);
    this.backup.noteTaken(base);
    this.host.step((nowMs) => ({ kind: "snapshotTaken", nowMs, base }));
  }

  /** For a follower. */
  read({ to, base, chunk }: Output["snapshotReads"][number]): void {
    const { raft, applier, store } = this.parts;
    // A log that begins above 1 has no snapshot at its beginning, and a node that begins below it needs one.
    const hasNone = store.snapshot === null && applier.lastApplied > raft.snapshotIndex;
    if (hasNone && !this.keeper.isTaking) this.begin();
    this.source.read(base.position.index, chunk).then(
      ({ bytes, done }) => this.host.step((nowMs) => ({ kind: "snapshotRead", nowMs, to, base, chunk, bytes, done })),
      (error: unknown) => this.host.onFailed(error),
    );
  }

  /** Who waits for a backup is refused. */
  stop(): void {
    this.backup.stop();
  }

  private begin(): LogBase {
    const { raft, applier } = this.parts;
    const base = raft.baseAt(applier.lastApplied);
    this.keeper.begin(applier.machine, base);
    return base;
  }
}
