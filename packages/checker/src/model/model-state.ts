/** What the checker's own lock machine knows. Lists and maps, nothing clever. */
import type { Grant, LossReason, Mode, Outcome } from "../log-words.js";

export interface ModelSession {
  readonly id: number;
  readonly key: string;
  readonly ttlMs: number;
  /** Eighths of the TTL that it has been silent, as the log counts them. */
  silence: number;
  settled: number;
  readonly seen: Set<number>;
  /** Executed, and not known to have been seen by the client. */
  readonly requests: Map<number, ModelRequest>;
  readonly live: Set<ModelAcquire>;
}

export interface ModelRequest {
  readonly number: number;
  /** Null while it waits or holds. */
  outcome: Outcome | null;
  /** Of an acquire that entered the queues or was granted. */
  readonly acquire: ModelAcquire | null;
}

export interface ModelAcquire {
  readonly session: ModelSession;
  readonly number: number;
  /** Of its entry: its place in the order of requests. */
  readonly index: number;
  readonly names: readonly string[];
  readonly mode: Mode;
  /** Places of a semaphore, else 0. */
  readonly slots: number;
  readonly lockDelayMs: number;
  readonly maxHoldMs: number;
  /** Null while it waits. */
  grants: readonly Grant[] | null;
}

export interface ModelDelay {
  readonly index: number;
  readonly mode: Mode;
  delayMs: number;
  /** Of a semaphore. */
  readonly places: number[];
}

/** It exists while somebody holds it, somebody waits, or a lock-delay runs. */
export interface ModelLock {
  readonly name: string;
  readonly slots: number;
  readonly holders: ModelAcquire[];
  readonly queue: ModelAcquire[];
  readonly delays: ModelDelay[];
}

export interface EndedSession {
  readonly reason: LossReason;
  /** Of the closeSession that ended it, else 0. */
  readonly request: number;
  /** How many ended before it. */
  readonly number: number;
}

/** What keeps a request for `mode` from a lock; null: nothing. The waiters of the lock are another matter. */
export function obstacleAt(lock: ModelLock | undefined, mode: Mode): "held" | "delayed" | null {
  if (lock === undefined) return null;
  if (mode === "slot") {
    if (freePlaces(lock, lock.slots).length > 0) return null;
    return lock.holders.length > 0 ? "held" : "delayed";
  }
  if (lock.holders.some((holder) => mode === "exclusive" || holder.mode === "exclusive")) return "held";
  if (lock.delays.some((delay) => mode === "exclusive" || delay.mode === "exclusive")) return "delayed";
  return null;
}

/** Places that nobody holds and no lock-delay closes. */
export function freePlaces(lock: ModelLock | undefined, slots: number): number[] {
  const used = new Set<number | null | undefined>(lock?.delays.flatMap(({ places }) => places));
  for (const holder of lock?.holders ?? []) used.add(grantAt(holder, lock?.name ?? "")?.slot);
  return Array.from({ length: slots }, (_, place) => place).filter((place) => !used.has(place));
}

export function grantAt(acquire: ModelAcquire, name: string): Grant | undefined {
  return acquire.grants?.find((grant) => grant.name === name);
}

/** Compared by code units, each once. */
export function sortedNames(names: readonly string[]): readonly string[] {
  return [...new Set(names)].sort();
}
