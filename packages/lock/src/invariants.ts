/** What holds between any two entries (P1, P7, P8 and the links between the tables). Walks everything. */
import { assert } from "./assert.js";
import { longestDelayMs } from "./delays.js";
import { firstObstacle } from "./grantable.js";
import { Acquire, noPlace } from "./records.js";
import type { Claim, Lock, Session } from "./records.js";
import { rangesInclude } from "./ranges.js";
import { keysProblem } from "./signing-keys.js";
import type { State } from "./state.js";

export function checkInvariants(state: State): void {
  const totals = { sessions: 0, holds: 0, waits: 0, timed: 0, claims: 0, locks: 0, listed: 0 };
  const longest = { ttlMs: 0, holdDelayMs: 0, runningDelayMs: 0 };
  for (const { byId, timed } of state.sessionShards) {
    totals.sessions += byId.size;
    for (const session of byId.values()) {
      longest.ttlMs = Math.max(longest.ttlMs, session.ttlMs);
      longest.holdDelayMs = Math.max(longest.holdDelayMs, longestHoldDelayMs(session));
      checkSession(state, session);
      totals.holds += session.holds;
      totals.waits += session.waits;
      for (const request of session.requests)
        totals.claims += request instanceof Acquire ? claimsOf(request).length : 0;
      for (const request of session.requests) totals.timed += isTimed(request) ? 1 : 0;
    }
    for (const acquire of timed) assert(isTimed(acquire) && isKept(state, acquire), "a timed hold is one");
    totals.timed -= timed.size;
  }
  for (const { byName, delayed } of state.lockShards) {
    totals.locks += byName.size;
    for (const lock of byName.values()) {
      checkLock(state, lock);
      totals.listed += lock.holderCount + (lock.queue?.count ?? 0);
      assert(delayed.has(lock) === (lock.delays !== null), "the delayed locks are known");
      longest.runningDelayMs = Math.max(longest.runningDelayMs, longestDelayMs(lock.delays));
    }
    for (const lock of delayed) assert(byName.get(lock.name) === lock, "a delayed lock exists");
  }
  assert(Number.isSafeInteger(state.clusterVersion) && state.clusterVersion >= 1, "the cluster version is a number");
  const keys = keysProblem(state);
  assert(keys === null, `the signing keys are to be ${keys}`);
  assert(totals.sessions === state.sessionCount && totals.locks === state.lockCount, "sessions and locks are counted");
  assert(totals.holds === state.holdCount && totals.waits === state.waiterCount, "holds and waiters are counted");
  assert(totals.claims === totals.listed, "locks and sessions name the same claims");
  assert(state.ttls.longestMs === longest.ttlMs, "the longest TTL is known");
  assert(state.holdDelays.longestMs === longest.holdDelayMs, "the longest lock-delay of a hold is known");
  assert(state.runningDelays.longestMs === longest.runningDelayMs, "the longest running lock-delay is known");
  assert(state.closedMs === 0 || state.holdCount === 0, "nothing is held before a restored cluster opens");
  assert(totals.timed === 0, "every timed hold is known");
}

function checkSession(state: State, session: Session): void {
  assert(state.sessionWithKey(session.key) === session, "a session is found by its key");
  assert(session.silence >= 0 && session.silence <= 8, "silence is counted from 0 to 8");
  const { seen, requests, settled } = session;
  for (let at = 0; at < seen.length; at += 2) {
    const from = seen[at] as number;
    assert(
      from <= (seen[at + 1] as number) && from > (at === 0 ? settled : (seen[at - 1] as number) + 1),
      "ranges rise",
    );
  }
  let last = settled - 1;
  let holds = 0;
  let waits = 0;
  for (const request of requests) {
    assert(request.number > last && !rangesInclude(seen, request.number), "P7: a number is kept, or seen, or settled");
    last = request.number;
    if (!(request instanceof Acquire)) continue;
    if (request.isGranted) holds += 1;
    else waits += 1;
    for (const claim of claimsOf(request)) {
      assert(state.lockFor(claim.lock.name) === claim.lock, "a claim's lock exists");
      assert((claim.block === null) === request.isGranted, "a claim waits or holds");
    }
    const mayWait = state.closedMs > 0 || firstObstacle(request) !== null;
    assert(request.isGranted || mayWait, "no waiter is grantable and not granted");
    assert(session.id > state.restoredIndex, "no session outlives a restore");
  }
  assert(session.holds === holds && session.waits === waits, "a session's holds and waits are counted");
}

function checkLock(state: State, lock: Lock): void {
  const holders = linked(lock.firstHolder, lock.lastHolder);
  const waiters = linked(lock.queue?.first ?? null, lock.queue?.last ?? null);
  assert(holders.length === lock.holderCount, "holders are counted");
  assert(lock.queue === null || (waiters.length > 0 && lock.queue.count === waiters.length), "waiters are counted");
  assert(holders.length + waiters.length > 0 || lock.delays !== null, "an idle lock vanishes");
  for (const claim of [...holders, ...waiters]) {
    assert(
      claim.lock === lock && isKept(state, claim.acquire),
      "no lock names a dead session or a request that is over",
    );
    assert((claim.acquire.mode === "slot") === lock.slots > 0, "a lock has one kind");
  }
  for (const [at, claim] of waiters.entries()) {
    assert(!claim.acquire.isGranted && lock.queue?.countBefore(claim) === at, "a waiter knows its place in the queue");
  }
  for (const list of [holders, waiters]) {
    assert(
      list.every((claim, at) => at === 0 || (list[at - 1] as Claim).acquire.index < claim.acquire.index),
      "P8: log order",
    );
  }
  if (lock.slots === 0) checkGeneration(lock, holders);
  checkPlaces(lock, holders);
}

function checkGeneration(lock: Lock, holders: readonly Claim[]): void {
  const isShared = holders.every(({ acquire }) => acquire.mode === "shared");
  assert(isShared || holders.length === 1, "P1: an exclusive holder is alone");
  assert(
    holders.every(({ token, place }) => token === holders[0]?.token && place === noPlace),
    "a generation has one token",
  );
  assert(isShared || lock.delays === null, "nobody holds what an exclusive hold's delay closes");
}

function checkPlaces(lock: Lock, holders: readonly Claim[]): void {
  const used = lock.slots === 0 ? [] : holders.map(({ place }) => place);
  let lastIndex = 0;
  for (const { index, places, mode, delayMs } of lock.delays ?? []) {
    assert(index > lastIndex && delayMs > 0, "delays rise");
    assert(
      (mode === "slot") === lock.slots > 0 && (mode === "slot") === places.length > 0,
      "a delay has its lock's kind",
    );
    lastIndex = index;
    used.push(...places);
  }
  assert(new Set(used).size === used.length, "P1: a place is held once, or delayed");
  assert(
    used.every((place) => place >= 0 && place < lock.slots),
    "places are below N",
  );
  const bits = (lock.places ?? []).flatMap((word, at) => bitsOf(word).map((bit) => at * 32 + bit));
  assert(bits.length === used.length && bits.every((place) => used.includes(place)), "places in use are marked");
}

function bitsOf(word: number): number[] {
  return Array.from({ length: 32 }, (_, bit) => bit).filter((bit) => (word & (1 << bit)) !== 0);
}

function linked(first: Claim | null, last: Claim | null): Claim[] {
  const claims: Claim[] = [];
  for (let claim = first; claim !== null; claim = claim.next) {
    assert(claim.previous === (claims[claims.length - 1] ?? null), "neighbours know each other");
    claims.push(claim);
  }
  assert((claims[claims.length - 1] ?? null) === last, "a list knows its end");
  return claims;
}

function claimsOf(acquire: Acquire): Claim[] {
  const claims: Claim[] = [];
  for (let claim: Claim | null = acquire.first; claim !== null; claim = claim.sibling) claims.push(claim);
  return claims;
}

function isKept(state: State, acquire: Acquire): boolean {
  const session = state.sessionFor(acquire.session.id);
  return session === acquire.session && session.requests.includes(acquire);
}

function longestHoldDelayMs({ requests }: Session): number {
  const delays = requests.map((each) => (each instanceof Acquire && each.isGranted ? each.lockDelayMs : 0));
  return Math.max(0, ...delays);
}

function isTimed(request: unknown): boolean {
  return request instanceof Acquire && request.isGranted && request.maxHoldMs > 0;
}
