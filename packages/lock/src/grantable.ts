/**
 * When an acquire is grantable: for each of its names no conflicting hold and no closing delay is there, and nothing stands before it in
 * that queue. The order is strict: even a compatible request passes nobody.
 */
import { closesFor } from "./delays.js";
import { lowestFreePlace } from "./places.js";
import { noPlace } from "./records.js";
import type { Acquire, Claim, Lock } from "./records.js";
import type { Mode } from "./types.js";

/** Holds and delays leave room for one more hold of `mode`. Of a semaphore all holds are of mode "slot". */
export function hasRoom(lock: Lock, mode: Mode): boolean {
  if (mode === "slot") return lowestFreePlace(lock.places, lock.slots) !== noPlace;
  if (lock.firstHolder !== null && (mode === "exclusive" || lock.firstHolder.acquire.mode === "exclusive"))
    return false;
  return !closesFor(lock.delays, mode);
}

/** The first of its claims that keeps a waiting acquire from its grant, or null if it is grantable. */
export function firstObstacle(acquire: Acquire): Claim | null {
  for (let claim: Claim | null = acquire.first; claim !== null; claim = claim.sibling) {
    if (!isReady(claim)) return claim;
  }
  return null;
}

/** First in its queue, and there is room for it: with several names it reserves this one while it waits for the others. */
export function isReady(claim: Claim): boolean {
  return claim.lock.queue?.first === claim && hasRoom(claim.lock, claim.acquire.mode);
}
