/**
 * Frames of many acquires at a time, for a load that nothing may hold up: they are encoded once, by the wire's own encoder, and each use writes
 * its numbers into the bytes. To encode each acquire anew costs the load more than the node that refuses it.
 */
import { encodeClientFrame, encodeCommand } from "@holdfast/wire";

/** Stand where the numbers will, in the four bytes that a msgpack number of this size has. */
const requestMark = 0x7e57_0001;
const settledMark = 0x7e57_0002;
/** Eight hex digits, of the request: each acquire has a lock of its own. */
const nameMark = "########";
/** Numbers from here on have four bytes. */
export const firstRequest = 0x1_0000;

export class AcquireFrames {
  #bytes;
  #requestsAt;
  #settledAt;
  #namesAt;

  /**
   * @param {number} session
   * @param {string} prefix Of the names.
   * @param {number} count Acquires in a frame.
   */
  constructor(session, prefix, count) {
    const command = {
      kind: /** @type {const} */ ("acquire"),
      session,
      request: requestMark,
      settled: settledMark,
      seen: [],
      names: [`${prefix}${nameMark}`],
      mode: /** @type {const} */ ("exclusive"),
      slots: 0,
      wait: true,
      lockDelayMs: 0,
      maxHoldMs: 0,
      info: "",
    };
    const message = { kind: /** @type {const} */ ("command"), payload: encodeCommand(command) };
    this.#bytes = Buffer.from(encodeClientFrame(Array.from({ length: count }, () => message)));
    this.count = count;
    this.#requestsAt = placesOf(this.#bytes, numberBytes(requestMark), count);
    this.#settledAt = placesOf(this.#bytes, numberBytes(settledMark), count);
    this.#namesAt = placesOf(this.#bytes, Buffer.from(nameMark), count);
  }

  /**
   * The next use writes over it.
   * @param {number} first Number of the first acquire; the others' follow it. From `firstRequest` on.
   * @param {number} settled
   */
  bytesFor(first, settled) {
    for (let at = 0; at < this.count; at += 1) {
      const request = first + at;
      this.#bytes.writeUInt32BE(request, this.#requestsAt[at]);
      this.#bytes.writeUInt32BE(settled, this.#settledAt[at]);
      this.#bytes.write(request.toString(16).padStart(nameMark.length, "0"), this.#namesAt[at], "latin1");
    }
    return this.#bytes;
  }
}

/** @param {number} value */
function numberBytes(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/**
 * @param {Buffer} bytes
 * @param {Buffer} mark
 * @param {number} count
 */
function placesOf(bytes, mark, count) {
  const places = [];
  for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + mark.length)) places.push(at);
  if (places.length !== count) throw new Error(`${places.length} marks in a frame of ${count} acquires`);
  return places;
}
