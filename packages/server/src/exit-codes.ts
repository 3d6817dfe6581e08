/** The one table of exit codes, for the node and the CLI. docs/cli.md is written from it. */

export type ExitName =
  | "ok"
  | "error"
  | "usage"
  | "warnings"
  | "problems"
  | "portInUse"
  | "internal"
  | "directoryInUse"
  | "storage"
  | "notObtained"
  | "lost"
  | "otherNode"
  | "newerFormat"
  | "wrongCluster"
  | "wrongInstance"
  | "oldCopy"
  | "unknownNode"
  | "wrongVersion"
  | "removed"
  | "interrupted"
  | "terminated";

export interface ExitCode {
  readonly code: number;
  readonly name: ExitName;
  /** One sentence for docs/cli.md. */
  readonly sentence: string;
}

/**
 * 64 to 78 follow sysexits.h where it has a fitting word. A supervisor may restart a node after 1, 69, 70, 73 and 74 (damage shows
 * itself again, and nothing is lost by looking twice); 2 and 77 to 84 need a person.
 */
export const exitCodes: Readonly<Record<ExitName, ExitCode>> = {
  ok: { code: 0, name: "ok", sentence: "Done; a node was asked to stop and stopped in order." },
  error: { code: 1, name: "error", sentence: "The operation failed; the message says why." },
  usage: {
    code: 2,
    name: "usage",
    sentence: "A wrong argument, or a configuration file with problems; all of them are listed.",
  },
  warnings: {
    code: 3,
    name: "warnings",
    sentence: "A doctor found nothing wrong yet, and something that should be looked at.",
  },
  problems: { code: 4, name: "problems", sentence: "A doctor found something wrong; what mends it is said with it." },
  portInUse: {
    code: 69,
    name: "portInUse",
    sentence: "A port of this node is in use, or its listen address isn't one of this machine.",
  },
  internal: {
    code: 70,
    name: "internal",
    sentence: "A broken invariant or an unexpected error; the node stopped rather than go on.",
  },
  directoryInUse: { code: 73, name: "directoryInUse", sentence: "Another process has this data directory open." },
  storage: {
    code: 74,
    name: "storage",
    sentence: "A storage error, or a damaged or quarantined data directory; docs/operations.md leads back.",
  },
  notObtained: {
    code: 75,
    name: "notObtained",
    sentence: "The lock could not be obtained in time (holdfast lock and elect).",
  },
  lost: { code: 76, name: "lost", sentence: "The lock was lost while the command ran (holdfast lock and elect)." },
  otherNode: { code: 77, name: "otherNode", sentence: "The data directory belongs to another node." },
  newerFormat: {
    code: 78,
    name: "newerFormat",
    sentence: "A newer release has written what this one can't read.",
  },
  wrongCluster: {
    code: 79,
    name: "wrongCluster",
    sentence: "The other nodes belong to another cluster than this data directory.",
  },
  wrongInstance: {
    code: 80,
    name: "wrongInstance",
    sentence: "The cluster knows this node's id with another data directory: this one was wiped or exchanged.",
  },
  oldCopy: {
    code: 81,
    name: "oldCopy",
    sentence: "The data directory is an old copy, or a second copy in use: this node has promised more than it holds.",
  },
  unknownNode: { code: 82, name: "unknownNode", sentence: "The cluster doesn't know this node's id." },
  wrongVersion: {
    code: 83,
    name: "wrongVersion",
    sentence: "The cluster has reached a version that this release can't run; its data is in order.",
  },
  removed: {
    code: 84,
    name: "removed",
    sentence: "This node was removed from its cluster; its id and its data directory never come back.",
  },
  interrupted: { code: 130, name: "interrupted", sentence: "A second SIGINT ended the process at once." },
  terminated: { code: 143, name: "terminated", sentence: "A second SIGTERM ended the process at once." },
};

/** For programs, as all the errors of the command line have one: "directory_in_use". */
export function errorCodeFor(exit: ExitName): string {
  return exit.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
