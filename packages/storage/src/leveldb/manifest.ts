import { FormatError } from "../storage-error.js";
import { ByteReader } from "./byte-reader.js";

/** What a MANIFEST says at its end: which tables make up the database, and from which log on its batches are in no table yet. */
export interface ManifestState {
  /** Table numbers with their sizes in bytes. */
  readonly tables: ReadonlyMap<number, number>;
  readonly logNumber: number;
}

const tags = {
  comparator: 1,
  logNumber: 2,
  nextFile: 3,
  lastSequence: 4,
  compactPointer: 5,
  deletedFile: 6,
  newFile: 7,
  previousLog: 9,
} as const;

const bytewise = "leveldb.BytewiseComparator";

interface Draft {
  /** By table number; a table is in one level at a time, and its move is a deletion and an addition in one edit. */
  readonly tables: Map<number, number>;
  logNumber: number | null;
  nextFile: number | null;
  lastSequence: number | null;
}

/** Applies the edits in order. Throws FormatError. */
export function readManifest(records: Iterable<Uint8Array>): ManifestState {
  const draft: Draft = { tables: new Map(), logNumber: null, nextFile: null, lastSequence: null };
  for (const record of records) applyEdit(draft, record);
  const { tables, logNumber, nextFile, lastSequence } = draft;
  if (logNumber === null || nextFile === null || lastSequence === null) {
    throw new FormatError("it ends before it names a log, the next file and the last sequence number");
  }
  return { tables, logNumber };
}

function applyEdit(draft: Draft, record: Uint8Array): void {
  const reader = new ByteReader(record);
  const deleted: number[] = [];
  const added: [number, number][] = [];
  while (!reader.done) {
    const tag = reader.varint();
    switch (tag) {
      case tags.comparator:
        if (reader.text().toString("latin1") !== bytewise)
          throw new FormatError("it was written with another order of keys");
        break;
      case tags.logNumber:
        draft.logNumber = reader.varint();
        break;
      case tags.nextFile:
        draft.nextFile = reader.varint();
        break;
      case tags.lastSequence:
        draft.lastSequence = reader.varint();
        break;
      case tags.compactPointer:
        reader.varint();
        reader.text();
        break;
      case tags.deletedFile:
        reader.varint();
        deleted.push(reader.varint());
        break;
      case tags.newFile: {
        reader.varint();
        added.push([reader.varint(), reader.varint()]);
        reader.text();
        reader.text();
        break;
      }
      case tags.previousLog:
        if (reader.varint() !== 0)
          throw new FormatError("it names a previous log, as only older releases of LevelDB did");
        break;
      default:
        throw new FormatError(`an edit with the unknown tag ${tag}`);
    }
  }
  for (const number of deleted) draft.tables.delete(number);
  for (const [number, size] of added) draft.tables.set(number, size);
}
