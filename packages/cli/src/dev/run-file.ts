/** data/dev.json: which `holdfast dev` runs in a data folder, so that a second one can name it. */
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { processTable } from "../process-table.js";

export interface RunningCluster {
  readonly pid: number;
  /** Tells the process from a later one with the same pid. */
  readonly startedAt: string;
  readonly endpoints: readonly string[];
}

const fileName = "dev.json";

export interface RunFile {
  /** The one that runs already; null when the folder is ours now. */
  readonly other: RunningCluster | null;
  /** A file lay there whose process has ended: its nodes may be about to end too. */
  readonly wasStale: boolean;
  /** Gives the folder back. */
  remove(): void;
}

/** Takes the folder for this process, unless another holds it. */
export function takeRunFile(folder: string, endpoints: readonly string[]): RunFile {
  const file = path.join(folder, fileName);
  const own: RunningCluster = { pid: process.pid, startedAt: processTable().startOf(process.pid) ?? "", endpoints };
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify(own)}\n`);
  try {
    let wasStale = false;
    // A link fails when the name is taken: of two that start together one wins.
    for (let tries = 0; tries < 3; tries += 1) {
      if (linkIfFree(draft, file)) return { other: null, wasStale, remove: () => removeOwn(file, own) };
      const other = readRunFile(file);
      if (other !== null && isAlive(other)) return { other, wasStale, remove: () => undefined };
      const moved = setAside(file);
      if (moved !== null && isAlive(moved)) return { other: moved, wasStale, remove: () => undefined };
      wasStale = true;
    }
    throw new Error(`${file} comes back again and again: are several clusters being started here?`);
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * Takes a stale file away. Another process may have replaced it a moment ago: a live one that was moved by mistake is put back, and
 * returned.
 */
function setAside(file: string): RunningCluster | null {
  const aside = `${file}.${process.pid}.old`;
  try {
    renameSync(file, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  const moved = readRunFile(aside);
  if (moved !== null && isAlive(moved)) linkIfFree(aside, file);
  rmSync(aside, { force: true });
  return moved;
}

function isAlive(cluster: RunningCluster): boolean {
  return processTable().startOf(cluster.pid) === cluster.startedAt;
}

function linkIfFree(draft: string, file: string): boolean {
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function removeOwn(file: string, own: RunningCluster): void {
  if (readRunFile(file)?.pid === own.pid) rmSync(file, { force: true });
}

function readRunFile(file: string): RunningCluster | null {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    if (typeof value !== "object" || value === null) return null;
    const { pid, startedAt, endpoints } = value as Partial<RunningCluster>;
    if (typeof pid !== "number" || typeof startedAt !== "string" || !Array.isArray(endpoints)) return null;
    return { pid, startedAt, endpoints: endpoints.map(String) };
  } catch {
    return null; // gone meanwhile, or cut short by a full disk
  }
}
