/** What tells two runs apart: a hash over every event's time and name, and over what was said. */

const number = new Float64Array(1);
const halves = new Uint32Array(number.buffer);

export class TraceHash {
  #a = 0x811c9dc5;
  #b = 0x9e3779b9;

  add(value: number, text: string): void {
    number[0] = value;
    this.#mix(halves[0] as number);
    this.#mix(halves[1] as number);
    for (let at = 0; at < text.length; at += 1) this.#mix(text.charCodeAt(at));
  }

  addBytes(bytes: Uint8Array): void {
    this.#mix(bytes.length);
    for (const byte of bytes) this.#mix(byte);
  }

  #mix(word: number): void {
    this.#a = Math.imul(this.#a ^ word, 0x01000193);
    this.#b = Math.imul(this.#b ^ (word + (this.#a >>> 15)), 0x85ebca6b);
    this.#b ^= this.#b >>> 13;
  }

  /** 16 hex digits. */
  digest(): string {
    return [this.#a, this.#b].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
  }
}
