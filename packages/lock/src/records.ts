/**
 * What the machine is made of: sessions with their requests, locks with their claims and delays. A claim ties one acquire to one of its
 * names; it stands in the lock's queue while the acquire waits and among its holders once it is granted. Everything about locks but the
 * delays follows from the acquires: a snapshot holds sessions, requests and delays only.
 *
 * Records are lean on purpose (a million held locks): no arrays or maps for one holder and no waiter.
 */
import type { QueueBlock, WaitQueue } from "./queue.js";
import type { Ranges } from "./ranges.js";
import type { LossReason, Mode, Outcome, RequestNumber, SessionId, Token } from "./types.js";

export class Session {
  readonly id: SessionId;
  readonly key: string;
  readonly ttlMs: number;
  readonly info: string;
  /** Eighths of the TTL. */
  silence = 0;
  /** Every lower request is over and was seen, or will never be executed. No live acquire is below. */
  settled: RequestNumber = 1;
  /** Seen requests from `settled` on. None of them has a record. */
  seen: Ranges = [];
  /** By number, rising. */
  requests: KeptRequest[] = [];
  holds = 0;
  waits = 0;
  /** See CopyOnWrite. */
  saved: number;

  constructor(id: SessionId, key: string, ttlMs: number, info: string, saved: number) {
    this.id = id;
    this.key = key;
    this.ttlMs = ttlMs;
    this.info = info;
    this.saved = saved;
  }
}

export type KeptRequest = Acquire | Past;

/** A request that is over; it is kept until the client has seen its outcome. */
export class Past {
  readonly number: RequestNumber;
  readonly outcome: Outcome;
  /** Of an acquire that held or waited: what it was about. */
  readonly names: readonly string[] | null;
  saved: number;

  constructor(number: RequestNumber, outcome: Outcome, names: readonly string[] | null, saved: number) {
    this.number = number;
    this.outcome = outcome;
    this.names = names;
    this.saved = saved;
  }
}

/** An acquire that waits or holds. */
export class Acquire {
  readonly session: Session;
  readonly number: RequestNumber;
  /** Of its entry: the order of waiters. */
  readonly index: number;
  readonly mode: Mode;
  readonly lockDelayMs: number;
  readonly maxHoldMs: number;
  info: string;
  /** The claims, linked by `sibling`, in the order of their names. Never empty. */
  first: Claim;
  isGranted = false;
  saved: number;

  /** `locks`: of its names, in their order; at least one. */
  constructor(session: Session, number: RequestNumber, terms: AcquireTerms, locks: readonly Lock[], saved: number) {
    this.session = session;
    this.number = number;
    this.index = terms.index;
    this.mode = terms.mode;
    this.lockDelayMs = terms.lockDelayMs;
    this.maxHoldMs = terms.maxHoldMs;
    this.info = terms.info;
    this.saved = saved;
    let first: Claim | null = null;
    for (let at = locks.length - 1; at >= 0; at -= 1) first = new Claim(this, locks[at] as Lock, first);
    this.first = first as Claim;
  }
}

interface AcquireTerms {
  readonly index: number;
  readonly mode: Mode;
  readonly lockDelayMs: number;
  readonly maxHoldMs: number;
  readonly info: string;
}

/** The place of a claim that has none. */
export const noPlace = -1;

/** One acquire at one name. */
export class Claim {
  readonly acquire: Acquire;
  readonly lock: Lock;
  /** The same acquire's claim of its next name. */
  readonly sibling: Claim | null;
  /** Neighbours in the lock's queue, or among its holders. */
  previous: Claim | null = null;
  next: Claim | null = null;
  /** Where it stands in the queue; null unless it waits. */
  block: QueueBlock | null = null;
  /** 0 unless granted. */
  token: Token = 0;
  /** Of a semaphore, when granted; else `noPlace`. */
  place: number = noPlace;

  constructor(acquire: Acquire, lock: Lock, sibling: Claim | null) {
    this.acquire = acquire;
    this.lock = lock;
    this.sibling = sibling;
  }
}

/** It exists while somebody holds, somebody waits or a delay runs. */
export class Lock {
  readonly name: string;
  /** Places of a semaphore, else 0. */
  readonly slots: number;
  /** Holders in the order of their requests, which is that of their grants. */
  firstHolder: Claim | null = null;
  lastHolder: Claim | null = null;
  holderCount = 0;
  /** Null when nobody waits. */
  queue: WaitQueue | null = null;
  /** By index, rising. Null when none runs. */
  delays: Delay[] | null = null;
  /** Of a semaphore: a bit for each place that is held or delayed (places.ts). */
  places: number[] | null = null;

  constructor(name: string, slots: number) {
    this.name = name;
    this.slots = slots;
  }
}

/**
 * What keeps a lock closed after a hold has ended. All holds of a lock that end in one entry have one delay, the longest of theirs: an
 * endLockDelay knows it by name and index.
 */
export class Delay {
  readonly index: number;
  delayMs: number;
  /** Of the ended hold. */
  readonly mode: Mode;
  /** Closed places of a semaphore. */
  readonly places: number[];
  saved: number;

  constructor(index: number, delayMs: number, mode: Mode, places: number[], saved: number) {
    this.index = index;
    this.delayMs = delayMs;
    this.mode = mode;
    this.places = places;
    this.saved = saved;
  }
}

/** A session that has ended, while its reason is remembered. */
export interface EndedSession {
  readonly id: SessionId;
  readonly reason: LossReason;
  /** The number of its closeSession, whose retry gets the same answer; 0 when it ended otherwise. */
  readonly request: RequestNumber;
}

export function namesOf(acquire: Acquire): string[] {
  const names = [];
  for (let claim: Claim | null = acquire.first; claim !== null; claim = claim.sibling) names.push(claim.lock.name);
  return names;
}
