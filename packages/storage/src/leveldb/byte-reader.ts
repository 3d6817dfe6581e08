import { FormatError } from "../storage-error.js";

/** Reads LevelDB's building bricks from front to back. Numbers are little-endian there; above 2^53 they are refused. */
export class ByteReader {
  readonly #bytes: Buffer;
  #at: number;
  readonly #end: number;

  constructor(bytes: Uint8Array, start = 0, end: number = bytes.length) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#at = start;
    this.#end = end;
  }

  get at(): number {
    return this.#at;
  }

  get done(): boolean {
    return this.#at >= this.#end;
  }

  varint(): number {
    let value = 0;
    let scale = 1;
    for (let count = 0; count < 10; count++) {
      if (this.#at >= this.#end) throw new FormatError("a number is cut short");
      const byte = this.#bytes[this.#at++] as number;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        // No writer leaves it; a flipped bit does, and the number is the same.
        if (byte === 0 && count > 0) throw new FormatError("a number is longer than it need be");
        if (!Number.isSafeInteger(value)) break;
        return value;
      }
      scale *= 128;
    }
    throw new FormatError("a number is too large");
  }

  take(length: number): Buffer {
    if (length > this.#end - this.#at) throw new FormatError("a field runs over the end");
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  /** A byte string after its length. */
  text(): Buffer {
    return this.take(this.varint());
  }

  byte(): number {
    return this.take(1)[0] as number;
  }

  uint32(): number {
    return this.take(4).readUInt32LE();
  }

  uint64(): number {
    const low = this.uint32();
    const value = this.uint32() * 2 ** 32 + low;
    if (!Number.isSafeInteger(value)) throw new FormatError("a number is too large");
    return value;
  }
}
