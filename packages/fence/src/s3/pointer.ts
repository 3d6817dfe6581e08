/** The one object per resource that changes: its body says under which token, by which write, and where the data lies. */
import { IncompatibleResourceError } from "../errors.js";

/** Where one write's data lies: an object that never changes. */
export interface StoredContent {
  /** Within the resource's data. */
  readonly name: string;
  readonly bytes: number;
}

export interface Pointer {
  readonly resource: string;
  readonly token: number;
  /**
   * Drawn for each write. An ETag is often the MD5 of the body: without it two pointers of equal content would have one ETag, and a late
   * writer's If-Match would hit the wrong one.
   */
  readonly writeId: string;
  /** Counts the writes of this resource, from 1. */
  readonly number: number;
  /** The writeIds before this one, the newest first: whose answer was lost finds its own here. */
  readonly recent: readonly string[];
  /** Null when the content was removed. */
  readonly data: StoredContent | null;
}

/**
 * So many writes of others may come between a write and the look for its lost answer. A pointer stays below 3 KB with them. More than a
 * hundred writers at once, each refused once for each that succeeds, look again long before.
 */
export const recentMax = 64;

export function pointerBody(pointer: Pointer): Buffer {
  const { resource, token, writeId, number, recent, data } = pointer;
  return Buffer.from(`${JSON.stringify({ holdfast: 1, resource, token, writeId, number, recent, data })}\n`);
}

/** @throws IncompatibleResourceError for what is no pointer of this resource. */
export function pointerFrom(body: Uint8Array, key: string, resource: string): Pointer {
  const pointer = parsed(Buffer.from(body).toString("utf8"));
  if (pointer?.resource === resource) return pointer;
  const problem = pointer === null ? "is damaged" : `belongs to ${JSON.stringify(pointer.resource)}`;
  throw new IncompatibleResourceError(
    resource,
    `the object ${key}, where the fence of ${resource} should be, ${problem}`,
  );
}

function parsed(text: string): Pointer | null {
  try {
    const { holdfast, ...pointer } = JSON.parse(text) as Partial<Pointer & { holdfast: number }>;
    const { data } = pointer;
    const isWhole =
      holdfast === 1 &&
      typeof pointer.resource === "string" &&
      typeof pointer.token === "number" &&
      typeof pointer.writeId === "string" &&
      Number.isSafeInteger(pointer.number) &&
      Array.isArray(pointer.recent) &&
      (data === null || (typeof data?.name === "string" && Number.isSafeInteger(data.bytes)));
    return isWhole ? (pointer as Pointer) : null;
  } catch {
    return null;
  }
}

/**
 * Whether this write is among those that a later pointer tells of; null when it tells no more of that time. Each write replaces exactly
 * the one before it, so its number is known, and whoever else has that number has kept it out for good.
 */
export function tellsOf(pointer: Pointer, number: number, writeId: string): boolean | null {
  const there = [pointer.writeId, ...pointer.recent][pointer.number - number];
  return there === undefined ? null : there === writeId;
}
