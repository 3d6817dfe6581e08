/**
 * The tables of the machine. A single Map of a million entries stalls for 430 ms when it doubles; so names, keys and ids are spread over
 * shards of some thousands each.
 */
import { assert } from "./assert.js";
import { CopyOnWrite } from "./copy-on-write.js";
import { DurationCounts } from "./duration-counts.js";
import { EndedSessions } from "./ended-sessions.js";
import { hashText } from "./hash.js";
import { endedSessionsMax } from "./limits.js";
import { Lock } from "./records.js";
import type { Acquire, Session } from "./records.js";
import type { LossReason, PublicKey, SessionId, SigningKey } from "./types.js";
import { firstVersion } from "./versions.js";

const shardCount = 256;

class LockShard {
  readonly byName: Map<string, Lock> = new Map();
  /** Locks with running delays. */
  readonly delayed: Set<Lock> = new Set();
}

class SessionShard {
  readonly byId: Map<SessionId, Session> = new Map();
  readonly byKey: Map<string, Session> = new Map();
  /** Granted acquires of sessions in `byId` that have a maxHold. */
  readonly timed: Set<Acquire> = new Set();
}

export class State {
  readonly cow: CopyOnWrite = new CopyOnWrite();
  readonly ended: EndedSessions = new EndedSessions(endedSessionsMax);
  clusterVersion: number = firstVersion;
  /** Null before the first one is set. */
  signingKey: SigningKey | null = null;
  /** The newest first. */
  formerKeys: readonly PublicKey[] = [];
  /** Of the last applied command. */
  lastIndex = 0;
  /** Where a restore began this cluster (restoring.ts): every session up to here has ended. 0 when none did. */
  restoredIndex = 0;
  /** Since that restore nothing is granted, for so long in all; 0 when it is over. */
  closedMs = 0;
  sessionCount = 0;
  lockCount = 0;
  /** Granted acquires, not names. */
  holdCount = 0;
  /** Waiting acquires, not names. */
  waiterCount = 0;
  /** Of the sessions. */
  readonly ttls: DurationCounts = new DurationCounts();
  /** What holds ask for, if they end otherwise than by a release. */
  readonly holdDelays: DurationCounts = new DurationCounts();
  /** Running lock-delays, in full. */
  readonly runningDelays: DurationCounts = new DurationCounts();
  readonly lockShards: readonly LockShard[] = Array.from({ length: shardCount }, () => new LockShard());
  readonly sessionShards: readonly SessionShard[] = Array.from({ length: shardCount }, () => new SessionShard());

  lockFor(name: string): Lock | null {
    return this.lockShard(name).byName.get(name) ?? null;
  }

  addLock(name: string, slots: number): Lock {
    const lock = new Lock(name, slots);
    this.lockShard(name).byName.set(name, lock);
    this.lockCount += 1;
    return lock;
  }

  /** A record vanishes when nobody holds, nobody waits and no delay runs. */
  removeLockIfIdle(lock: Lock): void {
    if (lock.holderCount > 0 || lock.queue !== null || lock.delays !== null) return;
    const isRemoved = this.lockShard(lock.name).byName.delete(lock.name);
    assert(isRemoved, "an idle lock is removed once");
    this.lockCount -= 1;
  }

  noteDelays(lock: Lock): void {
    const { delayed } = this.lockShard(lock.name);
    if (lock.delays === null) delayed.delete(lock);
    else delayed.add(lock);
  }

  sessionFor(id: SessionId): Session | null {
    return this.sessionShard(id)?.byId.get(id) ?? null;
  }

  sessionWithKey(key: string): Session | null {
    return this.keyShard(key).byKey.get(key) ?? null;
  }

  addSession(session: Session): void {
    const shard = this.sessionShard(session.id);
    assert(shard !== null, "a session's id is an index");
    shard.byId.set(session.id, session);
    this.keyShard(session.key).byKey.set(session.key, session);
    this.sessionCount += 1;
    this.ttls.add(session.ttlMs);
  }

  removeSession(session: Session): void {
    this.sessionShard(session.id)?.byId.delete(session.id);
    this.keyShard(session.key).byKey.delete(session.key);
    this.sessionCount -= 1;
    this.ttls.remove(session.ttlMs);
  }

  /** Why a session has ended; null when it lives, never was, or ended long ago. */
  endReason(id: SessionId): LossReason | null {
    return this.ended.find(id)?.reason ?? (id <= this.restoredIndex ? "restored" : null);
  }

  /** Sessions, locks and delays are gone. What is set for the whole cluster stays, and why sessions ended before. */
  endEverything(): void {
    assert(!this.cow.isActive, "no snapshot of it is being taken");
    for (const { byId, byKey, timed } of this.sessionShards) for (const table of [byId, byKey, timed]) table.clear();
    for (const { byName, delayed } of this.lockShards) for (const table of [byName, delayed]) table.clear();
    for (const durations of [this.ttls, this.holdDelays, this.runningDelays]) durations.clear();
    this.sessionCount = 0;
    this.lockCount = 0;
    this.holdCount = 0;
    this.waiterCount = 0;
  }

  noteHold(acquire: Acquire): void {
    this.holdCount += 1;
    acquire.session.holds += 1;
    if (acquire.lockDelayMs > 0) this.holdDelays.add(acquire.lockDelayMs);
    if (acquire.maxHoldMs > 0) this.sessionShard(acquire.session.id)?.timed.add(acquire);
  }

  noteHoldEnded(acquire: Acquire): void {
    this.holdCount -= 1;
    acquire.session.holds -= 1;
    if (acquire.lockDelayMs > 0) this.holdDelays.remove(acquire.lockDelayMs);
    if (acquire.maxHoldMs > 0) this.sessionShard(acquire.session.id)?.timed.delete(acquire);
  }

  noteWait(acquire: Acquire): void {
    this.waiterCount += 1;
    acquire.session.waits += 1;
  }

  noteWaitEnded(acquire: Acquire): void {
    this.waiterCount -= 1;
    acquire.session.waits -= 1;
  }

  private lockShard(name: string): LockShard {
    return this.lockShards[hashText(name) % shardCount] as LockShard;
  }

  private keyShard(key: string): SessionShard {
    return this.sessionShards[hashText(key) % shardCount] as SessionShard;
  }

  /** Null for what can't be an index. */
  private sessionShard(id: SessionId): SessionShard | null {
    return this.sessionShards[id % shardCount] ?? null;
  }
}
