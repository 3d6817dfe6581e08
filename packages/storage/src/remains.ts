/**
 * The state that the sound rows of a damaged database lead to: the newest snapshot that is whole, and the entries that follow on it without
 * a gap. Pure. A node never starts from it: what is missing may be a vote or an acknowledged entry. A restore can, which makes a new cluster
 * above everything.
 */
import type { Entry, LogBase, Restored, Term } from "@holdfast/raft";
import { entryCodec } from "@holdfast/wire";
import { checkedSnapshot } from "./recovery.js";
import type { ReadRows } from "./recovery.js";
import { baseKey, decodeBlock, decodeFirstBase, decodeMeta, decodeOwner, metaKey, nameOf, ownerKey } from "./rows.js";
import type { Block, Complete, Owner } from "./rows.js";
import { FormatError, StorageError, damaged } from "./storage-error.js";

export interface Remains {
  readonly owner: Pick<Owner, "nodeId" | "clusterId">;
  readonly restored: Restored;
  readonly complete: Complete | null;
  /** What the rows themselves say is missing; null when they hold together. */
  readonly missing: string | null;
}

/**
 * `file` is what messages call the database; `known` is whose it is by other evidence. Throws StorageError ("damaged") when nothing is
 * left to go on from.
 */
export function recoverRemains(file: string, rows: ReadRows, known: Remains["owner"] | null): Remains {
  const owner = decodedRow(rows, ownerKey, decodeOwner) ?? known;
  if (owner === null) throw damaged(file, "nothing in it says whose it is");
  const meta = decodedRow(rows, metaKey, decodeMeta);
  const blocks = blocksIn(rows, meta?.generation ?? null);
  const complete = newestSnapshot(rows);
  const base = complete?.base ?? decodedRow(rows, baseKey, decodeFirstBase);
  if (base === null) throw damaged(file, "neither a snapshot nor the log's beginning can be read");
  if (complete === null && (hasSnapshotRows(rows) || (meta?.firstIndex ?? 0) > base.position.index + 1))
    throw damaged(file, "no snapshot in it can be read, and the log alone doesn't lead to a state");
  const entries = entriesBehind(base, blocks);
  const last = entries.at(-1) ?? base.position;
  const term = Math.max(meta?.hardState.term ?? 0, last.term) as Term;
  const end = meta?.last.index ?? null;
  const isWhole = end !== null && end <= last.index && end >= base.position.index;
  const missing = isWhole
    ? null
    : `the log is there up to index ${last.index}, and ${end === null ? "nobody knows how far it reached" : `it reached ${end}`}`;
  return { owner, restored: { hardState: { term, votedFor: null }, base, entries }, complete, missing };
}

/** Null when it isn't there, or can't be read. */
function decodedRow<T>(rows: ReadRows, key: Buffer, decode: (value: Buffer) => T): T | null {
  const value = rows.get(key.toString("latin1"))?.value ?? null;
  return value === null ? null : soundOrNull(() => decode(value));
}

function soundOrNull<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof FormatError) return null;
    // A later release's rows are sound, and must be read by that.
    if (error instanceof StorageError && error.code === "damaged") return null;
    throw error;
  }
}

function hasSnapshotRows(rows: ReadRows): boolean {
  return [...rows.keys()].some((text) => {
    const kind = nameOf(Buffer.from(text, "latin1"))?.kind;
    return kind === "complete" || kind === "chunk";
  });
}

function newestSnapshot(rows: ReadRows): Complete | null {
  let newest: Complete | null = null;
  for (const text of rows.keys()) {
    const key = Buffer.from(text, "latin1");
    const name = nameOf(key);
    if (name?.kind !== "complete" || name.index < (newest?.base.position.index ?? 0)) continue;
    newest = soundOrNull(() => checkedSnapshot(rows, key, name.index)) ?? newest;
  }
  return newest;
}

/** Of one generation, the newest when nobody says which; in the order of their first indexes. */
function blocksIn(rows: ReadRows, generation: number | null): Block[] {
  const found: { readonly generation: number; readonly first: number; readonly block: Block }[] = [];
  for (const [text, { value }] of rows) {
    const key = Buffer.from(text, "latin1");
    const name = nameOf(key);
    if (name?.kind !== "entries" || value === null) continue;
    const block = soundOrNull(() => decodeBlock(key, value));
    if (block !== null) found.push({ generation: name.generation, first: name.first, block });
  }
  const wanted = generation ?? found.reduce((newest, each) => Math.max(newest, each.generation), 0);
  const chosen = found.filter((each) => each.generation === wanted);
  return chosen.sort((a, b) => a.first - b.first).map(({ block }) => block);
}

/** Each is chained to the one before it, so none is of another log. */
function entriesBehind(base: LogBase, blocks: readonly Block[]): Entry[] {
  const entries: Entry[] = [];
  let { chain } = base;
  let { index, term } = base.position;
  for (const block of blocks) {
    for (const entry of block.entries) {
      if (entry.index <= index) continue;
      const follows = entry.index === index + 1 && entry.term >= term;
      const next = entryCodec.chainFor(chain, entry.index, entry.term, entry.kind, entry.payload);
      if (!follows || next !== entry.chain) return entries;
      entries.push(entry);
      ({ chain, index, term } = entry);
    }
  }
  return entries;
}
