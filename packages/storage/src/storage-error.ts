import type { StorageProblemCode } from "./types.js";

/**
 * The process's exit code for each problem (docs/operations.md lists them for operators):
 *
 * | code         | exit | why                                                                            |
 * |--------------|------|--------------------------------------------------------------------------------|
 * | damaged      | 74   | the directory holds less or other than was promised; now in quarantine          |
 * | quarantined  | 74   | damage was found at an earlier start                                           |
 * | io           | 74   | the operating system refused a read or write; nothing is concluded from that   |
 * | locked       | 73   | another process has the directory                                              |
 * | other_node   | 77   | the directory belongs to another node                                          |
 * | newer_format | 78   | a later release of the program wrote it                                        |
 */
const exitCodes: Readonly<Record<StorageProblemCode, number>> = {
  damaged: 74,
  quarantined: 74,
  io: 74,
  locked: 73,
  other_node: 77,
  newer_format: 78,
};

const helpPage = "docs/operations.md#a-node-that-refuses-to-start";

/** Why a data directory can't be used, or can't be used any longer. The process ends with `exitCode`. */
export class StorageError extends Error {
  readonly code: StorageProblemCode;
  readonly exitCode: number;
  /** What was found, and where, without the pointer to the manual: the quarantine's reason. */
  readonly reason: string;

  constructor(code: StorageProblemCode, reason: string, cause?: unknown) {
    super(`${reason}; see ${helpPage}`, cause === undefined ? undefined : { cause });
    this.name = "StorageError";
    this.code = code;
    this.exitCode = exitCodes[code];
    this.reason = reason;
  }
}

/** `file` is relative to the data directory. */
export function damaged(file: string, found: string, cause?: unknown): StorageError {
  return new StorageError("damaged", `${file} is damaged: ${found}`, cause);
}

/** Bytes that don't have the form they should have. Whoever knows the file turns it into `damaged`. */
export class FormatError extends Error {
  constructor(found: string) {
    super(found);
    this.name = "FormatError";
  }
}

/** Runs `read`; a FormatError from it becomes damage of `file`. */
export function inFile<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof FormatError) throw damaged(file, error.message, error);
    throw error;
  }
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What isn't a StorageError came from the operating system or LevelDB, or is a broken invariant: the process ends all the same. */
export function asStorageError(error: unknown, doing: string): StorageError {
  if (error instanceof StorageError) return error;
  return new StorageError("io", `${doing} failed: ${textOf(rootOf(error))}`, error);
}

/** classic-level hides the cause of a failed open one level down. */
export function rootOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? rootOf(error.cause) : error;
}

/** The `code` that Node and classic-level put on their errors. */
export function codeOf(error: unknown): string | null {
  if (typeof error !== "object" || error === null || !("code" in error)) return null;
  return typeof error.code === "string" ? error.code : null;
}
