/**
 * Reads a msgpack value without building anything, and refuses what msgpackr would accept but we don't: extensions
 * (they build RegExps, Sets, records), maps, deep or wide nesting, lengths past the end, bytes after the end, text that
 * is no UTF-8. After it, decoding can't fail, and allocates in proportion to the bytes.
 */
import { limits } from "./limits.js";
import { utf8Problem } from "./utf8.js";
import { WireError } from "./wire-error.js";

/** What follows the first byte of a value, and its length if it has one. */
const state = {
  /** The bytes of a number, or bytes that may be anything. */
  skip: 0,
  text: 1,
  /** Values. */
  array: 2,
  map: 3,
  extension: 4,
} as const;

const stateOf = new Uint8Array(256);
/** How many bytes (in an array: values) follow, where the first byte says so. */
const countOf = new Uint8Array(256);
/** Else: how many bytes the count has. */
const countWidthOf = new Uint8Array(256);

function fill(
  from: number,
  to: number,
  follows: number,
  count: (step: number) => number,
  width: (step: number) => number,
): void {
  for (let byte = from; byte <= to; byte++) {
    stateOf[byte] = follows;
    countOf[byte] = count(byte - from);
    countWidthOf[byte] = width(byte - from);
  }
}

const none = (): number => 0;
const step = (from0: number): number => from0;
const doubling = (from0: number): number => 2 ** from0;

fill(0x00, 0x7f, state.skip, none, none);
fill(0x80, 0x8f, state.map, none, none);
fill(0x90, 0x9f, state.array, step, none);
fill(0xa0, 0xbf, state.text, step, none);
fill(0xc0, 0xc0, state.skip, none, none);
// c1 is reserved; msgpackr uses it for bundled strings.
fill(0xc1, 0xc1, state.extension, none, none);
fill(0xc2, 0xc3, state.skip, none, none);
fill(0xc4, 0xc6, state.skip, none, doubling);
fill(0xc7, 0xc9, state.extension, none, none);
fill(0xca, 0xcb, state.skip, (from0) => 4 * 2 ** from0, none);
fill(0xcc, 0xcf, state.skip, doubling, none);
fill(0xd0, 0xd3, state.skip, doubling, none);
fill(0xd4, 0xd8, state.extension, none, none);
fill(0xd9, 0xdb, state.text, none, doubling);
fill(0xdc, 0xdd, state.array, none, (from0) => 2 * 2 ** from0);
fill(0xde, 0xdf, state.map, none, none);
fill(0xe0, 0xff, state.skip, none, none);

function truncated(): WireError {
  return new WireError("truncated", null, "ends in the middle of a value");
}

// How many values are still to come in each open array; kept between calls, since a scan neither waits nor nests.
const missing = new Int32Array(limits.frameDepthMax + 1);

/**
 * Throws a WireError unless the bytes from `start` to `end` are exactly one msgpack value that the wire allows, with at
 * most `itemsMax` values in all.
 */
export function prescan(bytes: Uint8Array, start: number, end: number, itemsMax: number): void {
  let at = start;
  let depth = 0;
  let items = 0;
  missing[0] = 1;
  while (missing[depth] !== 0) {
    if (at >= end) throw truncated();
    if (++items > itemsMax) throw new WireError("too_many_items", null, `has more than ${itemsMax} values`);
    missing[depth] = (missing[depth] as number) - 1;
    const byte = bytes[at++] as number;
    const width = countWidthOf[byte] as number;
    let count = countOf[byte] as number;
    if (width > 0) {
      if (width > end - at) throw truncated();
      for (const countEnd = at + width; at < countEnd; at++) count = count * 256 + (bytes[at] as number);
    }
    // A value has at least one byte: a count of values that can't be true is refused here too, before anything is made
    // of it.
    if (count > end - at) throw truncated();
    switch (stateOf[byte]) {
      case state.skip:
        at += count;
        break;
      case state.text: {
        const problem = utf8Problem(bytes, at, at + count);
        if (problem !== null) throw new WireError("bad_text", null, problem);
        at += count;
        break;
      }
      case state.array:
        if (depth === limits.frameDepthMax) throw new WireError("too_deep", null, "nests arrays too deep");
        missing[++depth] = count;
        break;
      case state.map:
        throw new WireError("map", null, "has a map");
      default:
        throw new WireError("extension", null, "has a msgpack extension");
    }
    while (depth > 0 && missing[depth] === 0) depth--;
  }
  if (at < end) throw new WireError("trailing_bytes", null, "has bytes after its end");
}
