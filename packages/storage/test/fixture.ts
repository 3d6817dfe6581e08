/** Directories, entries and writes for the tests of this package. */
import type { Configuration, Entry, Index, LogBase, Restored, Term } from "@holdfast/raft";
import { entryCodec } from "@holdfast/wire";
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { cp, mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { after } from "node:test";
import { openDataDirectory } from "../src/index.js";
import type { DataDirectory, Store, StoreWrite } from "../src/index.js";

export const nodeId = "n1";
export const instance = "5f0c8a1b2d3e4f60";
export const clusterId = "c0ffee";
export const owner = { nodeId, instance, clusterId };
export const bootId = "boot-1";
export const laterBootId = "boot-2";

export const configuration: Configuration = {
  voters: [{ id: nodeId, instance, peer: "127.0.0.1:7201", client: "127.0.0.1:7101" }],
  outgoing: [],
  learners: [],
  removed: [],
};

export const firstBase: LogBase = { position: { term: term(0), index: index(0) }, chain: 0, configuration };

export function index(value: number): Index {
  return value as Index;
}

export function term(value: number): Term {
  return value as Term;
}

// In memory where there is such a place: most tests maltreat a directory, start on it three times, and have no need of a real disk.
const parent = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
let root: string | null = null;
let count = 0;

after(async () => {
  if (root !== null) await rm(root, { recursive: true, force: true });
});

/** A path for a new data directory, removed when the tests of this file have ended. */
export async function newPath(): Promise<string> {
  root ??= await mkdtemp(join(parent, "holdfast-storage-"));
  return join(root, `d${count++}`);
}

/** A copy of a closed directory. */
export async function copyOf(directory: string): Promise<string> {
  const path = await newPath();
  await cp(directory, path, { recursive: true });
  return path;
}

export async function open(
  directory: string,
  options: { nodeId?: string; machineBootId?: string } = {},
): Promise<DataDirectory> {
  return await openDataDirectory({
    directory,
    nodeId,
    machineBootId: bootId,
    randomInstance: () => instance,
    ...options,
  });
}

export async function openFormed(
  directory: string,
  machineBootId: string = bootId,
): Promise<{ opened: DataDirectory; store: Store; restored: Restored }> {
  const opened = await open(directory, { machineBootId });
  assert(opened.store !== null && opened.restored !== null, "the directory is formed");
  return { opened, store: opened.store, restored: opened.restored };
}

/** A new directory, formed and open. */
export async function formNew(
  base: LogBase = firstBase,
): Promise<{ directory: string; opened: DataDirectory; store: Store }> {
  const directory = await newPath();
  const opened = await open(directory);
  const { store } = await opened.form(clusterId, base);
  return { directory, opened, store };
}

export const nothing: StoreWrite = {
  hardState: null,
  truncateFrom: null,
  entries: [],
  chunk: null,
  removeThrough: null,
};

/** Entries that follow on `previous`, one for each payload. */
export function entriesAfter(
  previous: { index: number; chain: number },
  inTerm: number,
  payloads: readonly Uint8Array[],
): Entry[] {
  let { chain } = previous;
  return payloads.map((payload, at) => {
    const next = previous.index + 1 + at;
    chain = entryCodec.chainFor(chain, index(next), term(inTerm), "command", payload);
    return { index: index(next), term: term(inTerm), kind: "command", payload, chain };
  });
}

export function payloads(howMany: number, bytes: number, fill = 1): Uint8Array[] {
  return Array.from({ length: howMany }, (_unused, at) => new Uint8Array(bytes).fill((fill + at) & 0xff));
}

export function endOf(
  entries: readonly Entry[],
  base: LogBase = firstBase,
): { index: number; term: number; chain: number } {
  const last = entries.at(-1);
  return last === undefined
    ? { ...base.position, chain: base.chain }
    : { index: last.index, term: last.term, chain: last.chain };
}

/** A base that ends with this entry. */
export function baseAt(entry: Entry | undefined): LogBase {
  assert(entry !== undefined);
  return { position: { index: entry.index, term: entry.term }, chain: entry.chain, configuration };
}

export async function append(store: Store, entries: readonly Entry[]): Promise<void> {
  await store.write({ ...nothing, entries });
}

/** Writes a whole snapshot, each chunk in a write of its own. */
export async function writeSnapshot(
  store: Store,
  base: LogBase,
  chunks: readonly Uint8Array[],
  origin: "own" | "received" = "own",
): Promise<void> {
  for (const [chunk, bytes] of chunks.entries()) {
    await store.write({ ...nothing, chunk: { base, chunk, bytes, done: chunk === chunks.length - 1, origin } });
  }
}

export async function readSnapshot(store: Store): Promise<Uint8Array[]> {
  const { snapshot } = store;
  assert(snapshot !== null);
  const chunks: Uint8Array[] = [];
  for (let chunk = 0; chunk < snapshot.chunks; chunk++) {
    const bytes = await store.readChunk(snapshot.base.position.index, chunk);
    assert(bytes !== null);
    chunks.push(Uint8Array.from(bytes));
  }
  return chunks;
}

/**
 * Every file with the hash of its bytes, but for the lock's own database: that one changes with each attempt to take it. LOCK files are
 * left alone: reading one would drop this process's locks on it.
 */
export async function contentsOf(directory: string): Promise<Map<string, string>> {
  const contents = new Map<string, string>();
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const name = relative(directory, path);
    if (!entry.isFile() || name.startsWith("lock/") || entry.name === "LOCK") continue;
    contents.set(
      name,
      createHash("sha256")
        .update(await readFile(path))
        .digest("hex"),
    );
  }
  return contents;
}

/** Names in `db` with this ending, in order. */
export async function databaseFiles(directory: string, pattern: RegExp): Promise<string[]> {
  const names = await readdir(join(directory, "db"));
  return names
    .filter((name) => pattern.test(name))
    .sort()
    .map((name) => join(directory, "db", name));
}

/** For deepEqual: byte strings as text, whatever class they have. */
export function plain(restored: Restored | LogBase): unknown {
  return JSON.parse(
    JSON.stringify(restored, (_key, value: unknown) =>
      value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value,
    ),
  );
}
