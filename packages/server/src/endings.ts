/** Why a node ends, and with which exit code. */
import { VersionError } from "@holdfast/lock";
import { StorageError } from "@holdfast/storage";
import { UnknownCommandError } from "@holdfast/wire";
import type { ExitName } from "./exit-codes.js";
import { ListenError } from "./listening.js";
import { isNewerFormat } from "./stored-machine.js";

/** `sentence`: for a person; null when there is nothing to say. */
export interface Ending {
  readonly exit: ExitName;
  readonly sentence: string | null;
  readonly error?: unknown;
}

/** Begins the quarantine's reason of a directory that a peer has shown to be an old copy: its later starts have that exit code too. */
export const oldCopyReason = "old copy: ";

/** The same of a node that was removed from its cluster. */
export const removedReason = "removed: ";

const helpPage = "docs/operations.md#a-node-that-refuses-to-start";

/** A peer has refused this node for good: what the peer says, and where the manual goes on. */
export function refusedByPeer(exit: ExitName, from: string, problem: string): Ending {
  return { exit, sentence: `${from} refuses this node: ${problem}; see ${helpPage}` };
}

/** Its own log says so. */
export function removedFromCluster(nodeId: string): Ending {
  return {
    exit: "removed",
    sentence: `${nodeId} was removed from its cluster, and an id never comes back; its data directory is of no more use`,
  };
}

/** A committed configuration has its id with another directory: that binds the id for ever. */
export function replacedInCluster(nodeId: string, own: string, other: string): Ending {
  return {
    exit: "wrongInstance",
    sentence: `the cluster knows ${nodeId} with another data directory (instance ${other}, not ${own}), so this one can never belong to it; see ${helpPage}`,
  };
}

export function endingFor(error: unknown): Ending {
  if (error instanceof ListenError) return { exit: "portInUse", sentence: error.message, error };
  if (error instanceof StorageError) return { exit: exitFor(error), sentence: error.message, error };
  if (error instanceof VersionError)
    return { exit: "wrongVersion", sentence: `${error.message}; see ${helpPage}`, error };
  if (error instanceof UnknownCommandError || isNewerFormat(error)) {
    const advice = `start the newer release again; see ${helpPage}`;
    return {
      exit: "newerFormat",
      sentence: `a newer release wrote what this one can't read: ${messageOf(error)}: ${advice}`,
      error,
    };
  }
  return {
    exit: "internal",
    sentence: `an unexpected error: ${messageOf(error)}`,
    error,
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function exitFor(error: StorageError): ExitName {
  switch (error.code) {
    case "damaged":
    case "io":
      return "storage";
    case "quarantined":
      if (error.reason.includes(`quarantine: ${removedReason}`)) return "removed";
      return error.reason.includes(`quarantine: ${oldCopyReason}`) ? "oldCopy" : "storage";
    case "locked":
      return "directoryInUse";
    case "other_node":
      return "otherNode";
    case "newer_format":
      return "newerFormat";
    default:
      return assertNever(error.code);
  }
}

function assertNever(value: never): never {
  throw new Error(`unexpected storage problem ${String(value)}`);
}
