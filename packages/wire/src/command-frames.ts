/**
 * Frames of commands alone, which is nearly all that a busy client sends, read by hand: a fifth of what the general decoder takes. Whatever
 * else a frame may be, that one says.
 */
import { limits } from "./limits.js";
import { copyOf } from "./msgpack.js";

/** Of messages: an array of two, the kind and the payload. */
const messageHead = 0x92;
/** As client-codec.ts numbers it. */
export const commandKind = 2;

/** The payloads of a frame of commands, each in memory of its own; null when it is another frame, or none at all. */
export function payloadsIn(bytes: Uint8Array): Uint8Array[] | null {
  const head = bytes[0] as number;
  const isShort = head >= 0x90 && head <= 0x9f;
  if (!isShort && head !== 0xdc) return null;
  const count = isShort ? head - 0x90 : uint16At(bytes, 1);
  if (!(count > 0 && count <= limits.messagesPerFrameMax)) return null;
  const payloads = new Array<Uint8Array>(count);
  let at = isShort ? 1 : 3;
  for (let number = 0; number < count; number += 1) {
    if (bytes[at] !== messageHead || bytes[at + 1] !== commandKind) return null;
    const width = bytes[at + 2];
    if (width !== 0xc4 && width !== 0xc5) return null;
    const length = width === 0xc4 ? (bytes[at + 3] as number) : uint16At(bytes, at + 3);
    const from = at + (width === 0xc4 ? 4 : 5);
    // Beyond the end a length is no number, and neither is this then.
    if (!(from + length <= bytes.length)) return null;
    at = from + length;
    payloads[number] = copyOf(bytes.subarray(from, at));
  }
  return at === bytes.length ? payloads : null;
}

/** No number where the bytes have ended. */
function uint16At(bytes: Uint8Array, at: number): number {
  return (bytes[at] as number) * 256 + (bytes[at + 1] as number);
}
