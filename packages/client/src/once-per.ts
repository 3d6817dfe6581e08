/** Something that is due on many hosts at once, and is to be done by one of them: a job of a clock. */
import { limits } from "@holdfast/wire";
import type { LockHandle } from "./lock-handle.js";
import type { Lock } from "./lock.js";
import { checkName, checkWhole } from "./options.js";
import type { HoldOptions } from "./options.js";
import type { Clock } from "./ports.js";
import { runBody } from "./run-body.js";
import type { Body } from "./run-body.js";
import { checkBody } from "./call-forms.js";

/** `ran`: whether this caller was the one of its window. */
export type OncePerResult<T> = { readonly ran: true; readonly value: T } | { readonly ran: false };

/**
 * Runs the body unless another caller has begun within the last `windowMs`: the lock stays closed for the rest of the window after the body
 * has ended, and for a whole window after its holder was lost. That is at most once in a window as long as the body's effects reach no
 * further than its lock; after a crash in mid-body nobody else does it in this window.
 */
export async function oncePer<T>(
  tryAcquire: (key: string, options: HoldOptions) => Promise<LockHandle | null>,
  clock: Clock,
  key: string,
  windowMs: number,
  body: (lock: Lock) => T | PromiseLike<T>,
): Promise<OncePerResult<T>> {
  checkName("key", key);
  checkWhole("windowMs", windowMs, 1, Math.min(limits.afterMsMax, limits.lockDelayMsMax));
  checkBody(body);
  const lock = await tryAcquire(key, { lockDelayMs: windowMs });
  if (lock === null) return { ran: false };
  // Granted before this: the window that is counted from here ends no earlier.
  const beganMs = clock.monotonicMs();
  const restMs = (): number => Math.max(0, Math.ceil(windowMs - (clock.monotonicMs() - beganMs)));
  return { ran: true, value: await runBody(lock, body as Body<T>, restMs) };
}
