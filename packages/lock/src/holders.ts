/** The holders of a lock, linked in the order of their requests. */
import type { Claim, Lock } from "./records.js";

export function addHolder(lock: Lock, claim: Claim): void {
  claim.previous = lock.lastHolder;
  if (lock.lastHolder === null) lock.firstHolder = claim;
  else lock.lastHolder.next = claim;
  lock.lastHolder = claim;
  lock.holderCount += 1;
}

export function removeHolder(lock: Lock, claim: Claim): void {
  if (claim.previous === null) lock.firstHolder = claim.next;
  else claim.previous.next = claim.next;
  if (claim.next === null) lock.lastHolder = claim.previous;
  else claim.next.previous = claim.previous;
  claim.previous = null;
  claim.next = null;
  lock.holderCount -= 1;
}
