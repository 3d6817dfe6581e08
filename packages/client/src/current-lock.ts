/** The lock under which the running code was called: what a body hands on without saying it. Node only. */
import { AsyncLocalStorage } from "node:async_hooks";
import { InvalidArgumentError } from "./errors.js";
import type { Fence, Lock } from "./lock.js";
import type { LockContext } from "./platform.js";

const held = new AsyncLocalStorage<Lock>();

/** Runs a body; what it calls, and what that awaits, finds the lock. */
export const nodeContext: LockContext = { run: (lock, body) => held.run(lock, body) };

/** The lock of the innermost body of request(), lead() or oncePer() that this code was called from; null outside of all. It may be lost by now. */
export function currentLock(): Lock | null {
  return held.getStore() ?? null;
}

/**
 * Its fence, for a guard deep inside of a body: `await documents.update(currentFence(), id, values)`. `name` is needed when the lock has
 * several. Throws invalid_argument outside of every body: a write that should be guarded and has no token must not go through.
 */
export function currentFence(name?: string): Fence {
  const lock = currentLock();
  if (lock === null)
    throw new InvalidArgumentError("currentFence()", "was called outside of every body that holds a lock");
  return lock.fence(name);
}
