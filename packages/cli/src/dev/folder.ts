/** The folder of a local cluster: which configuration it was begun with, and what it takes to begin one. */
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import { CommandFailure } from "../command-failure.js";
import { localCluster } from "./cluster-file.js";
import type { ClusterSize } from "./cluster-file.js";
import { show } from "./show.js";

export interface FolderConfig {
  /** data/cluster.json. */
  readonly file: string;
  /** Where `text` comes from, for messages about what is wrong in it. */
  readonly source: string;
  readonly text: string;
  /** It is not in the folder yet. */
  readonly isNew: boolean;
}

/** Nothing is written here: a start that is refused leaves no traces. */
export function configFor(data: string, config: string | null): FolderConfig | null {
  if (isFile(data)) throw usage(`${show(data)} is a file; --data names a folder`);
  const file = path.join(data, "cluster.json");
  const found = readOrNull(file);
  if (config === null) return found === null ? null : { file, source: file, text: found, isNew: false };
  const own = readOrNull(config);
  if (own === null) throw usage(`${show(config)}: there is no such file`, "invalid_config");
  if (found !== null && !isSameConfig(found, own)) {
    throw usage(
      `${show(data)} was begun with another configuration than ${show(config)}, which is in ${show(file)}; leave out --config, or name another folder with --data`,
    );
  }
  return { file, source: config, text: found ?? own, isNew: found === null };
}

/** For a folder without a cluster. */
export function newConfig(data: string, size: ClusterSize): FolderConfig {
  const file = path.join(data, "cluster.json");
  return { file, source: file, text: `${JSON.stringify(localCluster(size), null, 2)}\n`, isNew: true };
}

/** Makes the folder and writes down what it is begun with. */
export function writeConfig({ file, text, isNew }: FolderConfig): void {
  if (isNew) writeFileSync(file, text);
}

export function makeFolder(data: string): void {
  mkdirSync(data, { recursive: true });
}

/** A refused file operation as one sentence; null for any other error. */
export function storageFailure(error: unknown): CommandFailure | null {
  if (!(error instanceof Error)) return null;
  const { syscall, code, path: place } = error as NodeJS.ErrnoException;
  if (syscall === undefined || code === undefined || place === undefined) return null;
  return new CommandFailure("storage", "storage", `${show(place)} can't be used: ${error.message}`);
}

export function usage(message: string, code: "usage" | "invalid_config" = "usage"): CommandFailure {
  return new CommandFailure("usage", code, message);
}

/** Two that aren't JSON are the same when their texts are: what is wrong in them is said later. */
function isSameConfig(a: string, b: string): boolean {
  try {
    return isDeepStrictEqual(JSON.parse(a), JSON.parse(b));
  } catch {
    return a === b;
  }
}

function isFile(name: string): boolean {
  return statSync(name, { throwIfNoEntry: false })?.isDirectory() === false;
}

/** Null when there is none. */
function readOrNull(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Below a file there is none either; making the folder says so.
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw usage(`${show(file)} can't be read: ${(error as Error).message}`, "invalid_config");
  }
}
