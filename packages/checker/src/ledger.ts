/**
 * What came of every request, session, hold and lock-delay, by the committed log: the truth that everything else is measured against.
 * Ends before the first entry that a node's machine applied wrongly (see rules/log-order.ts).
 */
import type { Grant, LossReason, Mode, Outcome } from "./log-words.js";
import { outcomeText, placeText, requestText } from "./texts.js";

export interface LedgerSession {
  readonly session: number;
  readonly key: string;
  readonly ttlMs: number;
  end: { readonly index: number; readonly reason: LossReason } | null;
}

export interface LedgerRequest {
  readonly session: number;
  readonly request: number;
  /** Each change of its outcome, in log order. */
  readonly outcomes: { readonly index: number; readonly outcome: Outcome; readonly text: string }[];
  hold: LedgerHold | null;
}

export interface LedgerHold {
  readonly session: number;
  readonly request: number;
  readonly index: number;
  readonly mode: Mode;
  readonly grants: readonly Grant[];
  readonly maxHoldMs: number;
  end: { readonly index: number; readonly how: "released" | LossReason } | null;
}

export interface LedgerDelay {
  readonly name: string;
  readonly index: number;
  readonly delayMs: number;
  endIndex: number | null;
}

export class Ledger {
  readonly sessions: Map<number, LedgerSession> = new Map();
  readonly requests: Map<string, LedgerRequest> = new Map();
  readonly holds: LedgerHold[] = [];
  readonly delays: LedgerDelay[] = [];
  /** The last entry judged; later ones are not known here. */
  lastIndex = 0;
  private readonly holdsByGrant: Map<string, LedgerHold[]> = new Map();
  private readonly running: Map<string, LedgerDelay> = new Map();

  requestFor(session: number, request: number): LedgerRequest | null {
    return this.requests.get(requestText(session, request)) ?? null;
  }

  /** All that ever bore this token there: several for a shared generation. */
  holdsWith(name: string, slot: number | null, token: number): readonly LedgerHold[] {
    return this.holdsByGrant.get(`${placeText(name, slot)}@${token}`) ?? [];
  }

  onOpened(session: number, key: string, ttlMs: number): void {
    this.sessions.set(session, { session, key, ttlMs, end: null });
  }

  onEnded(session: number, index: number, reason: LossReason): void {
    const known = this.sessions.get(session);
    if (known !== undefined) known.end = { index, reason };
  }

  onOutcome(session: number, request: number, index: number, outcome: Outcome): void {
    const key = requestText(session, request);
    let known = this.requests.get(key);
    if (known === undefined) {
      known = { session, request, outcomes: [], hold: null };
      this.requests.set(key, known);
    }
    known.outcomes.push({ index, outcome, text: outcomeText(outcome) });
  }

  onHeld(hold: LedgerHold): void {
    this.holds.push(hold);
    const request = this.requests.get(requestText(hold.session, hold.request));
    if (request !== undefined) request.hold = hold;
    for (const { name, slot, token } of hold.grants) {
      const key = `${placeText(name, slot)}@${token}`;
      const others = this.holdsByGrant.get(key);
      if (others === undefined) this.holdsByGrant.set(key, [hold]);
      else others.push(hold);
    }
  }

  onHoldEnded(session: number, request: number, index: number, how: "released" | LossReason): void {
    const hold = this.requestFor(session, request)?.hold ?? null;
    if (hold !== null) hold.end = { index, how };
  }

  onDelayed(name: string, index: number, delayMs: number): void {
    const delay: LedgerDelay = { name, index, delayMs, endIndex: null };
    this.delays.push(delay);
    this.running.set(`${index} ${name}`, delay);
  }

  onDelayEnded(name: string, index: number, endIndex: number): void {
    const delay = this.running.get(`${index} ${name}`);
    if (delay === undefined) return;
    delay.endIndex = endIndex;
    this.running.delete(`${index} ${name}`);
  }
}
