/** Granting and queueing (P1, P2, P8). A grant happens here only, and only while an entry is applied. */
import { assert } from "./assert.js";
import type { Entry } from "./entry.js";
import { firstObstacle, hasRoom } from "./grantable.js";
import { addHolder } from "./holders.js";
import { grantedOutcome, slotOf } from "./outcomes.js";
import { lowestFreePlace, takePlace } from "./places.js";
import { AcquireHeap, WaitQueue } from "./queue.js";
import { noPlace } from "./records.js";
import type { Acquire, Claim, Lock } from "./records.js";
import type { State } from "./state.js";

export function enterQueues(state: State, acquire: Acquire): void {
  for (let claim: Claim | null = acquire.first; claim !== null; claim = claim.sibling) {
    claim.lock.queue ??= new WaitQueue();
    claim.lock.queue.push(claim);
  }
  state.noteWait(acquire);
}

export function leaveQueues(state: State, acquire: Acquire): void {
  for (let claim: Claim | null = acquire.first; claim !== null; claim = claim.sibling) {
    const { lock } = claim;
    assert(lock.queue !== null, "a waiting claim's lock has a queue");
    lock.queue.remove(claim);
    if (lock.queue.count === 0) lock.queue = null;
  }
  state.noteWaitEnded(acquire);
}

/** Of an acquire that stands in no queue and has room at all its locks, in a state that isn't closed. */
export function grant(state: State, entry: Entry, acquire: Acquire): void {
  state.cow.saveRequest(acquire.session, acquire);
  acquire.isGranted = true;
  for (let claim: Claim | null = acquire.first; claim !== null; claim = claim.sibling) {
    beginHold(claim, entry.index);
  }
  state.noteHold(acquire);
  const { session, number, maxHoldMs, first } = acquire;
  entry.tell({ kind: "outcome", session: session.id, request: number, outcome: grantedOutcome(acquire) });
  entry.tell({ kind: "holdBegan", session: session.id, of: number, token: first.token, maxHoldMs });
  for (let claim: Claim | null = first; claim !== null; claim = claim.sibling) {
    const { lock, token } = claim;
    entry.tell({ kind: "changed", name: lock.name, change: "granted", token, slot: slotOf(claim) });
  }
}

/**
 * Examines the waiters of the touched locks, the oldest request first, until nothing more can be granted. One pass is enough: a grant
 * frees nothing, and makes first in a queue only requests that are younger than itself.
 */
export function grantWaiters(state: State, entry: Entry): void {
  if (entry.touched === null) return;
  const heads = new AcquireHeap();
  if (state.closedMs === 0) for (const lock of entry.touched) pushHead(heads, lock);
  for (let acquire = heads.pop(); acquire !== null; acquire = heads.pop()) {
    if (acquire.isGranted || firstObstacle(acquire) !== null) continue;
    leaveQueues(state, acquire);
    grant(state, entry, acquire);
    for (let claim: Claim | null = acquire.first; claim !== null; claim = claim.sibling) pushHead(heads, claim.lock);
  }
  for (const lock of entry.touched) state.removeLockIfIdle(lock);
}

function pushHead(heads: AcquireHeap, lock: Lock): void {
  const head = lock.queue?.first ?? null;
  if (head !== null) heads.push(head.acquire);
}

/** A generation's token is the index of the entry that began it; who joins a shared one bears the token that it has. */
function beginHold(claim: Claim, index: number): void {
  const { lock, acquire } = claim;
  if (acquire.mode === "slot") {
    claim.place = lowestFreePlace(lock.places, lock.slots);
    assert(claim.place !== noPlace, "a slot is granted where a place is free");
    lock.places = takePlace(lock.places, claim.place);
    claim.token = index;
  } else {
    assert(hasRoom(lock, acquire.mode), "P1: no hold begins beside a conflicting one");
    claim.token = lock.firstHolder === null ? index : lock.firstHolder.token;
  }
  addHolder(lock, claim);
}
