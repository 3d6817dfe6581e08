/**
 * LevelDB's log format, which its .log and its MANIFEST files share: blocks of 32 kB; in them pieces with a header of 7 bytes (masked
 * crc32c of type and payload, length, type); a record is one full piece, or first, middle and last pieces; a block's last bytes are
 * zeros where no header fits.
 *
 * LevelDB's own reader drops what has a wrong checksum and goes on behind it. This one stops there and says what it saw.
 */
import { maskedCrc32c } from "./checksum.js";

const blockBytes = 32_768;
const headerBytes = 7;
const full = 1;
const first = 2;
const middle = 3;
const last = 4;

export interface LogRecord {
  readonly offset: number;
  readonly payload: Uint8Array;
}

/** What lies behind the last whole record. */
export interface LogTail {
  /** "cut": the file ends inside a record, as when its writer was killed. "damaged": bytes that no killed writer leaves. */
  readonly kind: "cut" | "damaged";
  /** Where it was noticed. */
  readonly at: number;
  readonly found: string;
  /** The record's payload as far as it is there. */
  readonly head: Uint8Array;
}

interface LogScan {
  readonly records: readonly LogRecord[];
  /** Where the last whole record ends. */
  readonly end: number;
  readonly tail: LogTail | null;
}

type Piece =
  | { readonly kind: "whole"; readonly type: number; readonly payload: Uint8Array; readonly next: number }
  | { readonly kind: "cut" | "damaged"; readonly found: string; readonly payload: Uint8Array };

const nothing = new Uint8Array(0);

export function scanLog(bytes: Uint8Array): LogScan {
  const records: LogRecord[] = [];
  let pieces: Uint8Array[] = [];
  let offset = 0;
  let at = 0;
  let end = 0;
  const stop = (kind: "cut" | "damaged", found: string, rest: Uint8Array): LogScan => ({
    records,
    end,
    tail: { kind, at, found, head: joined([...pieces, rest]) },
  });
  for (;;) {
    const left = blockBytes - (at % blockBytes);
    if (left < headerBytes) {
      if (bytes.subarray(at, at + left).some((byte) => byte !== 0))
        return stop("damaged", `filler bytes at ${at} that are not zero`, nothing);
      at += left;
      continue;
    }
    if (at >= bytes.length) break;
    const piece = readPiece(bytes, at, left, pieces.length > 0);
    if (piece.kind !== "whole") return stop(piece.kind, piece.found, piece.payload);
    if (pieces.length === 0) offset = at;
    pieces.push(piece.payload);
    at = piece.next;
    if (piece.type === full || piece.type === last) {
      records.push({ offset, payload: joined(pieces) });
      pieces = [];
      end = at;
    }
  }
  return pieces.length === 0
    ? { records, end, tail: null }
    : stop("cut", `the record at ${offset} has no end`, nothing);
}

function readPiece(bytes: Uint8Array, at: number, left: number, inRecord: boolean): Piece {
  if (bytes.length - at < headerBytes)
    return { kind: "cut", found: `the header at ${at} is cut short`, payload: nothing };
  const length = (bytes[at + 4] as number) | ((bytes[at + 5] as number) << 8);
  const type = bytes[at + 6] as number;
  const next = at + headerBytes + length;
  const payload = bytes.subarray(at + headerBytes, next);
  const bad = (found: string): Piece => ({ kind: "damaged", found, payload: nothing });
  if (type < full || type > last) return bad(`a record of unknown type ${type} at ${at}`);
  if (headerBytes + length > left) return bad(`the record at ${at} runs over its block`);
  if ((type === first || type === middle) && headerBytes + length !== left)
    return bad(`the piece at ${at} doesn't fill its block`);
  if (inRecord !== (type === middle || type === last)) return bad(`a piece out of place at ${at}`);
  if (next > bytes.length) return { kind: "cut", found: `the record at ${at} is cut short`, payload };
  if (!hasItsChecksum(bytes, at, next)) return bad(`wrong checksum of the record at ${at}`);
  return { kind: "whole", type, payload, next };
}

function hasItsChecksum(bytes: Uint8Array, at: number, next: number): boolean {
  const stored =
    ((bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24)) >>>
    0;
  return maskedCrc32c(bytes.subarray(at + 6, next)) === stored;
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const [only] = pieces;
  if (pieces.length === 1 && only !== undefined) return only;
  return Buffer.concat(pieces);
}

/**
 * Whether a sound record begins anywhere behind `from`. If one does, then what is damaged before it is not the end of the log, and
 * no torn write: only one write is ever under way. A damaged header hides where the next record begins, so every offset is tried;
 * `isPlausible` looks at the payload before its checksum is computed.
 */
export function recordBeginsBehind(
  bytes: Uint8Array,
  from: number,
  isPlausible: (payload: Uint8Array) => boolean,
): boolean {
  for (let at = from; at + headerBytes <= bytes.length; at++) {
    const type = bytes[at + 6];
    if (type !== full && type !== first) continue;
    const size = headerBytes + ((bytes[at + 4] as number) | ((bytes[at + 5] as number) << 8));
    const left = blockBytes - (at % blockBytes);
    if (size > left || (type === first && size !== left) || at + size > bytes.length) continue;
    if (isPlausible(bytes.subarray(at + headerBytes, at + size)) && hasItsChecksum(bytes, at, at + size)) return true;
  }
  return false;
}
