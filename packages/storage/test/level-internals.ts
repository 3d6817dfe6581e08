/** Calls into LevelDB, below abstract-level: there is no other way to it. Tests replace some and call `restoreInternals` at the end. */
import { Level } from "level";
import { after } from "node:test";

export interface Internals {
  _batch: (operations: readonly { type: string; key: Buffer }[], options: { sync?: boolean }) => Promise<void>;
  _get: (key: Buffer, options: object) => Promise<Buffer | undefined>;
  _iterator: (options: object) => unknown;
  _put: unknown;
  _del: unknown;
  _clear: unknown;
  _chainedBatch: unknown;
  compactRange: (start: Buffer, end: Buffer) => Promise<void>;
}

export const internals = Level.prototype as unknown as Internals;
export const originals = { ...pick(internals) };

function pick({ _batch, _get, _iterator, _put, _del, _clear, _chainedBatch, compactRange }: Internals): Internals {
  return { _batch, _get, _iterator, _put, _del, _clear, _chainedBatch, compactRange };
}

export function restoreInternals(): void {
  Object.assign(internals, originals);
}

after(restoreInternals);
