/**
 * From the rows of a database to what the node knew: every check that can be made is made, and the first that fails is damage. Pure: it
 * looks at rows only, so it also judges a database that LevelDB has not opened.
 */
import type { Entry, LogBase, Restored } from "@holdfast/raft";
import { entryCodec } from "@holdfast/wire";
import {
  baseKey,
  checksumOf,
  chunkKey,
  decodeBlock,
  decodeComplete,
  decodeFirstBase,
  decodeMeta,
  decodeOwner,
  foldChecksum,
  metaKey,
  nameOf,
  ownerKey,
  unseal,
} from "./rows.js";
import type { Block, ChainedPosition, Complete, Meta, Owner, RowName } from "./rows.js";
import { FormatError, StorageError, damaged, inFile } from "./storage-error.js";

/** A row as it was read. The chunks of snapshots are not kept: their checksums are. */
export interface ReadRow {
  readonly checksum: number;
  readonly value: Buffer | null;
  /** Why the row is no good. Only a row that is still in force is judged by it. */
  readonly problem: unknown;
}

/** Meant for readDatabaseFiles. */
export function readRow(key: Buffer, value: Buffer): ReadRow {
  const name = nameOf(key);
  if (name?.kind !== "chunk") return { checksum: value.length < 4 ? 0 : checksumOf(value), value, problem: null };
  try {
    unseal(key, value);
    return { checksum: checksumOf(value), value: null, problem: null };
  } catch (problem) {
    return { checksum: 0, value: null, problem };
  }
}

export type ReadRows = ReadonlyMap<string, ReadRow>;

export interface Recovered {
  readonly owner: Owner;
  readonly meta: Meta;
  readonly restored: Restored;
  /** First indexes of the blocks of entries, in order; those at or below the base too. */
  readonly blocks: readonly number[];
  /** The newest complete snapshot. */
  readonly complete: Complete | null;
  /** Keys of rows that are no longer in force. */
  readonly garbage: readonly Buffer[];
}

interface SortedRows {
  readonly entries: { readonly key: Buffer; readonly generation: number; readonly first: number }[];
  readonly complete: { readonly key: Buffer; readonly index: number }[];
  readonly chunks: { readonly key: Buffer; readonly name: RowName & { readonly kind: "chunk" } }[];
}

/** `file` is what messages call the database. Throws StorageError("damaged") or ("newer_format"). */
export function recover(file: string, rows: ReadRows): Recovered {
  return inFile(file, () => recoverRows(rows));
}

function recoverRows(rows: ReadRows): Recovered {
  // The owner's row first: if a later release wrote it, then nothing else here is known to be what it seems.
  const owner = decodeOwner(valueOf(rows, ownerKey, "its owner"));
  const meta = decodeMeta(valueOf(rows, metaKey, "its hard state"));
  const firstBase = decodeFirstBase(valueOf(rows, baseKey, "its first base"));
  const sorted = sortRows(rows);
  const complete = recoverSnapshot(rows, sorted, meta);
  const base = complete?.base ?? firstBase;
  const blocks = sorted.entries.filter((row) => row.generation === meta.generation && row.first >= meta.firstIndex);
  const entries = recoverEntries(rows, blocks, base, meta);
  const { hardState, last } = meta;
  if (hardState.term < last.term || hardState.term < base.position.term)
    throw new FormatError("the term is older than the log's");
  return {
    owner,
    meta,
    restored: { hardState, base, entries },
    blocks: blocks.map((row) => row.first),
    complete,
    garbage: garbageIn(sorted, meta, complete),
  };
}

function valueOf(rows: ReadRows, key: Buffer, what: string): Buffer {
  const row = rows.get(key.toString("latin1"));
  if (row === undefined || row.value === null) throw new FormatError(`the row with ${what} is missing`);
  return row.value;
}

function sortRows(rows: ReadRows): SortedRows {
  const sorted: SortedRows = { entries: [], complete: [], chunks: [] };
  // Keys of one kind have one length, and their numbers are big-endian: the order of the texts is the order of the numbers.
  for (const text of [...rows.keys()].sort()) {
    const key = Buffer.from(text, "latin1");
    const name = nameOf(key);
    if (name === null) throw new FormatError(`a row with the unknown key ${key.toString("hex")}`);
    if (name.kind === "entries") sorted.entries.push({ key, generation: name.generation, first: name.first });
    else if (name.kind === "complete") sorted.complete.push({ key, index: name.index });
    else if (name.kind === "chunk") sorted.chunks.push({ key, name });
  }
  return sorted;
}

function recoverSnapshot(rows: ReadRows, sorted: SortedRows, meta: Meta): Complete | null {
  const newest = sorted.complete.at(-1);
  if (newest === undefined && meta.snapshotIndex === null) return null;
  if (newest === undefined || newest.index !== meta.snapshotIndex) {
    throw new FormatError(
      `the newest snapshot should be that of index ${meta.snapshotIndex}, and is that of ${newest?.index ?? "none"}`,
    );
  }
  return checkedSnapshot(rows, newest.key, newest.index);
}

/** A complete snapshot of which every chunk is there. Throws FormatError or StorageError. */
export function checkedSnapshot(rows: ReadRows, key: Buffer, index: number): Complete {
  const complete = decodeComplete(key, valueOf(rows, key, "a snapshot's base"));
  if (complete.base.position.index !== index) throw new FormatError("a snapshot's row has the base of another");
  let checksum = 0;
  for (let chunk = 0; chunk < complete.chunks; chunk++) {
    const row = rows.get(chunkKey(index, complete.attempt, chunk).toString("latin1"));
    if (row === undefined) throw new FormatError(`chunk ${chunk} of the snapshot of index ${index} is missing`);
    if (row.problem instanceof StorageError) throw row.problem;
    if (row.problem !== null)
      throw new FormatError(`chunk ${chunk} of the snapshot of index ${index} has a wrong checksum`);
    checksum = foldChecksum(checksum, row.checksum);
  }
  if (checksum !== complete.checksum) throw new FormatError(`the snapshot of index ${index} has a wrong checksum`);
  return complete;
}

/** The entries above the base. All entries on disk are checked, those below too: contiguous, chained, in terms that don't fall. */
function recoverEntries(rows: ReadRows, blocks: SortedRows["entries"], base: LogBase, meta: Meta): Entry[] {
  const entries: Entry[] = [];
  let last: ChainedPosition | null = null;
  let next: number = meta.firstIndex;
  for (const { key, first } of blocks) {
    if (first !== next) throw new FormatError(`the entries from index ${next} to ${first - 1} are missing`);
    const block = decodeBlock(key, valueOf(rows, key, "a block of entries"));
    last = checkBlock(block, next, last, base);
    for (const entry of block.entries) if (entry.index > base.position.index) entries.push(entry);
    next = last.index + 1;
  }
  const end: ChainedPosition = last ?? { ...base.position, chain: base.chain };
  if (end.index !== meta.last.index || end.term !== meta.last.term || end.chain !== meta.last.chain) {
    throw new FormatError(`the log should end with index ${meta.last.index}, and ends with ${end.index}`);
  }
  if (meta.firstIndex > base.position.index + 1 || end.index < base.position.index) {
    throw new FormatError(
      `the log from ${meta.firstIndex} to ${end.index} doesn't meet its base ${base.position.index}`,
    );
  }
  return entries;
}

/** Returns the position that the block ends with. `previous` is null before the first block on disk. */
function checkBlock(block: Block, first: number, previous: ChainedPosition | null, base: LogBase): ChainedPosition {
  const isAfterBase = first === base.position.index + 1;
  const known = previous ?? (isAfterBase ? { ...base.position, chain: base.chain } : null);
  if (known !== null && block.previousChain !== known.chain)
    throw new FormatError(`the chain is broken before index ${first}`);
  let term: number = known?.term ?? 0;
  let chain = block.previousChain;
  let last: ChainedPosition | null = null;
  for (const entry of block.entries) {
    const next: number = last === null ? first : last.index + 1;
    if (entry.index !== next) throw new FormatError(`the entry of index ${next} is missing`);
    if (entry.term < term) throw new FormatError(`the term falls at index ${next}`);
    chain = entryCodec.chainFor(chain, entry.index, entry.term, entry.kind, entry.payload);
    if (chain !== entry.chain) throw new FormatError(`the chain is broken at index ${next}`);
    if (next === base.position.index && (entry.term !== base.position.term || chain !== base.chain)) {
      throw new FormatError(`the entry of index ${next} is not the one that the snapshot ends with`);
    }
    ({ term } = entry);
    last = { index: entry.index, term: entry.term, chain };
  }
  if (last === null) throw new FormatError(`the block at index ${first} has no entries`);
  return last;
}

function garbageIn(sorted: SortedRows, meta: Meta, complete: Complete | null): Buffer[] {
  const index = complete?.base.position.index;
  return [
    ...sorted.entries.filter((row) => row.generation !== meta.generation || row.first < meta.firstIndex),
    ...sorted.complete.filter((row) => row.index !== index),
    ...sorted.chunks.filter((row) => row.name.index !== index || row.name.attempt !== complete?.attempt),
  ].map((row) => row.key);
}

/** Checks what the rows can't know by themselves: whose database this is, and how far it should reach. */
export function checkAgainst(file: string, recovered: Recovered, expected: Owner & { readonly mark: number }): void {
  const { owner, meta } = recovered;
  if (
    owner.nodeId !== expected.nodeId ||
    owner.instance !== expected.instance ||
    owner.clusterId !== expected.clusterId
  ) {
    throw damaged(file, `it belongs to node ${owner.nodeId}, instance ${owner.instance}, cluster ${owner.clusterId}`);
  }
  if (meta.batchNumber < expected.mark) {
    throw damaged(file, `it ends with batch ${meta.batchNumber}, and batch ${expected.mark} was finished`);
  }
}
