/** A frame of messages: one msgpack array, in one direction of one kind of connection. */
import { listUpTo } from "./fields.js";
import { limits } from "./limits.js";
import { pack, unpack } from "./msgpack.js";
import { WireError } from "./wire-error.js";

export interface FrameCodec<Message> {
  readonly bytesMax: number;
  readonly itemsMax: number;
  readonly toFields: (message: Message) => unknown[];
  readonly fromFields: (value: unknown) => Message;
}

export function encodeFrame<Message>(messages: readonly Message[], codec: FrameCodec<Message>): Uint8Array {
  listUpTo(messages, limits.messagesPerFrameMax, "messages");
  const bytes = packed(messages, codec);
  if (bytes.length > codec.bytesMax) throw tooLarge(codec.bytesMax);
  return bytes;
}

/** Halves what is too large for one frame, until each part fits. Throws when a single message doesn't. */
export function encodeFrames<Message>(messages: readonly Message[], codec: FrameCodec<Message>): Uint8Array[] {
  const frames: Uint8Array[] = [];
  // What is still to be encoded, the next part last.
  const parts: (readonly Message[])[] = [messages];
  for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
    if (part.length <= limits.messagesPerFrameMax) {
      const bytes = packed(part, codec);
      if (bytes.length <= codec.bytesMax) {
        frames.push(bytes);
        continue;
      }
      if (part.length <= 1) throw tooLarge(codec.bytesMax);
    }
    const middle = part.length >>> 1;
    parts.push(part.slice(middle), part.slice(0, middle));
  }
  return frames;
}

export function decodeFrame<Message>(bytes: Uint8Array, codec: FrameCodec<Message>): Message[] {
  if (bytes.length > codec.bytesMax) throw tooLarge(codec.bytesMax);
  const values = listUpTo(unpack(bytes, 0, codec.itemsMax), limits.messagesPerFrameMax, "messages");
  const messages = new Array<Message>(values.length);
  for (let at = 0; at < values.length; at++) messages[at] = codec.fromFields(values[at]);
  return messages;
}

function packed<Message>(messages: readonly Message[], codec: FrameCodec<Message>): Uint8Array {
  const values = new Array<unknown>(messages.length);
  for (let at = 0; at < messages.length; at++) values[at] = codec.toFields(messages[at] as Message);
  return pack(values);
}

function tooLarge(bytesMax: number): WireError {
  return new WireError("too_large", null, `is longer than ${bytesMax} bytes`);
}
