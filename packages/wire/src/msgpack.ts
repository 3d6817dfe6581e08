/** The one msgpack codec of the project. Nothing else calls msgpackr. */
import { Packr, RESERVE_START_SPACE } from "msgpackr";
import { assert } from "./assert.js";
import { prescan } from "./prescan.js";
import { WireError } from "./wire-error.js";

/** A view in our terms of what msgpackr declares with Node's types. */
interface Msgpack {
  pack(value: unknown, options?: number): Uint8Array;
  unpack(bytes: Uint8Array, range: { start: number; end: number }): unknown;
}

// Records off: other msgpack readers fail on them, and stored ones can't be read without their structures. Copies: a
// decoded payload must not change with, or keep alive, the socket's buffer. 64-bit integers of other languages' clients
// come as numbers; those beyond the safe integers stay beyond them and are refused with their field.
const msgpack: Msgpack = new Packr({
  useRecords: false,
  variableMapSize: true,
  copyBuffers: true,
  int64AsType: "number",
});

/** The bytes are a part of a larger buffer, which they keep alive: what stays for long must be copied (`copyOf`). */
export function pack(value: readonly unknown[]): Uint8Array {
  return msgpack.pack(value);
}

/** As `pack`, with `headerBytes` (up to 255) in front whose content the caller must write. */
export function packBehind(headerBytes: number, value: readonly unknown[]): Uint8Array {
  assert(headerBytes > 0 && headerBytes < 256, "a frame's header is short");
  return msgpack.pack(value, RESERVE_START_SPACE | headerBytes);
}

/** Its own memory, no more than its length. */
export function copyOf(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes);
}

// Most frames are short, and msgpackr makes a DataView for each array that it sees first: half of the time of a short
// frame. It keeps that of this one, into which they are copied. Nothing that is decoded points back into it.
const scratch = new Uint8Array(4096);

/**
 * The array in `bytes` from `start` to the end; everything in it is a copy. Throws a WireError on anything but one
 * array within the limits.
 */
export function unpack(bytes: Uint8Array, start: number, itemsMax: number): unknown[] {
  const end = bytes.length;
  let source: Uint8Array = scratch;
  if (end <= scratch.length) {
    scratch.set(bytes);
  } else {
    // A view of its own: msgpackr decodes by its class (a Buffer gives Buffers), and hangs its DataView on it.
    source = new Uint8Array(bytes.buffer, bytes.byteOffset, end);
  }
  prescan(source, start, end, itemsMax);
  let value: unknown;
  try {
    value = msgpack.unpack(source, { start, end });
  } catch {
    // msgpackr's own errors quote what it has decoded, so they go no further.
    throw new WireError("undecodable", null, "is no msgpack");
  }
  if (!Array.isArray(value)) throw new WireError("bad_shape", null, "is no array");
  return value as unknown[];
}
