/**
 * LevelDB's table files (.ldb): data blocks, a filter block, the index of filters, the index of data blocks, a footer; each block with
 * a type byte and a masked crc32c behind it. LevelDB doesn't look at these checksums unless it is told to, and classic-level has no way
 * to tell it.
 */
import { FormatError } from "../storage-error.js";
import { ByteReader } from "./byte-reader.js";
import { maskedCrc32c } from "./checksum.js";

const footerBytes = 48;
const trailerBytes = 5;
const handlesBytesMax = 40;
const magic = Buffer.from("57fb808b247547db", "hex");
/** Behind each user key: sequence number and type, 8 bytes. */
const internalBytes = 8;
const uncompressed = 0;

/** One version of a row. `value` is null for a deletion; both buffers are parts of the file's bytes or of a key buffer of its own. */
type VisitRow = (key: Buffer, sequence: number, value: Buffer | null) => void;

interface Handle {
  readonly offset: number;
  readonly size: number;
}

/**
 * Checks every byte of a table and shows each row to `visit`. Throws FormatError; what is wrong with a single data block goes to `skip`
 * instead, when there is one, and the block is passed over.
 */
export function readTable(bytes: Buffer, visit: VisitRow, skip: (problem: FormatError) => void = rethrow): void {
  if (bytes.length < footerBytes) throw new FormatError("the table is too short to be one");
  const footerAt = bytes.length - footerBytes;
  if (!bytes.subarray(bytes.length - magic.length).equals(magic))
    throw new FormatError("the table's footer is not one");
  const footer = new ByteReader(bytes, footerAt, footerAt + handlesBytesMax);
  const metaIndex = readHandle(footer);
  const index = readHandle(footer);
  while (!footer.done)
    if (footer.byte() !== 0) throw new FormatError("the table's footer has filler bytes that are not zero");

  // The blocks stand one behind the other without a gap: so each byte of the file is under some checksum.
  let expected = 0;
  const blockAt = (handle: Handle, what: string): Buffer => {
    if (handle.offset !== expected) throw new FormatError(`the ${what} at ${handle.offset} should be at ${expected}`);
    expected += handle.size + trailerBytes;
    return readBlock(bytes, handle, footerAt, what);
  };
  const dataHandles: Handle[] = [];
  eachRow(readBlock(bytes, index, footerAt, "index block"), (_key, value) =>
    dataHandles.push(readHandle(new ByteReader(value))),
  );
  for (const handle of dataHandles) {
    try {
      eachRow(blockAt(handle, "data block"), (key, value) => visitInternal(key, value, visit));
    } catch (error) {
      if (!(error instanceof FormatError)) throw error;
      skip(error);
    }
  }
  const filters: Handle[] = [];
  eachRow(readBlock(bytes, metaIndex, footerAt, "filter index"), (_key, value) =>
    filters.push(readHandle(new ByteReader(value))),
  );
  for (const handle of filters) blockAt(handle, "filter block");
  blockAt(metaIndex, "filter index");
  blockAt(index, "index block");
  if (expected !== footerAt) throw new FormatError("the table's blocks end before its footer");
}

function rethrow(problem: FormatError): never {
  throw problem;
}

function readHandle(reader: ByteReader): Handle {
  return { offset: reader.varint(), size: reader.varint() };
}

function readBlock(bytes: Buffer, handle: Handle, endsBefore: number, what: string): Buffer {
  const end = handle.offset + handle.size;
  if (end + trailerBytes > endsBefore) throw new FormatError(`the ${what} at ${handle.offset} runs over the end`);
  if (maskedCrc32c(bytes.subarray(handle.offset, end + 1)) !== bytes.readUInt32LE(end + 1)) {
    throw new FormatError(`wrong checksum of the ${what} at ${handle.offset}`);
  }
  if (bytes[end] !== uncompressed)
    throw new FormatError(`the ${what} at ${handle.offset} is compressed, as this program writes none`);
  return bytes.subarray(handle.offset, end);
}

/** A block's rows: each key shares its first bytes with the one before it. The restart points at the end are for searching only. */
function eachRow(block: Buffer, visit: (key: Buffer, value: Buffer) => void): void {
  if (block.length < 4) throw new FormatError("a block without restart points");
  const rowsEnd = block.length - 4 - 4 * block.readUInt32LE(block.length - 4);
  if (rowsEnd < 0) throw new FormatError("a block with too many restart points");
  const reader = new ByteReader(block, 0, rowsEnd);
  let key = Buffer.alloc(0);
  while (!reader.done) {
    const shared = reader.varint();
    const own = reader.varint();
    const size = reader.varint();
    if (shared > key.length) throw new FormatError("a key that shares more than there is");
    key = Buffer.concat([key.subarray(0, shared), reader.take(own)]);
    visit(key, reader.take(size));
  }
}

function visitInternal(key: Buffer, value: Buffer, visit: VisitRow): void {
  const userBytes = key.length - internalBytes;
  if (userBytes < 0) throw new FormatError("a key without its sequence number");
  const type = key[userBytes] as number;
  if (type > 1) throw new FormatError(`a row of unknown type ${type}`);
  const sequence = key.readUIntLE(userBytes + 1, 6) + (key[userBytes + 7] as number) * 2 ** 48;
  visit(key.subarray(0, userBytes), sequence, type === 1 ? value : null);
}
