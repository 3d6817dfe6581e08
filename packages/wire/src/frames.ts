/**
 * A frame of messages: one msgpack array, in one direction of one kind of connection. Both ways of a codec stand apart: a client in a
 * browser loads the half of each that it uses.
 */
import { listUpTo } from "./fields.js";
import { limits } from "./limits.js";
import { pack, unpack } from "./msgpack.js";
import { WireError } from "./wire-error.js";

type ToFields<Message> = (message: Message) => unknown[];

export function encodeFrame<Message>(
  messages: readonly Message[],
  bytesMax: number,
  toFields: ToFields<Message>,
): Uint8Array {
  listUpTo(messages, limits.messagesPerFrameMax, "messages");
  const bytes = packed(messages, toFields);
  if (bytes.length > bytesMax) throw tooLarge(bytesMax);
  return bytes;
}

/** Halves what is too large for one frame, until each part fits. Throws when a single message doesn't. */
export function encodeFrames<Message>(
  messages: readonly Message[],
  bytesMax: number,
  toFields: ToFields<Message>,
): Uint8Array[] {
  const frames: Uint8Array[] = [];
  // What is still to be encoded, the next part last.
  const parts: (readonly Message[])[] = [messages];
  for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
    if (part.length <= limits.messagesPerFrameMax) {
      const bytes = packed(part, toFields);
      if (bytes.length <= bytesMax) {
        frames.push(bytes);
        continue;
      }
      if (part.length <= 1) throw tooLarge(bytesMax);
    }
    const middle = part.length >>> 1;
    parts.push(part.slice(middle), part.slice(0, middle));
  }
  return frames;
}

export function decodeFrame<Message>(
  bytes: Uint8Array,
  bytesMax: number,
  itemsMax: number,
  fromFields: (value: unknown) => Message,
): Message[] {
  if (bytes.length > bytesMax) throw tooLarge(bytesMax);
  const values = listUpTo(unpack(bytes, 0, itemsMax), limits.messagesPerFrameMax, "messages");
  const messages = new Array<Message>(values.length);
  for (let at = 0; at < values.length; at++) messages[at] = fromFields(values[at]);
  return messages;
}

function packed<Message>(messages: readonly Message[], toFields: ToFields<Message>): Uint8Array {
  const values = new Array<unknown>(messages.length);
  for (let at = 0; at < messages.length; at++) values[at] = toFields(messages[at] as Message);
  return pack(values);
}

function tooLarge(bytesMax: number): WireError {
  return new WireError("too_large", null, `is longer than ${bytesMax} bytes`);
}
