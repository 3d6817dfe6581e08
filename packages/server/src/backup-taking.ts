/**
 * Has this node take a snapshot for a backup, in the way and at the pace in which it takes its own, and keeps it on the disk while it is
 * read. One at a time.
 */
import type { Index, LogBase } from "@holdfast/raft";
import type { SnapshotInfo } from "@holdfast/storage";
import type { SnapshotChunk } from "./snapshot-source.js";

/** Another backup is under way, or the node is stopping. */
export class BackupRefusedError extends Error {
  readonly code: "overloaded" | "not_ready";

  constructor(code: BackupRefusedError["code"], problem: string) {
    super(problem);
    this.name = "BackupRefusedError";
    this.code = code;
  }
}

export interface BackupTakingHost {
  /** Begins a snapshot of what is applied now. */
  begin(): LogBase;
  /** Of the state that is applied now. */
  closingMs(): number;
  /** Keeps that snapshot on the disk; null gives it free. */
  pin(index: Index | null): void;
  read(index: Index, chunk: number): Promise<SnapshotChunk>;
  /** The disk failed: the node ends. */
  onFailed(error: unknown): void;
}

/** A snapshot on the disk. */
export interface TakenBackup {
  readonly base: LogBase;
  readonly closingMs: number;
  read(chunk: number): Promise<SnapshotChunk>;
  /** It needn't be kept any longer. */
  release(): void;
}

interface Waiter {
  resolve(taken: TakenBackup): void;
  reject(error: BackupRefusedError): void;
}

type Stage =
  | { readonly kind: "idle" }
  /** A snapshot of what is applied by now is to be begun. */
  | { readonly kind: "wanted"; readonly waiter: Waiter }
  /** `base`: of the snapshot that is being taken for it. */
  | { readonly kind: "taking"; readonly waiter: Waiter; readonly base: LogBase; readonly closingMs: number }
  | { readonly kind: "reading" }
  | { readonly kind: "stopped" };

export class BackupTaking {
  private readonly host: BackupTakingHost;
  private stage: Stage = { kind: "idle" };

  constructor(host: BackupTakingHost) {
    this.host = host;
  }

  /** Resolves when a snapshot of the state now or later is on the disk; it is kept until `release`. Rejects with BackupRefusedError. */
  take(): Promise<TakenBackup> {
    if (this.stage.kind === "stopped") return Promise.reject(stopping());
    if (this.stage.kind !== "idle") {
      return Promise.reject(new BackupRefusedError("overloaded", "this node is giving out a backup already"));
    }
    return new Promise((resolve, reject) => {
      this.stage = { kind: "wanted", waiter: { resolve, reject } };
    });
  }

  /** Once a turn, while no snapshot is being taken. `newest`: the complete one on the disk. */
  advance(newest: SnapshotInfo | null, lastApplied: Index): void {
    const { stage } = this;
    if (stage.kind !== "wanted") return;
    const { waiter } = stage;
    const closingMs = this.host.closingMs();
    // Nothing has been applied since: it is the state now. (Before the first entry of all there is nothing to take: one comes soon.)
    if (newest?.base.position.index === lastApplied) this.settle(waiter, newest.base, closingMs);
    else if (lastApplied > 0) this.stage = { kind: "taking", waiter, base: this.host.begin(), closingMs };
  }

  /** A snapshot of this node's own is complete. */
  noteTaken(base: LogBase): void {
    const { stage } = this;
    if (stage.kind === "taking" && stage.base === base) this.settle(stage.waiter, base, stage.closingMs);
  }

  /** A leader's snapshot has taken the place of what was being walked: begin anew. */
  noteAbandoned(): void {
    const { stage } = this;
    if (stage.kind === "taking") this.stage = { kind: "wanted", waiter: stage.waiter };
  }

  stop(): void {
    const { stage } = this;
    this.stage = { kind: "stopped" };
    if (stage.kind === "wanted" || stage.kind === "taking") stage.waiter.reject(stopping());
  }

  private settle(waiter: Waiter, base: LogBase, closingMs: number): void {
    const { index } = base.position;
    this.stage = { kind: "reading" };
    this.host.pin(index);
    waiter.resolve({ base, closingMs, read: (chunk) => this.read(index, chunk), release: () => this.release() });
  }

  private async read(index: Index, chunk: number): Promise<SnapshotChunk> {
    try {
      return await this.host.read(index, chunk);
    } catch (error) {
      this.host.onFailed(error);
      throw error;
    }
  }

  private release(): void {
    this.host.pin(null);
    if (this.stage.kind === "reading") this.stage = { kind: "idle" };
  }
}

function stopping(): BackupRefusedError {
  return new BackupRefusedError("not_ready", "the node is stopping");
}
