/** Hashes that are the same on every machine: integer arithmetic only. */
import type { SnapshotValue } from "./snapshot-records.js";

/** FNV-1a over code units, 32 bits. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  // FNV's low bits alone depend on the low bits of each character alone.
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Two independent 32-bit lanes over a sequence of values; each value brings its kind and its length, so that none can be mistaken for two. */
export class Hasher {
  private a = 0x811c9dc5;
  private b = 0x9e3779b9;

  add(value: SnapshotValue): void {
    if (typeof value === "number") {
      this.mix(1);
      this.addNumber(value);
    } else if (typeof value === "string") {
      this.mix(2);
      this.addNumber(value.length);
      for (let at = 0; at < value.length; at += 1) this.mix(value.charCodeAt(at));
    } else if (value === null || typeof value === "boolean") {
      this.mix(value === null ? 3 : value ? 4 : 5);
    } else {
      this.mix(6);
      this.addNumber(value.length);
      for (const item of value) this.add(item);
    }
  }

  /** 16 hex digits. */
  digest(): string {
    return hex(finish(this.a ^ Math.imul(this.b, 0x85ebca6b))) + hex(finish(this.b ^ Math.imul(this.a, 0xc2b2ae35)));
  }

  /** Of a safe integer. */
  private addNumber(value: number): void {
    this.mix(value | 0);
    this.mix(Math.floor(value / 0x1_0000_0000) | 0);
  }

  private mix(word: number): void {
    this.a = Math.imul(this.a ^ word, 0x01000193);
    const turned = (this.b << 13) | (this.b >>> 19);
    this.b = (Math.imul(turned ^ word, 5) + 0xe6546b64) | 0;
  }
}

function finish(word: number): number {
  let hash = word;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function hex(word: number): string {
  return word.toString(16).padStart(8, "0");
}
