/**
 * The bytes of a backup file (docs/operations.md, "Backup"). Pure: they come from a file or from the network, piece by piece, and each
 * record is checked before it is handed on.
 *
 *     "HFBACKUP"  format(1)
 *     record*     kind(1)  length(4)  content(length)  crc32c(4) over kind, length and content
 *
 * The first record is the header (JSON), then come the chunks of the state machine's snapshot in order, then the end: the number of
 * chunks (4) and the sha256 of all bytes before the end record. Numbers are big-endian.
 */
import type { LogBase } from "@holdfast/raft";
import { crc32c, decodeBase, encodeBase, WireError } from "@holdfast/wire";
import { createHash } from "node:crypto";

const backupFormatVersion = 1;

const magic = Buffer.from("HFBACKUP", "latin1");
const prefixBytes = magic.length + 1;
const headBytes = 5;
const checksumBytes = 4;
const endBytes = 4 + 32;
/** The longest record: a header with all the removed ids there may be, or a chunk. A length beyond it is damage, and nothing is allocated for it. */
const contentBytesMax = 4 * 1_048_576;

const kinds = { header: 1, chunk: 2, end: 3 } as const;

export interface BackupHeader {
  /** Of the cluster that it was taken of. */
  readonly clusterId: string;
  /** Which node took it. */
  readonly nodeId: string;
  /** The state is that after this entry; the configuration is that cluster's. */
  readonly base: LogBase;
  /**
   * Unix milliseconds by that node's clock, after its last entry was applied; of a stopped node's directory: of the last write in it. The
   * clock of a restore must not lie before it (packages/server/src/restore-index.ts).
   */
  readonly takenAtMs: number;
  /** For how many milliseconds a restore of it grants nothing: as its snapshot says too (packages/lock/src/restoring.ts). */
  readonly closingMs: number;
}

export type BackupRecord =
  | { readonly kind: "header"; readonly header: BackupHeader }
  | { readonly kind: "chunk"; readonly bytes: Uint8Array }
  | { readonly kind: "end"; readonly chunks: number };

export type BackupProblemCode = "not_a_backup" | "newer_format" | "damaged" | "cut_short";

/** Why bytes are no whole backup. */
export class BackupError extends Error {
  readonly code: BackupProblemCode;
  /** The byte, counted from 0, where the record with the problem begins. */
  readonly at: number;

  constructor(code: BackupProblemCode, at: number, found: string) {
    super(`${found} (at byte ${at})`);
    this.name = "BackupError";
    this.code = code;
    this.at = at;
  }
}

/** Makes the records in their order: one header, chunks, one end. */
export class BackupEncoder {
  readonly #hash = createHash("sha256");
  #chunks = 0;

  header(header: BackupHeader): Buffer {
    const { clusterId, nodeId, takenAtMs, closingMs, base } = header;
    const fields = {
      clusterId,
      nodeId,
      takenAtMs,
      closingMs,
      base: Buffer.from(encodeBase(base)).toString("base64"),
    };
    const prefix = Buffer.concat([magic, Buffer.from([backupFormatVersion])]);
    return this.#hashed(Buffer.concat([prefix, record(kinds.header, Buffer.from(JSON.stringify(fields)))]));
  }

  chunk(bytes: Uint8Array): Buffer {
    this.#chunks += 1;
    return this.#hashed(record(kinds.chunk, bytes));
  }

  end(): Buffer {
    const count = Buffer.allocUnsafe(4);
    count.writeUInt32BE(this.#chunks, 0);
    return record(kinds.end, Buffer.concat([count, this.#hash.digest()]));
  }

  #hashed(bytes: Buffer): Buffer {
    this.#hash.update(bytes);
    return bytes;
  }
}

function record(kind: number, content: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(headBytes + content.length + checksumBytes);
  bytes.writeUInt8(kind, 0);
  bytes.writeUInt32BE(content.length, 1);
  bytes.set(content, headBytes);
  const end = headBytes + content.length;
  bytes.writeUInt32BE(crc32c(bytes.subarray(0, end)), end);
  return bytes;
}

/** Takes the bytes in pieces of any size. After a BackupError it is of no more use. */
export class BackupDecoder {
  readonly #hash = createHash("sha256");
  #pending: Buffer = Buffer.alloc(0);
  /** Where `#pending` begins. */
  #at = 0;
  #chunks = 0;
  #stage: "prefix" | "header" | "chunks" | "ended" = "prefix";

  /** Bytes that were read and checked. */
  get checkedBytes(): number {
    return this.#at;
  }

  /** The records that are whole now. Throws BackupError. */
  push(bytes: Uint8Array): BackupRecord[] {
    this.#pending = this.#pending.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#pending, bytes]);
    const records: BackupRecord[] = [];
    if (this.#stage === "prefix" && !this.#takePrefix()) return records;
    for (let next = this.#takeRecord(); next !== null; next = this.#takeRecord()) records.push(next);
    return records;
  }

  /** There are no more bytes. Throws BackupError when the end record hasn't come. */
  finish(): void {
    if (this.#stage === "prefix") {
      // What is there has been compared already, as far as it goes.
      throw new BackupError("cut_short", 0, "it is cut short: its first bytes are missing");
    }
    if (this.#stage !== "ended" || this.#pending.length > 0) {
      throw new BackupError("cut_short", this.#at, "it is cut short: its end is missing");
    }
  }

  #takePrefix(): boolean {
    const start = this.#pending.subarray(0, magic.length);
    if (!start.equals(magic.subarray(0, start.length)))
      throw new BackupError("not_a_backup", 0, "it is no Holdfast backup: it begins with other bytes");
    if (this.#pending.length < prefixBytes) return false;
    const version = this.#pending.readUInt8(magic.length);
    if (version > backupFormatVersion) {
      const known = `this release knows ${backupFormatVersion} at most`;
      throw new BackupError("newer_format", magic.length, `it has format ${version}, and ${known}`);
    }
    if (version === 0) throw new BackupError("damaged", magic.length, "it has no format version");
    this.#stage = "header";
    this.#take(prefixBytes);
    return true;
  }

  #takeRecord(): BackupRecord | null {
    const pending = this.#pending;
    if (this.#stage === "ended" && pending.length > 0) this.#fail("there is more behind its end");
    if (pending.length < headBytes) return null;
    const kind = pending.readUInt8(0);
    const length = pending.readUInt32BE(1);
    if (length > contentBytesMax) this.#fail("a record is longer than any can be");
    const end = headBytes + length;
    if (pending.length < end + checksumBytes) return null;
    if (crc32c(pending.subarray(0, end)) !== pending.readUInt32BE(end)) this.#fail("a record has a wrong checksum");
    const read = this.#read(kind, pending.subarray(headBytes, end));
    this.#take(end + checksumBytes);
    return read;
  }

  #read(kind: number, content: Buffer): BackupRecord {
    if ((this.#stage === "header") !== (kind === kinds.header)) this.#fail("its header is not where it should be");
    switch (kind) {
      case kinds.header:
        this.#stage = "chunks";
        return { kind: "header", header: this.#headerFrom(content) };
      case kinds.chunk:
        this.#chunks += 1;
        return { kind: "chunk", bytes: content };
      case kinds.end:
        this.#checkEnd(content);
        this.#stage = "ended";
        return { kind: "end", chunks: this.#chunks };
      default:
        return this.#fail("a record is of an unknown kind");
    }
  }

  #checkEnd(content: Buffer): void {
    if (content.length !== endBytes) this.#fail("its end has not its form");
    if (content.readUInt32BE(0) !== this.#chunks) this.#fail(`it should have ${content.readUInt32BE(0)} chunks`);
    if (!this.#hash.digest().equals(content.subarray(4))) this.#fail("its bytes have another sha256 than its end says");
  }

  #headerFrom(content: Buffer): BackupHeader {
    let fields: unknown;
    try {
      fields = JSON.parse(content.toString("utf8"));
    } catch {
      return this.#fail("its header is no JSON");
    }
    const { clusterId, nodeId, takenAtMs, closingMs, base } = (fields ?? {}) as Record<string, unknown>;
    const isText = (value: unknown): value is string => typeof value === "string" && value.length > 0;
    if (!isText(clusterId) || !isText(nodeId) || !isText(base)) return this.#fail("its header lacks a field");
    const isWhole = (value: unknown): value is number => typeof value === "number" && Number.isSafeInteger(value);
    if (!isWhole(takenAtMs) || !isWhole(closingMs)) return this.#fail("its header lacks a number");
    try {
      return { clusterId, nodeId, takenAtMs, closingMs, base: decodeBase(Buffer.from(base, "base64")) };
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      return this.#fail(`its header has no position in the log: ${error.message}`);
    }
  }

  #take(length: number): void {
    // The end record itself is not part of what it vouches for.
    if (this.#stage !== "ended") this.#hash.update(this.#pending.subarray(0, length));
    this.#pending = this.#pending.subarray(length);
    this.#at += length;
  }

  #fail(found: string): never {
    throw new BackupError("damaged", this.#at, `it is damaged: ${found}`);
  }
}
