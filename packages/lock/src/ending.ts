/** How holds, waits and sessions end. What they leave free is granted later in the entry, when all of it has ended. */
import { beginDelay } from "./delays.js";
import type { Entry } from "./entry.js";
import { leaveQueues } from "./granting.js";
import { removeHolder } from "./holders.js";
import { slotOf } from "./outcomes.js";
import { freePlace } from "./places.js";
import { Acquire, namesOf, noPlace } from "./records.js";
import type { Claim, Session } from "./records.js";
import { replaceByPast } from "./requests.js";
import type { State } from "./state.js";
import type { LossReason, Outcome, RequestNumber } from "./types.js";

/** The holder frees it; its names stay closed for `afterMs`. */
export function releaseHold(state: State, entry: Entry, acquire: Acquire, afterMs: number): void {
  state.cow.saveRequest(acquire.session, acquire);
  takeOutHold(state, entry, acquire, "released", afterMs);
  replaceByPast(state, acquire, { kind: "released" }, namesOf(acquire));
}

/** A hold is taken from its session, which lives on. `delayMs`: for how long its names stay closed. */
export function loseHold(state: State, entry: Entry, acquire: Acquire, reason: LossReason, delayMs: number): void {
  state.cow.saveRequest(acquire.session, acquire);
  const outcome = tellLoss(entry, acquire, reason);
  takeOutHold(state, entry, acquire, "lost", delayMs);
  replaceByPast(state, acquire, outcome, namesOf(acquire));
}

export function cancelWait(state: State, entry: Entry, acquire: Acquire): void {
  state.cow.saveRequest(acquire.session, acquire);
  takeOutWait(state, entry, acquire);
  const outcome: Outcome = { kind: "cancelled" };
  replaceByPast(state, acquire, outcome, namesOf(acquire));
  entry.tell({ kind: "outcome", session: acquire.session.id, request: acquire.number, outcome });
}

/**
 * Everything of the session ends: its waits, and its holds, with their lock-delays unless it was closed by its client. `request` is the
 * number of that closeSession, else 0.
 */
export function endSession(
  state: State,
  entry: Entry,
  session: Session,
  reason: "expired" | "closed",
  request: RequestNumber,
): void {
  state.cow.saveSession(session);
  for (const kept of session.requests) {
    state.cow.saveRequest(session, kept);
    if (!(kept instanceof Acquire)) continue;
    tellLoss(entry, kept, reason);
    if (!kept.isGranted) takeOutWait(state, entry, kept);
    else if (reason === "closed") takeOutHold(state, entry, kept, "released", 0);
    else takeOutHold(state, entry, kept, "lost", kept.lockDelayMs);
  }
  state.removeSession(session);
  state.ended.add({ id: session.id, reason, request });
  entry.tell({ kind: "sessionEnded", session: session.id, reason });
}

function tellLoss(entry: Entry, acquire: Acquire, reason: LossReason): Outcome {
  const outcome: Outcome = { kind: "lost", reason, index: entry.index };
  entry.tell({ kind: "outcome", session: acquire.session.id, request: acquire.number, outcome });
  return outcome;
}

function takeOutWait(state: State, entry: Entry, acquire: Acquire): void {
  leaveQueues(state, acquire);
  for (let claim: Claim | null = acquire.first; claim !== null; claim = claim.sibling) entry.touch(claim.lock);
}

function takeOutHold(state: State, entry: Entry, acquire: Acquire, change: "released" | "lost", delayMs: number): void {
  for (let claim: Claim | null = acquire.first; claim !== null; claim = claim.sibling) {
    const { lock, token, place } = claim;
    removeHolder(lock, claim);
    if (place !== noPlace) lock.places = freePlace(lock.places, place);
    if (delayMs > 0) beginDelay(state, entry, claim, delayMs);
    entry.touch(lock);
    entry.tell({ kind: "changed", name: lock.name, change, token, slot: slotOf(claim) });
  }
  state.noteHoldEnded(acquire);
}
