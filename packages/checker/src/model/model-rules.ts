/** How the checker's own lock machine grants, ends and tells: the rules that its commands (lock-model.ts) are made of. */
import type { Ledger } from "../ledger.js";
import type { Effect, Grant, LossReason, NumberedRequest, Outcome, Rejection } from "../log-words.js";
import { freePlaces, grantAt, obstacleAt } from "./model-state.js";
import type { EndedSession, ModelAcquire, ModelDelay, ModelLock, ModelSession } from "./model-state.js";
import { Reported } from "./reported.js";

export class ModelRules {
  readonly sessions: Map<number, ModelSession> = new Map();
  readonly locks: Map<string, ModelLock> = new Map();
  readonly ended: Map<number, EndedSession> = new Map();
  protected readonly byKey: Map<string, ModelSession> = new Map();
  protected readonly ledger: Ledger;
  protected index = 0;
  protected effects: Effect[] = [];
  protected reported: Reported = new Reported(null);
  protected touched: Set<string> = new Set();
  protected begun: { readonly name: string; readonly delay: ModelDelay }[] = [];

  constructor(ledger: Ledger) {
    this.ledger = ledger;
  }

  protected begin(index: number, reported: Reported): void {
    this.index = index;
    this.effects = [];
    this.reported = reported;
    this.touched = new Set();
    this.begun = [];
  }

  /** All that the command ended is over: now the delays are told, and what is free is granted. */
  protected finish(): readonly Effect[] {
    for (const { name, delay } of this.begun) {
      this.effects.push({ kind: "lockDelayBegan", name, index: this.index, delayMs: delay.delayMs });
      this.ledger.onDelayed(name, this.index, delay.delayMs);
    }
    this.grantWaiters();
    for (const name of this.touched) this.removeIfIdle(name);
    return this.effects;
  }

  // Granting: the only place where a hold begins.

  /** Nothing stands before it at this name. */
  protected isOpen(name: string, acquire: ModelAcquire): boolean {
    const lock = this.locks.get(name);
    const first = lock?.queue[0];
    return (first === undefined || first === acquire) && obstacleAt(lock, acquire.mode) === null;
  }

  /** Of the touched locks, in the order of the requests, until nothing more can be granted. */
  private grantWaiters(): void {
    for (;;) {
      let oldest: ModelAcquire | null = null;
      for (const name of this.touched) {
        const first = this.locks.get(name)?.queue[0];
        if (first === undefined || (oldest !== null && oldest.index <= first.index)) continue;
        if (first.names.every((each) => this.isOpen(each, first))) oldest = first;
      }
      if (oldest === null) return;
      this.grant(oldest);
      for (const name of oldest.names) this.touched.add(name);
    }
  }

  protected grant(acquire: ModelAcquire): void {
    const { session, number, names, mode, maxHoldMs } = acquire;
    const said = this.reported.outcomeOf(session.id, number);
    const grants = names.map((name): Grant => {
      const lock = this.lockFor(name, acquire.slots);
      if (mode === "slot") {
        const free = freePlaces(lock, lock.slots);
        const wanted = said?.kind === "granted" ? said.grants.find((grant) => grant.name === name)?.slot : undefined;
        return { name, token: this.index, slot: free.find((place) => place === wanted) ?? free[0] ?? null };
      }
      const running = lock.holders[0];
      const token = (running === undefined ? undefined : grantAt(running, name)?.token) ?? this.index;
      return { name, token, slot: null };
    });
    acquire.grants = grants;
    for (const name of names) {
      const lock = this.lockFor(name, acquire.slots);
      remove(lock.queue, acquire);
      lock.holders.push(acquire);
    }
    this.say(acquire, { kind: "granted", grants, maxHoldMs });
    const token = grants[0]?.token ?? 0;
    this.effects.push({ kind: "holdBegan", session: session.id, of: number, token, maxHoldMs });
    this.ledger.onHeld({
      session: session.id,
      request: number,
      index: this.index,
      mode,
      grants,
      maxHoldMs,
      end: null,
    });
  }

  // Endings.

  protected endSession(session: ModelSession, reason: "expired" | "closed", request: number): void {
    for (const acquire of [...session.live]) {
      const outcome: Outcome = { kind: "lost", reason, index: this.index };
      this.say(acquire, outcome);
      this.takeOut(acquire, reason, reason === "closed" ? 0 : acquire.lockDelayMs);
    }
    this.sessions.delete(session.id);
    this.byKey.delete(session.key);
    this.ended.set(session.id, { reason, request, number: this.ended.size });
    this.effects.push({ kind: "sessionEnded", session: session.id, reason });
    this.ledger.onEnded(session.id, this.index, reason);
  }

  protected lose(hold: ModelAcquire, reason: LossReason, delayMs: number): void {
    const outcome: Outcome = { kind: "lost", reason, index: this.index };
    this.say(hold, outcome);
    this.takeOut(hold, reason, delayMs);
    const request = hold.session.requests.get(hold.number);
    if (request !== undefined) request.outcome = outcome;
  }

  /** A hold leaves its locks, and its lock-delays begin; a waiter leaves its queues. */
  protected takeOut(acquire: ModelAcquire, how: "released" | LossReason, delayMs: number): void {
    acquire.session.live.delete(acquire);
    for (const name of acquire.names) {
      const lock = this.lockFor(name, acquire.slots);
      this.touched.add(name);
      remove(lock.queue, acquire);
      remove(lock.holders, acquire);
      if (acquire.grants !== null && delayMs > 0) this.beginDelay(lock, acquire, delayMs);
    }
    if (acquire.grants === null) return;
    this.ledger.onHoldEnded(acquire.session.id, acquire.number, this.index, how);
  }

  /** Holds of one lock that end in one entry share a delay, the longest of theirs. */
  private beginDelay(lock: ModelLock, acquire: ModelAcquire, delayMs: number): void {
    let delay = lock.delays.find((each) => each.index === this.index);
    if (delay === undefined) {
      delay = { index: this.index, mode: acquire.mode, delayMs, places: [] };
      lock.delays.push(delay);
      this.begun.push({ name: lock.name, delay });
    }
    delay.delayMs = Math.max(delay.delayMs, delayMs);
    const slot = grantAt(acquire, lock.name)?.slot ?? null;
    if (slot !== null) delay.places.push(slot);
  }

  protected lockFor(name: string, slots: number): ModelLock {
    let lock = this.locks.get(name);
    if (lock === undefined) {
      lock = { name, slots, holders: [], queue: [], delays: [] };
      this.locks.set(name, lock);
    }
    return lock;
  }

  private removeIfIdle(name: string): void {
    const lock = this.locks.get(name);
    if (lock !== undefined && lock.holders.length + lock.queue.length + lock.delays.length === 0)
      this.locks.delete(name);
  }

  // Words.

  /** The request is over at once; its outcome is kept. */
  protected record(session: ModelSession, { request }: { request: number; session: number }, outcome: Outcome): void {
    session.requests.set(request, { number: request, outcome, acquire: null });
    this.answer({ session: session.id, request }, outcome);
    this.ledger.onOutcome(session.id, request, this.index, outcome);
  }

  protected say({ session, number }: ModelAcquire, outcome: Outcome): void {
    this.answer({ session: session.id, request: number }, outcome);
    this.ledger.onOutcome(session.id, number, this.index, outcome);
  }

  protected answer({ session, request }: { session: number; request: number }, outcome: Outcome): void {
    this.effects.push({ kind: "outcome", session, request, outcome });
  }

  protected reject({ session, request }: NumberedRequest, rejection: Rejection): void {
    this.effects.push({ kind: "rejected", session, request, rejection });
  }
}

function remove<Item>(list: Item[], item: Item): void {
  const at = list.indexOf(item);
  if (at >= 0) list.splice(at, 1);
}
