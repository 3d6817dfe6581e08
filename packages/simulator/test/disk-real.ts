/** A real data directory whose process and machine die at chosen moments: its files are copied, and torn where a power loss tears. */
import type { Restored } from "@holdfast/raft";
import { StorageError, openDataDirectory } from "@holdfast/storage";
import type { DataDirectory, Store } from "@holdfast/storage";
import assert from "node:assert/strict";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { readFile, readdir, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Rot } from "../src/disk/rot.js";
import { firstBase } from "./disk-fixture.js";
import type { Chance } from "./disk-fixture.js";

// In memory where there is such a place: what a power loss leaves is made up here, so no real disk is needed.
const parent = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
let root: string | null = null;
let count = 0;

function newPath(): string {
  root ??= mkdtempSync(join(parent, "holdfast-simulator-"));
  count += 1;
  return join(root, `d${count}`);
}

export async function removeAll(): Promise<void> {
  if (root !== null) await rm(root, { recursive: true, force: true });
  root = null;
}

async function open(directory: string, machineBoot: number): Promise<DataDirectory> {
  return await openDataDirectory({
    directory,
    nodeId: "n1",
    machineBootId: `boot-${machineBoot}`,
    randomInstance: () => "1",
  });
}

type Found =
  | { readonly kind: "opened"; readonly opened: DataDirectory; readonly store: Store; readonly restored: Restored }
  | { readonly kind: "refused"; readonly error: StorageError };

/** Of a formed directory. */
export async function tryOpen(path: string, machineBoot: number): Promise<Found> {
  try {
    const opened = await open(path, machineBoot);
    const { store, restored } = opened;
    assert(store !== null && restored !== null, "it was formed");
    return { kind: "opened", opened, store, restored };
  } catch (error) {
    if (error instanceof StorageError) return { kind: "refused", error };
    throw error;
  }
}

let template: string | null = null;

/** A formed directory that nobody has open, last opened in the first boot of its machine. */
export async function makeFormed(): Promise<string> {
  if (template === null) {
    template = newPath();
    const opened = await open(template, 1);
    await opened.form("c", firstBase);
    await opened.close();
  }
  return wholeCopyOf(template);
}

/**
 * What a kill leaves at this moment. Synchronous, for nothing but LevelDB's own threads run meanwhile. The mark comes first, for it is written
 * last: so the copy is one of a single moment, or of a later one whose mark was not written yet. A copy across which LevelDB changed its
 * files, in a compaction, would be of no moment at all, and is made anew.
 */
export function copyOf(directory: string): string {
  for (;;) {
    const path = newPath();
    const before = filesOf(directory);
    if (isCopied(directory, path) && filesOf(directory) === before) return path;
    rmSync(path, { recursive: true });
  }
}

/** The files of the database with their sizes, but for those that only grow at their ends. */
function filesOf(directory: string): string {
  const names = readdirSync(join(directory, "db")).sort();
  const isSteady = (name: string): boolean => /^(CURRENT|MANIFEST|\d+\.ldb$)/.test(name);
  return names.map((name) => (isSteady(name) ? `${name} ${sizeIfThere(join(directory, "db", name))}` : name)).join();
}

function sizeIfThere(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? -1;
}

/** LOCK files are not looked at: reading one would drop this process's locks. False: a file vanished meanwhile. */
function isCopied(directory: string, path: string): boolean {
  mkdirSync(join(path, "db"), { recursive: true });
  const names = ["mark", "identity", ...readdirSync(join(directory, "db")).map((name) => join("db", name))];
  for (const name of names) {
    if (name.endsWith("LOCK")) continue;
    try {
      writeFileSync(join(path, name), readFileSync(join(directory, name)));
    } catch (error) {
      if (existsSync(join(directory, name))) throw error;
      return false;
    }
  }
  return true;
}

/** Of a directory that nobody has open. */
export function wholeCopyOf(directory: string): string {
  const path = newPath();
  cpSync(directory, path, { recursive: true });
  return path;
}

/** The path in the directory of the newest log of the database. */
export function newestLog(directory: string): string {
  const names = readdirSync(join(directory, "db"))
    .filter((name) => name.endsWith(".log"))
    .sort();
  const name = names.at(-1);
  assert(name !== undefined, "a database has a log");
  return join("db", name);
}

export function sizeOf(path: string): number {
  return statSync(path).size;
}

/** How a power loss leaves what was behind the last byte that reached the platter. */
export type Tear = "cut" | "zeros" | "noise";

/** Spoils a file from `at` on. Returns how many of its records, which end at `ends`, are whole then. */
export async function tear(
  path: string,
  at: number,
  how: Tear,
  ends: readonly number[],
  chance: Chance,
): Promise<number> {
  const before = await readFile(path);
  const after = Buffer.from(how === "cut" ? before.subarray(0, at) : before);
  if (how === "zeros") after.fill(0, at);
  if (how === "noise") for (let byte = at; byte < after.length; byte += 1) after[byte] = chance.integer(256);
  await writeFile(path, after);
  return ends.filter((end) => end <= after.length && after.subarray(0, end).equals(before.subarray(0, end))).length;
}

const slotSpacingBytes = 4_096;

/** The batch numbers in the two slots of a mark file. */
export function slotsOf(mark: Buffer): readonly [number, number] {
  return [mark.readUInt32BE(12), mark.readUInt32BE(slotSpacingBytes + 12)];
}

/** Each slot lies in a page of its own, which the kernel writes out when it likes. */
export function mixedMark(first: Buffer, second: Buffer): Buffer {
  return Buffer.concat([first.subarray(0, slotSpacingBytes), second.subarray(slotSpacingBytes)]);
}

export function flipIn(bytes: Buffer, from: number, length: number, chance: Chance): void {
  const at = from + chance.integer(length);
  bytes[at] = (bytes[at] ?? 0) ^ (1 << chance.integer(8));
}

export function spoilSlot(mark: Buffer, slot: number, chance: Chance): void {
  flipIn(mark, slot * slotSpacingBytes, 20, chance);
}

async function flipInFile(path: string, chance: Chance): Promise<void> {
  const bytes = await readFile(path);
  flipIn(bytes, 0, bytes.length, chance);
  await writeFile(path, bytes);
}

async function drawFile(directory: string, pattern: RegExp, chance: Chance): Promise<string> {
  const paths: string[] = [];
  for (const name of (await readdir(join(directory, "db"))).sort()) {
    const path = join(directory, "db", name);
    if (pattern.test(name) && sizeOf(path) > 0) paths.push(path);
  }
  const path = paths[chance.integer(paths.length)];
  assert(path !== undefined, "there is such a file");
  return path;
}

export interface LogEnds {
  readonly name: string;
  /** Where the records end, in order; the first is what the log had at the start of its process. */
  readonly ends: readonly number[];
}

/** Lets a directory rot that nobody has open. False: there is nothing that could rot so. */
export async function rotReal(directory: string, kind: Rot, log: LogEnds, chance: Chance): Promise<boolean> {
  const mark = join(directory, "mark");
  switch (kind) {
    case "flip":
      await flipInFile(await drawFile(directory, /\.(log|ldb)$/, chance), chance);
      return true;
    case "hole": {
      if (log.ends.length < 3) return false;
      const at = chance.integer(log.ends.length - 2);
      const bytes = await readFile(join(directory, log.name));
      bytes.fill(0, log.ends[at], log.ends[at + 1]);
      await writeFile(join(directory, log.name), bytes);
      return true;
    }
    case "file": {
      const path = await drawFile(directory, /^(CURRENT|MANIFEST-\d+|\d+\.ldb)$/, chance);
      if (chance.integer(2) === 0) await rm(path);
      else await truncate(path, chance.integer(sizeOf(path)));
      return true;
    }
    case "chunk":
      return false;
    case "mark": {
      const bytes = await readFile(mark);
      spoilSlot(bytes, chance.integer(2), chance);
      await writeFile(mark, bytes);
      return true;
    }
    case "markFile":
      await rm(mark);
      return true;
    case "identity":
      await flipInFile(join(directory, "identity"), chance);
      return true;
  }
}

/** Of the newest snapshot. */
export async function chunksOf(store: Store): Promise<readonly Uint8Array[] | null> {
  const { snapshot } = store;
  if (snapshot === null) return null;
  const chunks: Uint8Array[] = [];
  for (let chunk = 0; chunk < snapshot.chunks; chunk += 1) {
    const bytes = await store.readChunk(snapshot.base.position.index, chunk);
    assert(bytes !== null, "a complete snapshot has its chunks");
    chunks.push(bytes);
  }
  return chunks;
}
