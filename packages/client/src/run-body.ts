/** Runs what a caller does under a lock, and gives the lock back whatever comes of it. */
import { LockLostError } from "./errors.js";
import type { LockHandle } from "./lock-handle.js";
import type { Lock } from "./lock.js";

const none = (): number => 0;

/** Null: it was asked for only if free, and was not. */
export type Body<T> = (lock: Lock | null) => T | PromiseLike<T>;

/**
 * Rejects with LockLostError when the lock was lost while the body ran; the error that the body ended with is its cause. `afterMs`: for how
 * long the lock stays closed from then on.
 */
export async function runBody<T>(lock: LockHandle | null, body: Body<T>, afterMs: () => number = none): Promise<T> {
  if (lock === null) return await body(null);
  let result: T;
  try {
    result = await lock.run(() => body(lock));
  } catch (error) {
    await lock.release({ afterMs: afterMs() });
    if (!lock.wasLostWhileHeld) throw error;
    throw new LockLostError(lock.names, lock.lossReason ?? "session_gone", { cause: error });
  }
  await lock.release({ afterMs: afterMs() });
  if (lock.wasLostWhileHeld) throw new LockLostError(lock.names, lock.lossReason ?? "session_gone");
  return result;
}
