import { InvalidArgumentError } from "./errors.js";
import { fenceOf, isWellFormed } from "./fence.js";
import type { FenceSource } from "./fence.js";

/** A resource as its errors and reports name it, and what was presented to it. */
export interface Guarded {
  readonly resource: string;
  readonly token: number;
  readonly holder?: string;
}

/**
 * The fence of one lock, for a guard whose register is named after the lock.
 * @throws InvalidArgumentError naming the argument.
 */
export function namedFence(source: FenceSource, argument: string = "lock"): Guarded {
  const { resource, ...fence } = fenceOf(source, argument);
  if (resource === undefined) {
    throw new InvalidArgumentError(`${argument}.resource`, "is needed: it names the fence's register");
  }
  return { resource, ...fence };
}

/**
 * The fences of one or several locks, each resource once. In one order everywhere, so that two transactions over the same resources
 * wait for each other and don't deadlock.
 * @throws InvalidArgumentError naming the argument.
 */
export function namedFences(locks: FenceSource | readonly FenceSource[]): Guarded[] {
  const isList = Array.isArray(locks);
  const sources: readonly FenceSource[] = isList ? locks : [locks];
  if (sources.length === 0) throw new InvalidArgumentError("locks", "is empty");
  const fences = new Map<string, Guarded>();
  for (const [at, source] of sources.entries()) {
    const argument = isList ? `locks[${at}]` : "lock";
    const fence = namedFence(source, argument);
    const { resource, token } = fence;
    if ((fences.get(resource)?.token ?? token) !== token) {
      throw new InvalidArgumentError(argument, `is a second fence of ${resource} with another token`);
    }
    fences.set(resource, fence);
  }
  return [...fences.values()].sort((a, b) => (a.resource < b.resource ? -1 : 1));
}

/**
 * A resource that is named without a lock.
 * @throws InvalidArgumentError naming `resource`.
 */
export function checkResource(resource: unknown): void {
  if (typeof resource !== "string" || resource === "" || !isWellFormed(resource)) {
    throw new InvalidArgumentError("resource", "must be a well-formed string that isn't empty");
  }
}
