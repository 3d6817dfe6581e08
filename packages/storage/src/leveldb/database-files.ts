/**
 * Reads a whole LevelDB database as it lies on disk, without opening it: every checksum is looked at, every file that should be there
 * is there, every batch follows the one before. LevelDB would open a damaged database without an error, and throw away what it
 * couldn't read; so it is only opened when this found nothing. Nothing here changes a file.
 */
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { readFileIfThere } from "../files.js";
import { damaged, inFile } from "../storage-error.js";
import { recordBeginsBehind, scanLog } from "./log-records.js";
import type { LogTail } from "./log-records.js";
import { readManifest } from "./manifest.js";
import type { ManifestState } from "./manifest.js";
import { readTable } from "./table.js";
import { batchHeaderBytes, mayFollow, readBatch } from "./write-batch.js";
import type { WriteBatch } from "./write-batch.js";

interface DatabaseFilesOptions {
  /** The database's directory. */
  readonly path: string;
  /** How error messages call it. */
  readonly name: string;
  /** The machine has been started anew since the last write: then the very end may be torn. */
  readonly machineRestarted: boolean;
}

/** `R` is whatever `keep` makes of a value. */
export interface DatabaseFiles<R> {
  /** The newest version of each row in the tables. By key, each byte one character (latin1). */
  readonly inTables: ReadonlyMap<string, Version<R>>;
  /** The batches that are in no table yet, in order. */
  readonly batches: readonly WriteBatch[];
  /** Harmless remains of a write that was cut off: each file is whole when cut to `end`. */
  readonly tails: readonly Tail[];
}

export interface Tail {
  /** With the database's name in front. */
  readonly file: string;
  readonly end: number;
  readonly found: string;
}

export interface Version<R> {
  readonly sequence: number;
  /** Null: deleted. */
  readonly row: R | null;
}

export type Keep<R> = (key: Buffer, value: Buffer) => R;

/** Throws StorageError("damaged"). `keep` is called for old versions of a row too: it must not judge. */
export async function readDatabaseFiles<R>(options: DatabaseFilesOptions, keep: Keep<R>): Promise<DatabaseFiles<R>> {
  const names = await readdir(options.path);
  const tails: Tail[] = [];
  const manifest = await readCurrentManifest(options, tails);
  const inTables = new Map<string, Version<R>>();
  const sequence = await readTables(options, manifest, (key, version, value) =>
    addVersion(inTables, key, version, value, keep),
  );
  const batches = await readLogs(options, manifest, names, sequence, tails);
  return { inTables, batches, tails };
}

/** The rows as LevelDB will show them: the tables', and the batches' on top. */
export function mergedRows<R>(files: DatabaseFiles<R>, keep: Keep<R>): Map<string, R> {
  const versions = new Map(files.inTables);
  for (const batch of files.batches) {
    let { sequence } = batch;
    for (const operation of batch.operations) addVersion(versions, operation.key, sequence++, operation.value, keep);
  }
  return newestRows(versions);
}

/** Without the deleted ones. */
export function newestRows<R>(versions: ReadonlyMap<string, Version<R>>): Map<string, R> {
  const rows = new Map<string, R>();
  for (const [name, version] of versions) if (version.row !== null) rows.set(name, version.row);
  return rows;
}

export function addVersion<R>(
  versions: Map<string, Version<R>>,
  key: Buffer,
  sequence: number,
  value: Buffer | null,
  keep: Keep<R>,
): void {
  const name = key.toString("latin1");
  const known = versions.get(name);
  if (known !== undefined && known.sequence >= sequence) return;
  versions.set(name, { sequence, row: value === null ? null : keep(key, value) });
}

async function readCurrentManifest(options: DatabaseFilesOptions, tails: Tail[]): Promise<ManifestState> {
  const current = await readFileIfThere(join(options.path, "CURRENT"));
  const currentName = `${options.name}/CURRENT`;
  if (current === null) throw damaged(currentName, "the file is missing");
  const match = /^(MANIFEST-\d+)\n$/.exec(current.toString("latin1"));
  if (match === null) throw damaged(currentName, "it doesn't name a MANIFEST");
  const name = `${options.name}/${match[1] as string}`;
  const path = join(options.path, match[1] as string);
  const bytes = await readFileIfThere(path);
  if (bytes === null) throw damaged(name, "the file is missing");
  const scan = scanLog(bytes);
  // A MANIFEST that lost more than an edit under way is found out by the files that it then names and that are gone.
  if (scan.tail !== null) tails.push(judgeTail(name, scan.tail, scan.end, bytes, options, () => true));
  return inFile(name, () => readManifest(scan.records.map((record) => record.payload)));
}

/** Returns the highest sequence number in the tables. */
async function readTables(
  options: DatabaseFilesOptions,
  manifest: ManifestState,
  add: (key: Buffer, sequence: number, value: Buffer | null) => void,
): Promise<number> {
  let highest = 0;
  for (const [number, size] of manifest.tables) {
    const file = fileName(number, "ldb");
    const name = `${options.name}/${file}`;
    const bytes = await readFileIfThere(join(options.path, file));
    if (bytes === null) throw damaged(name, "the file is missing");
    if (bytes.length !== size) throw damaged(name, `it has ${bytes.length} bytes and should have ${size}`);
    inFile(name, () =>
      readTable(bytes, (key, sequence, value) => {
        highest = Math.max(highest, sequence);
        add(key, sequence, value);
      }),
    );
  }
  return highest;
}

async function readLogs(
  options: DatabaseFilesOptions,
  manifest: ManifestState,
  names: readonly string[],
  tablesEnd: number,
  tails: Tail[],
): Promise<WriteBatch[]> {
  const numbers = names
    .flatMap((name) => /^(\d+)\.log$/.exec(name)?.[1] ?? [])
    .map(Number)
    .filter((number) => number >= manifest.logNumber)
    .sort((a, b) => a - b);
  // The log that the MANIFEST names was made before the edit that names it, and is kept until a later edit names another.
  if (numbers[0] !== manifest.logNumber)
    throw damaged(`${options.name}/${fileName(manifest.logNumber, "log")}`, "the file is missing");
  const batches: WriteBatch[] = [];
  let sequence = tablesEnd;
  let endedBy: Tail | null = null;
  for (const number of numbers) {
    const name = `${options.name}/${fileName(number, "log")}`;
    const bytes = await readFile(join(options.path, fileName(number, "log")));
    // What follows on a tail shows that it was not the end.
    if (endedBy !== null && bytes.length > 0)
      throw damaged(endedBy.file, `${endedBy.found}, and a later log has batches`);
    const scan = scanLog(bytes);
    for (const record of scan.records) {
      const batch = inFile(name, () => readBatch(record.payload));
      const isNext = batches.length === 0 ? batch.sequence > sequence : batch.sequence === sequence + 1;
      if (!isNext) throw damaged(name, `the batch at ${record.offset} doesn't follow the one before`);
      sequence = batch.sequence + batch.operations.length - 1;
      batches.push(batch);
    }
    if (scan.tail === null) continue;
    endedBy = judgeTail(name, scan.tail, scan.end, bytes, options, (payload) => mayFollow(payload, sequence));
    const { head } = scan.tail;
    // A kill leaves the beginning of the next batch. A power loss may leave anything behind the last sync.
    if (
      !options.machineRestarted &&
      head.length >= batchHeaderBytes &&
      !(batches.length === 0 ? mayFollow(head, sequence) : isBatch(head, sequence + 1))
    ) {
      throw damaged(name, `${endedBy.found}, and what is there doesn't follow the batch before`);
    }
    tails.push(endedBy);
  }
  return batches;
}

function isBatch(head: Uint8Array, sequence: number): boolean {
  return mayFollow(head, sequence - 1) && !mayFollow(head, sequence);
}

/** Throws when what lies behind the last whole record can't come from a write that was cut off. */
function judgeTail(
  name: string,
  tail: LogTail,
  end: number,
  bytes: Buffer,
  options: DatabaseFilesOptions,
  isPlausible: (payload: Uint8Array) => boolean,
): Tail {
  // A flipped bit in a length makes any record look cut short: what decides is whether another one begins behind it.
  if (recordBeginsBehind(bytes, tail.at + 1, isPlausible))
    throw damaged(name, `${tail.found}, with sound records behind it`);
  if (tail.kind === "damaged" && !options.machineRestarted) throw damaged(name, tail.found);
  return { file: name, end, found: tail.found };
}

function fileName(number: number, extension: string): string {
  return `${String(number).padStart(6, "0")}.${extension}`;
}
