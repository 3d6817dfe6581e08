/**
 * One leader's time in office: the real lease keeper behind ports that keep what it asks for, driven as a turn drives it. A round in
 * flight and one gathering, as in the core (thesis 6.4).
 */
import type { Command, Effect, SessionId } from "@holdfast/lock";
import type { LeaseKeeper, LeaseKeeperHost, LeaseSource } from "@holdfast/server/parts";
import { describeKeeper } from "./keeper-key.js";
import { unitMs } from "./units.js";

export type Keeper = Pick<
  LeaseKeeper,
  "start" | "onKeepalive" | "onEffects" | "flush" | "decide" | "noteStall" | "nextDeadlineMs"
>;

/** `transfer`: one is on, and comes to nothing; what is proposed is refused meanwhile, and rounds fail. Ages in units. */
export type LeaderAction =
  | { readonly kind: "start"; readonly source: LeaseSource; readonly label: string }
  | { readonly kind: "effects"; readonly effects: readonly Effect[] }
  | { readonly kind: "hear"; readonly age: number; readonly decides: boolean; readonly transfer: boolean }
  | { readonly kind: "decide"; readonly transfer: boolean }
  | { readonly kind: "confirm" }
  | { readonly kind: "tick"; readonly stalled: boolean; readonly units: number };

/** Its clock begins here. Keepalives bear the time they were sent as their number, which must not fall below 0. */
const startUnits = 1_000;
/** The keeper's word for "now" is a deadline of 0. */
const lateUnitsCap = 32;

interface Gathered {
  readonly label: string;
  /** Highest keepalive that it may acknowledge. */
  readonly number: number;
  readonly onReady: () => void;
  readonly onFailed: () => void;
}

export class LeaderRun implements LeaseKeeperHost {
  proposed: Command[] = [];
  /** Ages of the keepalives acknowledged. */
  acknowledged: number[] = [];
  readonly #keeper: Keeper;
  readonly #session: SessionId;
  readonly #comingUnitsMax: number;
  #now = startUnits;
  #stalledMs = 0;
  #heardAt = startUnits;
  #hasHeard = false;
  #lastHeard = -1;
  #confirmed = -1;
  #acknowledged = -1;
  #phase = "";
  #transfers = false;
  #gathered: Gathered[] = [];
  #refused: (() => void)[] = [];
  #rounds: (readonly Gathered[])[] = [];

  constructor(make: (host: LeaseKeeperHost) => Keeper, session: SessionId, comingUnitsMax: number) {
    this.#keeper = make(this);
    this.#session = session;
    this.#comingUnitsMax = comingUnitsMax;
  }

  perform(action: LeaderAction): void {
    const nowMs = this.#now * unitMs;
    this.proposed = [];
    this.acknowledged = [];
    this.#phase = action.kind;
    switch (action.kind) {
      case "start":
        this.#keeper.start(action.source, nowMs);
        return;
      case "effects":
        this.#hasHeard ||= action.effects.some(({ kind }) => kind === "sessionOpened");
        this.#keeper.onEffects(action.effects, nowMs);
        break;
      case "hear":
        this.#transfers = action.transfer;
        this.#hear(action.age, nowMs);
        if (action.decides) this.#decide(nowMs);
        break;
      case "decide":
        this.#transfers = action.transfer;
        this.#decide(nowMs);
        break;
      case "confirm":
        for (const { number, onReady } of this.#rounds.shift() ?? []) {
          this.#confirmed = Math.max(this.#confirmed, number);
          onReady();
        }
        break;
      case "tick":
        this.#now += action.units;
        if (action.stalled) {
          this.#keeper.noteStall(action.units * unitMs);
          this.#stalledMs += action.units * unitMs;
        }
        return;
    }
    this.#advance();
    this.#transfers = false;
  }

  // LeaseKeeperHost.

  propose(command: Command, onRefused: () => void): void {
    if (this.#transfers) this.#refused.push(onRefused);
    else this.proposed.push(command);
  }

  gather(onReady: () => void, onFailed: () => void): void {
    const number = this.#phase === "decide" ? -1 : this.#lastHeard;
    this.#gathered.push({ label: this.#phase, number, onReady, onFailed });
  }

  gatherExpiry(onReady: () => void, onFailed: () => void): void {
    this.gather(onReady, onFailed);
  }

  acknowledge(_session: SessionId, number: number): void {
    this.acknowledged.push(this.#ageOf(number));
    this.#acknowledged = Math.max(this.#acknowledged, number);
  }

  // What the search looks at.

  get rounds(): number {
    return this.#rounds.length;
  }

  /** Heard out on the lease clock, in units. */
  get silentUnits(): number {
    return this.#now - this.#stalledMs / unitMs - this.#heardAt;
  }

  /** In this leader's term. */
  get hasHeard(): boolean {
    return this.#hasHeard;
  }

  /** Since when there is something to decide, in units; below 0: not yet. */
  get lateUnits(): number {
    const dueMs = this.#keeper.nextDeadlineMs();
    return Math.min(lateUnitsCap, Math.floor((this.#now * unitMs - dueMs) / unitMs));
  }

  /** All that bears on what can come, with times and keepalives as ages. */
  get key(): string {
    const rounds = this.#rounds.map((round) => round.map(({ label, number }) => ({ label, number })));
    const facts = { keeper: this.#keeper, rounds, silent: String(this.silentUnits), heard: this.#hasHeard };
    return describeKeeper(facts, {
      leaseNowMs: this.#now * unitMs - this.#stalledMs,
      ageOf: (number) => this.#ageOf(number),
      confirmed: this.#confirmed,
      acknowledged: this.#acknowledged,
      comingUnitsMax: this.#comingUnitsMax,
    });
  }

  #ageOf(number: number): number {
    return this.#now - number;
  }

  #hear(age: number, nowMs: number): void {
    this.#lastHeard = this.#now - age;
    this.#heardAt = this.#now - this.#stalledMs / unitMs;
    this.#hasHeard = true;
    this.#keeper.onKeepalive(this.#session, this.#lastHeard, nowMs);
  }

  #decide(nowMs: number): void {
    this.#phase = "decide";
    this.#keeper.decide(nowMs);
  }

  /** As a turn's `advance`: what is refused or fails is told after the flush, and flushed again. */
  #advance(): void {
    for (;;) {
      this.#phase = "flush";
      this.#keeper.flush();
      const refused = this.#refused;
      this.#refused = [];
      const gathered = this.#gathered;
      this.#gathered = [];
      const failed = this.#transfers ? [...this.#rounds.flat(), ...gathered] : [];
      if (this.#transfers) this.#rounds = [];
      else this.#begin(gathered);
      for (const onRefused of refused) onRefused();
      for (const { onFailed } of failed) onFailed();
      if (refused.length === 0 && failed.length === 0) return;
    }
  }

  #begin(gathered: readonly Gathered[]): void {
    if (gathered.length === 0) return;
    const [inFlight, waiting] = this.#rounds;
    if (inFlight === undefined) this.#rounds = [gathered];
    else this.#rounds = [inFlight, [...(waiting ?? []), ...gathered]];
  }
}
