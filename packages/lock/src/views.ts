/** Reads. They change nothing, and what they return is nobody's state. */
import { isReady } from "./grantable.js";
import {
  holdersShownMax,
  listHoldersMax,
  listLettersMax,
  listLimitMax,
  listRowsMax,
  listWaitersMax,
} from "./limits.js";
import { wholeNumber } from "./numbers.js";
import { grantsOf, holderView, slotOf } from "./outcomes.js";
import { Acquire, namesOf } from "./records.js";
import type { Claim, Lock, Session } from "./records.js";
import { everyName } from "./restoring.js";
import { findHold, findRequest } from "./requests.js";
import type { State } from "./state.js";
import type {
  HolderView,
  HoldingView,
  LockView,
  ResumeView,
  SessionId,
  SessionView,
  Token,
  WaiterView,
} from "./types.js";

export interface LockList {
  readonly locks: readonly LockView[];
  /** There are others after the last one. */
  readonly more: boolean;
}

export interface RunningDelay {
  readonly name: string;
  /** Of the entry that began it. */
  readonly index: number;
  readonly delayMs: number;
}

export interface TimedHold {
  readonly session: SessionId;
  readonly of: number;
  /** Of its first name. */
  readonly token: Token;
  readonly maxHoldMs: number;
}

export function lockView(state: State, name: string, waitersMax: number): LockView | null {
  const lock = state.lockFor(name);
  return lock === null ? null : viewOf(state, lock, holdersShownMax, waitersMax);
}

export function listLocks(state: State, prefix: string, after: string, limit: number): LockList {
  const wanted = Math.min(wholeNumber(limit), listLimitMax);
  const found = new LowestNames(wanted + 1);
  for (const { byName } of state.lockShards) {
    for (const [name, lock] of byName) {
      // Most of many names are passed over at the first comparison.
      if (found.mayTake(name) && name > after && name.startsWith(prefix)) found.add(lock);
    }
  }
  const sorted = found.sorted();
  const locks: LockView[] = [];
  let rows = 0;
  let letters = 0;
  for (const lock of sorted) {
    if (locks.length === wanted || rows >= listRowsMax) break;
    const view = viewOf(state, lock, listHoldersMax, listWaitersMax);
    letters += lettersIn(view);
    if (locks.length > 0 && letters > listLettersMax) break;
    rows += view.holders.length + view.waiters.length;
    locks.push(view);
  }
  return { locks, more: locks.length < sorted.length };
}

export function sessionView(state: State, id: SessionId): SessionView | null {
  const session = state.sessionFor(id);
  return session === null ? null : viewOfSession(session);
}

export function* sessionViews(state: State): Generator<SessionView> {
  for (const { byId } of state.sessionShards) {
    for (const session of byId.values()) yield viewOfSession(session);
  }
}

export function resumeView(state: State, id: SessionId, key: string): ResumeView | null {
  const session = state.sessionFor(id);
  if (session === null || session.key !== key) return null;
  const holds = [];
  const waiting = [];
  const outcomes = [];
  for (const request of session.requests) {
    const { number } = request;
    if (!(request instanceof Acquire)) outcomes.push({ request: number, outcome: request.outcome });
    else if (!request.isGranted) waiting.push(number);
    else holds.push({ request: number, grants: grantsOf(request), maxHoldMs: request.maxHoldMs });
  }
  return { session: id, ttlMs: session.ttlMs, holds, waiting, outcomes };
}

export function* runningDelays(state: State): Generator<RunningDelay> {
  if (state.closedMs > 0) yield { name: everyName, index: state.restoredIndex, delayMs: state.closedMs };
  for (const { delayed } of state.lockShards) {
    for (const { name, delays } of delayed) {
      for (const { index, delayMs } of delays ?? []) yield { name, index, delayMs };
    }
  }
}

export function* timedHolds(state: State): Generator<TimedHold> {
  for (const { timed } of state.sessionShards) {
    for (const { session, number, first, maxHoldMs } of timed) {
      yield { session: session.id, of: number, token: first.token, maxHoldMs };
    }
  }
}

/** Whether the session's acquire `of` is granted and bears this token (as timedHolds tells it). */
export function hasHold(state: State, session: SessionId, of: number, token: number): boolean {
  return findHold(state, session, of, token) !== null;
}

/** For the session itself: nobody else has its key. */
export function holdingView(state: State, id: SessionId, key: string, of: number, name: string): HoldingView | null {
  const session = state.sessionFor(id);
  if (session === null || session.key !== key) return null;
  const request = findRequest(session, of);
  if (!(request instanceof Acquire) || !request.isGranted) return null;
  let claim: Claim | null = request.first;
  while (claim !== null && claim.lock.name !== name) claim = claim.sibling;
  return claim === null ? null : { name, mode: request.mode, slot: slotOf(claim), token: claim.token };
}

/** All holders of a lock without places have one token. */
export function tokenAt(state: State, name: string, slot: number | null): Token | null {
  let claim = state.lockFor(name)?.firstHolder ?? null;
  while (claim !== null && slotOf(claim) !== slot) claim = claim.next;
  return claim?.token ?? null;
}

function viewOfSession(session: Session): SessionView {
  const { id, ttlMs, info, silence, holds, waits } = session;
  return { id, ttlMs, info, silence, holds, waits };
}

function lettersIn({ name, holders, waiters }: LockView): number {
  let letters = name.length;
  for (const { info } of holders) letters += info.length;
  for (const { info, names } of waiters) {
    letters += info.length;
    for (const other of names) letters += other.length;
  }
  return letters;
}

function viewOf(state: State, lock: Lock, holdersMax: number, waitersMax: number): LockView {
  const holders: HolderView[] = [];
  let claim = lock.firstHolder;
  for (; claim !== null && holders.length < holdersMax; claim = claim.next) holders.push(holderView(claim));
  const waiters: WaiterView[] = [];
  let waiter = lock.queue?.first ?? null;
  for (; waiter !== null && waiters.length < waitersMax; waiter = waiter.next) waiters.push(waiterView(waiter));
  const delays = (lock.delays ?? []).flatMap(({ index, delayMs, places }) => {
    const slots = places.length === 0 ? [null] : places;
    return slots.map((slot) => ({ index, delayMs, slot }));
  });
  // Only waiters can be here then, and this is what they wait for.
  if (state.closedMs > 0) delays.push({ index: state.restoredIndex, delayMs: state.closedMs, slot: null });
  return {
    name: lock.name,
    mode: lock.firstHolder?.acquire.mode ?? null,
    slots: lock.slots,
    holders,
    holderCount: lock.holderCount,
    waiters,
    waiterCount: lock.queue?.count ?? 0,
    delays,
  };
}

function waiterView(claim: Claim): WaiterView {
  const { acquire } = claim;
  const { session, number: request, mode, info } = acquire;
  const names = namesOf(acquire);
  return { session: session.id, request, mode, info: info || session.info, names, reserves: reserves(claim) };
}

/** It is first here, and what it waits for is (also) elsewhere. */
function reserves(claim: Claim): boolean {
  if (claim.previous !== null) return false;
  for (let other: Claim | null = claim.acquire.first; other !== null; other = other.sibling) {
    if (other !== claim && !isReady(other)) return true;
  }
  return false;
}

/** Keeps the lowest names of many, as a heap with the highest of them on top. */
class LowestNames {
  private readonly capacity: number;
  private readonly heap: Lock[] = [];

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  mayTake(name: string): boolean {
    return this.heap.length < this.capacity || name < (this.heap[0] as Lock).name;
  }

  /** Of one that it may take. */
  add(lock: Lock): void {
    const { heap } = this;
    if (heap.length < this.capacity) {
      heap.push(lock);
      this.rise(heap.length - 1);
    } else {
      heap[0] = lock;
      this.sink();
    }
  }

  sorted(): Lock[] {
    return this.heap.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  private rise(from: number): void {
    const { heap } = this;
    const lock = heap[from] as Lock;
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if ((heap[parent] as Lock).name > lock.name) break;
      heap[at] = heap[parent] as Lock;
      at = parent;
    }
    heap[at] = lock;
  }

  private sink(): void {
    const { heap } = this;
    const lock = heap[0] as Lock;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && (heap[child + 1] as Lock).name > (heap[child] as Lock).name) child += 1;
      if ((heap[child] as Lock).name < lock.name) break;
      heap[at] = heap[child] as Lock;
      at = child;
    }
    heap[at] = lock;
  }
}
