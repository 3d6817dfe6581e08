import { InvalidArgumentError } from "./errors.js";

/** What a holder presents to a resource. */
export interface Fence {
  /** The lock's name; for a slot of a semaphore `name#slot`. Guards that keep one register per resource need it. */
  readonly resource?: string;
  /** A safe integer of at least 1. */
  readonly token: number;
  /** Who presents it, for reports of refusals. No guard compares it. */
  readonly holder?: string;
}

/** A lock handle (anything with `fence()`), or a fence passed on by hand. For a lock of several names pass `lock.fence(name)`. */
export type FenceSource = Fence | { fence(name?: string): Fence };

/**
 * The fence of a lock handle, checked. Asked for at every guarded operation, and never refused because the holder thinks that its
 * lock is lost: only the resource knows whether a newer token has been there.
 * @throws InvalidArgumentError naming `argument` or a part of it.
 */
export function fenceOf(source: FenceSource, argument: string = "lock"): Fence {
  if (!isObject(source)) throw new InvalidArgumentError(argument, "must be a lock or a fence { resource, token }");
  const isHandle = "fence" in source && typeof source.fence === "function";
  const fence: unknown = isHandle ? source.fence() : source;
  const path = isHandle ? `${argument}.fence()` : argument;
  if (!isObject(fence)) throw new InvalidArgumentError(path, "must be a fence { resource, token }");

  const { token, resource, holder } = fence as { readonly [part in keyof Fence]?: unknown };
  if (typeof token !== "number" || !Number.isSafeInteger(token) || token < 1) {
    throw new InvalidArgumentError(`${path}.token`, `must be a safe integer of at least 1, not ${described(token)}`);
  }
  return {
    ...(resource === undefined ? {} : { resource: checkedName(resource, `${path}.resource`) }),
    token,
    ...(holder === undefined ? {} : { holder: checkedName(holder, `${path}.holder`) }),
  };
}

/** A lone surrogate becomes U+FFFD on its way to the resource: two names would share one register. */
export function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

function checkedName(name: unknown, argument: string): string {
  if (typeof name !== "string" || name === "") {
    throw new InvalidArgumentError(argument, `must be a string that isn't empty, not ${described(name)}`);
  }
  if (!isWellFormed(name)) throw new InvalidArgumentError(argument, "must be well-formed Unicode");
  if (name.includes("\0")) throw new InvalidArgumentError(argument, "must not contain U+0000");
  return name;
}

/** For messages: says what came in without printing somebody's data at length. */
export function described(value: unknown): string {
  if (typeof value === "string") return value.length > 40 ? "a long string" : JSON.stringify(value);
  if (typeof value === "number") return String(value);
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "undefined" ? "undefined" : `a value of type ${typeof value}`;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
