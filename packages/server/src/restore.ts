/** Makes the data directory of a new cluster out of a backup. What it begins with is said in packages/lock/src/restoring.ts. */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { SnapshotError, SnapshotLoader } from "@holdfast/lock";
import type { LockMachine, SnapshotPiece } from "@holdfast/lock";
import type { Configuration, Index, LogBase, Term } from "@holdfast/raft";
import { assertEmpty, BackupError, makeRestoredDirectory, readBackupFile, readMachineBootId } from "@holdfast/storage";
import type { BackupHeader, BackupRecord } from "@holdfast/storage";
import { decodeSnapshotPiece, encodeSnapshotPiece, WireError } from "@holdfast/wire";
import { recordsPerBackupPiece } from "./backup-stream.js";
import { restoreIndexFor } from "./restore-index.js";

export interface RestoreOptions {
  readonly directory: string;
  /** The new cluster's only voter; its other nodes join it. Checked by the caller. */
  readonly node: { readonly id: string; readonly peer: string; readonly client: string };
  /** A number above every token out there, if somebody knows one. */
  readonly above: number | null;
}

export interface RestoreParts {
  wallMs(): number;
  sleep(ms: number): Promise<unknown>;
  /** A fresh random name. */
  drawName(): string;
  readMachineBootId(): string;
}

export interface Restored {
  readonly backup: BackupHeader;
  readonly clusterId: string;
  /** The first token is above it. */
  readonly index: number;
  readonly term: number;
  /** For so long after its first leader serves the cluster grants nothing. */
  readonly closedMs: number;
  /** Sessions that the backup had, all of them ended now. */
  readonly sessions: number;
  /** See RestoreIndex. */
  readonly isAheadOfClock: boolean;
}

const systemParts: RestoreParts = {
  wallMs: () => Date.now(),
  sleep: (ms) => sleep(ms),
  drawName: () => randomBytes(16).toString("hex"),
  readMachineBootId,
};

/** Rejects with BackupError, RestoreIndexError, DirectoryNotEmptyError, StorageError, or what reading the file says. */
export async function restoreFile(
  file: string,
  options: RestoreOptions,
  parts: RestoreParts = systemParts,
): Promise<Restored> {
  // Before the work of reading a large file.
  await assertEmpty(options.directory);
  const { header, machine } = await loadBackup(readBackupFile(file));
  return restoreMachine(header, machine, options, parts);
}

interface LoadedBackup {
  readonly header: BackupHeader;
  readonly machine: LockMachine;
}

/** Rejects with BackupError. */
async function loadBackup(records: AsyncIterable<BackupRecord>): Promise<LoadedBackup> {
  const loader = new SnapshotLoader();
  let header: BackupHeader | null = null;
  for await (const record of records) {
    if (record.kind === "header") ({ header } = record);
    else if (record.kind === "chunk") inBackup(() => loader.push(decodeSnapshotPiece(record.bytes) as SnapshotPiece));
  }
  if (header === null) throw new Error("a whole backup has a header");
  const machine = inBackup(() => loader.finish());
  if (machine.closingMs !== header.closingMs)
    throw new BackupError(
      "damaged",
      0,
      `its header says ${header.closingMs} ms, and its snapshot ${machine.closingMs}`,
    );
  return { header, machine };
}

/** Its checksums are right: it was written so. */
function inBackup<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof SnapshotError) && !(error instanceof WireError)) throw error;
    throw new BackupError("damaged", 0, `its snapshot can't be loaded: ${error.message}`);
  }
}

export async function restoreMachine(
  backup: BackupHeader,
  machine: LockMachine,
  options: RestoreOptions,
  parts: RestoreParts = systemParts,
): Promise<Restored> {
  const { directory, node, above } = options;
  const moment = { index: backup.base.position.index, takenAtMs: backup.takenAtMs };
  const decided = restoreIndexFor(moment, above, parts.wallMs());
  const sessions = machine.sessionCount;
  machine.restore(decided.index);
  const clusterId = parts.drawName();
  const instance = parts.drawName();
  const configuration = { voters: [{ ...node, instance }], outgoing: [], learners: [], removed: [] };
  const base = restoredBase(decided.index, backup.base.position.term + 1, configuration);
  // Another restore in this second would have the same index.
  for (let now = parts.wallMs(); now < decided.notBeforeMs; now = parts.wallMs()) {
    await parts.sleep(decided.notBeforeMs - now);
  }
  const machineBootId = parts.readMachineBootId();
  const chunks = chunksOf(machine);
  await makeRestoredDirectory({ directory, nodeId: node.id, instance, clusterId, machineBootId, base, chunks });
  return {
    backup,
    clusterId,
    index: decided.index,
    term: base.position.term,
    closedMs: machine.closedMs,
    sessions,
    isAheadOfClock: decided.isAheadOfClock,
  };
}

/** A chain of its own: no entry of the old cluster fits behind it. */
function restoredBase(index: number, term: number, configuration: Configuration): LogBase {
  return { position: { term: term as Term, index: index as Index }, chain: 0, configuration };
}

/** The encoded pieces of a snapshot of its state now. */
export function* chunksOf(machine: LockMachine): Generator<Uint8Array> {
  const cursor = machine.beginSnapshot();
  for (let piece = cursor.next(recordsPerBackupPiece); piece !== null; piece = cursor.next(recordsPerBackupPiece)) {
    yield encodeSnapshotPiece(piece).slice();
  }
}
