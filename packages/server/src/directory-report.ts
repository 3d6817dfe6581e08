/** How a stopped node's data directory is: what its files hold, and what the lock machine makes of it. Changes nothing in it. */
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { versionRange } from "@holdfast/lock";
import type { Configuration, Entry } from "@holdfast/raft";
import { checkDirectory, readMachineBootId, StorageError } from "@holdfast/storage";
import type { CheckedDatabase, DirectoryCheck } from "@holdfast/storage";
import { decodeCommand, entryCodec, UnknownCommandError } from "@holdfast/wire";
import { Applier } from "./applier.js";
import { diskSpaceOf } from "./checkup.js";
import type { DiskSpace } from "./checkup.js";
import { endingFor } from "./endings.js";
import { exitCodes } from "./exit-codes.js";
import type { ExitName } from "./exit-codes.js";
import { configurationIn } from "./formation.js";
import { loadMachine } from "./stored-machine.js";

export interface DirectoryReport extends Pick<DirectoryCheck, "directory" | "identity" | "markedBatch" | "remains"> {
  /** Why no node goes on from it, each with what a node would end with; empty when one would. */
  readonly problems: readonly DirectoryProblem[];
  readonly database: DatabaseReport | null;
  /** The state after all entries, committed or not; null when it can't be made. */
  readonly machine: MachineReport | null;
  /** Of all its files. */
  readonly bytes: number;
  readonly disk: DiskSpace | null;
}

export interface DirectoryProblem {
  readonly exit: ExitName;
  readonly exitCode: number;
  readonly isQuarantine: boolean;
  readonly reason: string;
}

export interface DatabaseReport {
  readonly batchNumber: number;
  readonly term: number;
  readonly votedFor: string | null;
  /** The newest snapshot; null before the first. */
  readonly snapshot: { readonly index: number; readonly chunks: number } | null;
  /** On the disk, those that the snapshot covers too. */
  readonly entries: number;
  readonly lastIndex: number;
  readonly lastTerm: number;
  readonly configuration: Pick<Configuration, "voters" | "outgoing" | "learners">;
  /** See CheckedDatabase. */
  readonly tails: CheckedDatabase["tails"];
}

export interface MachineReport {
  readonly clusterVersion: number;
  readonly sessions: number;
  readonly locks: number;
}

/** Rejects with StorageError: "locked" while a node runs there, "io" when it is no data directory. */
export async function reportDirectory(path: string): Promise<DirectoryReport> {
  const checked = await checkDirectory({ directory: path, machineBootId: readMachineBootId() });
  const { directory, identity, markedBatch, remains } = checked;
  const problems: unknown[] = [...checked.problems];
  const read = checked.database === null ? null : await readAll(checked.database, problems);
  return {
    directory,
    identity,
    markedBatch,
    remains,
    problems: problems.map(problemFor),
    database: read?.database ?? null,
    machine: read?.machine ?? null,
    bytes: await bytesIn(directory),
    disk: await diskSpaceOf(directory),
  };
}

async function readAll(
  checked: CheckedDatabase,
  problems: unknown[],
): Promise<Pick<DirectoryReport, "database" | "machine">> {
  const { restored, store, batchNumber, tails } = checked;
  const { hardState, base } = restored;
  try {
    let entries = 0;
    for (const entry of checked.entries()) {
      decodeEntry(entry);
      entries += 1;
    }
    const last = restored.entries.at(-1) ?? base.position;
    const { voters, outgoing, learners } = configurationIn(restored);
    const database: DatabaseReport = {
      batchNumber,
      term: hardState.term,
      votedFor: hardState.votedFor,
      snapshot:
        store.snapshot === null ? null : { index: store.snapshot.base.position.index, chunks: store.snapshot.chunks },
      entries,
      lastIndex: last.index,
      lastTerm: last.term,
      configuration: { voters, outgoing, learners },
      tails,
    };
    return { database, machine: await machineFrom(checked, problems) };
  } catch (error) {
    problems.push(error);
    return { database: null, machine: null };
  }
}

/** Throws what its node would end with. */
function decodeEntry({ index, kind, payload }: Entry): void {
  try {
    if (kind === "command") decodeCommand(payload);
    else if (kind === "configuration") entryCodec.decodeConfiguration(payload);
  } catch (error) {
    if (error instanceof UnknownCommandError) throw error;
    throw new Error(`the entry of index ${index} can't be decoded: ${messageOf(error)}`, { cause: error });
  }
}

async function machineFrom({ store, restored }: CheckedDatabase, problems: unknown[]): Promise<MachineReport | null> {
  try {
    const machine = await loadMachine(store);
    const ignored = { onEffects: () => undefined, onNoop: () => undefined };
    const applier = new Applier(machine, restored.base.position.index, versionRange, ignored);
    applier.push(restored.entries);
    applier.apply();
    return { clusterVersion: machine.clusterVersion, sessions: machine.sessionCount, locks: machine.lockCount };
  } catch (error) {
    problems.push(error);
    return null;
  }
}

function problemFor(error: unknown): DirectoryProblem {
  const { exit } = endingFor(error);
  const isStorage = error instanceof StorageError;
  return {
    exit,
    exitCode: exitCodes[exit].code,
    isQuarantine: isStorage && error.code === "quarantined",
    reason: isStorage ? error.reason : messageOf(error),
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Files are not opened: a descriptor of a LOCK that is closed takes this process's lock away. */
async function bytesIn(directory: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) bytes += (await lstat(join(entry.parentPath, entry.name))).size;
  }
  return bytes;
}
