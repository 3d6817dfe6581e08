/** What is left of a cluster whose majority is gone: the state that one surviving node's directory leads to. */
import { versionRange } from "@holdfast/lock";
import type { LockMachine } from "@holdfast/lock";
import { BackupEncoder, newestWriteMs, openStoppedDirectory, readMachineBootId } from "@holdfast/storage";
import type { BackupHeader, StorageLogger } from "@holdfast/storage";
import { Applier } from "./applier.js";
import { configurationIn } from "./formation.js";
import { assertClockAfter } from "./restore-index.js";
import { chunksOf } from "./restore.js";
import { loadMachine } from "./stored-machine.js";

export interface Salvaged {
  readonly header: BackupHeader;
  /** After every entry that the directory has, whether or not it was ever committed. */
  readonly machine: LockMachine;
  /** Entries behind its snapshot: some of the last ones may never have been committed. */
  readonly entries: number;
  /** Why no node starts from the directory; null when one would. */
  readonly problem: string | null;
}

/** Nobody is told of what happened then. */
const ignored = { onEffects: () => undefined, onNoop: () => undefined };

export interface SalvageOptions {
  /** See StoppedDirectoryOptions. */
  readonly force: boolean;
  /** See RestoreOptions. */
  readonly above: number | null;
  readonly logger?: StorageLogger;
  readonly wallMs?: () => number;
}

/**
 * Rejects with what a node would end with: StorageError, or VersionError and UnknownCommandError for a log of another release; and with
 * RestoreIndexError when the clock lies before what was written.
 */
export async function salvageDirectory(directory: string, options: SalvageOptions): Promise<Salvaged> {
  const { wallMs = Date.now, above, ...others } = options;
  // No entry bears a time. The last write is the newest time known; nobody can tell whether the last entry came with it, or long before.
  const takenAtMs = await newestWriteMs(directory);
  // Not only when the index is chosen: opening writes, and a second try would find a write of the wrong clock's.
  if (above === null) assertClockAfter(takenAtMs, wallMs());
  const stopped = await openStoppedDirectory({ directory, machineBootId: readMachineBootId(), ...others });
  try {
    const { nodeId, clusterId, restored, store, problem } = stopped;
    const machine = await loadMachine(store);
    const applier = new Applier(machine, restored.base.position.index, versionRange, ignored);
    applier.push(restored.entries);
    applier.apply();
    const last = restored.entries.at(-1) ?? { ...restored.base.position, chain: restored.base.chain };
    // The node may have promised a vote in a later term than its last entry's.
    const position = { term: restored.hardState.term, index: last.index };
    const base = { position, chain: last.chain, configuration: configurationIn(restored) };
    const header = { clusterId, nodeId, base, takenAtMs, closingMs: machine.closingMs };
    return { header, machine, entries: restored.entries.length, problem };
  } finally {
    await stopped.close();
  }
}

/** The bytes of a backup file. */
export async function* backupBytes(header: BackupHeader, machine: LockMachine): AsyncGenerator<Uint8Array> {
  const encoder = new BackupEncoder();
  yield encoder.header(header);
  for (const chunk of chunksOf(machine)) yield encoder.chunk(chunk);
  yield encoder.end();
}
