/**
 * The lease rules (docs/architecture.md, "Time") as a model for the search, over the project's own lease keeper and lock machine. One
 * session and its client. Abstract is what lies between: the log after what is applied (a leader change keeps any prefix of it, and
 * adds a no-op), the quorum rounds, the network, and time, in eighths of the TTL. All times in a state are ages, so the paths have no end.
 *
 * Committed is applied at once, and acknowledgements reach the client at once. Later ones would leave the client with less, not more:
 * what counts is when the keepalive was sent.
 */
import type { Model, Step } from "../search.js";
import { LeaderTable } from "./leader-table.js";
import { lockName, MachineTable, onlySession } from "./machine-table.js";
import type { Applied, MachineState } from "./machine-table.js";
import type { LeaderState, LeaderStep } from "./leader-table.js";
import { keyFor, noop, unitsOf } from "./lease-state.js";
import type { LeaseState } from "./lease-state.js";
import { Judge } from "./judge.js";
import type { LeaseScope, Planted } from "./scope.js";
import { ttlMs, ttlUnits } from "./units.js";

type LeaseStep = Step<LeaseState, string>;
type Steps = Generator<LeaseStep, void, undefined>;

const open = { kind: "openSession", key: "0".repeat(32), ttlMs, info: "" } as const;

export class LeaseModel implements Model<LeaseState, string> {
  readonly initial: LeaseState;
  readonly judge: Judge;
  readonly machines: MachineTable;
  readonly leaders: LeaderTable;
  readonly #scope: LeaseScope;

  constructor(scope: LeaseScope, planted: Planted = {}, hasTwins: boolean = false) {
    this.#scope = scope;
    this.machines = new MachineTable(planted.machine);
    const opened = this.machines.apply(this.machines.empty(), open);
    const session = onlySession(opened.next);
    const comingUnitsMax = scope.flyingUnitsMax;
    this.leaders = new LeaderTable(session, { comingUnitsMax, hasTwins, make: planted.keeper });
    this.judge = new Judge(scope, planted.without ?? []);
    this.initial = this.#begin(opened, session);
  }

  keyFor(state: LeaseState): string {
    return keyFor(state);
  }

  *stepsFrom(state: LeaseState): Steps {
    if (state.machine.silence !== null) {
      yield* this.#client(state);
      yield* this.#leader(state);
      yield* this.#log(state);
      yield* this.#changes(state);
    } else if (state.deposed === null) return;
    yield* this.#deposed(state);
    yield* this.#time(state);
  }

  /** The client holds the lock; its lease runs since it sent openSession. */
  #begin(opened: Applied, session: number): LeaseState {
    const acquire = { kind: "acquire", names: [lockName], mode: "exclusive", slots: 0, wait: true } as const;
    const terms = { lockDelayMs: 0, maxHoldMs: 0, info: "", session, request: 1, settled: 1, seen: [] };
    const acquired = this.machines.apply(opened.next, { ...acquire, ...terms });
    const first = this.leaders.start(this.machines.empty());
    const second = this.leaders.onApplied(first, opened, "openSession").next;
    return {
      leader: this.leaders.onApplied(second, acquired, "acquire").next,
      deposed: null,
      deposedRounds: 0,
      machine: acquired.next,
      tail: [],
      flying: [],
      renewed: 0,
      sent: 0,
      led: 0,
      dead: -1,
      roundAge: 0,
      isDue: false,
      isRoundDue: false,
      isVouched: false,
    };
  }

  *#client(state: LeaseState): Steps {
    const { mode, flyingMax } = this.#scope;
    const { flying, sent, dead } = state;
    for (const [at, age] of flying.entries()) {
      if (mode === "live") break;
      yield step(`the keepalive of age ${age} is lost`, { ...state, flying: flying.toSpliced(at, 1) });
    }
    if (dead >= 0) return;
    if (mode === "dead") yield step("the client dies", { ...state, dead: 0, flying: [] });
    // Once its lease is over by its own clock, it never sends again.
    if (state.renewed >= ttlUnits || flying.length >= flyingMax || sent === 0) return;
    yield step("the client sends a keepalive", { ...state, sent: 0, flying: [0, ...flying] });
  }

  *#leader(state: LeaseState): Steps {
    const { leader, flying } = state;
    if (leader === null) return;
    const transfers = this.#scope.hasTransfers ? [false, true] : [false];
    const isDue = leader.lateUnits >= 0;
    for (const transfer of transfers) {
      const during = transfer ? " during a transfer" : "";
      for (const [at, age] of flying.entries()) {
        for (const decides of isDue ? [false, true] : [false]) {
          const label = `the leader hears the keepalive of age ${age}${decides ? " and decides" : ""}${during}`;
          const made = this.leaders.step(leader, label, { kind: "hear", age, decides, transfer });
          const heard = {
            ...state,
            flying: flying.toSpliced(at, 1),
            isDue: false,
            isRoundDue: false,
            isVouched: false,
          };
          yield* this.#afterLeader(label, heard, leader, made);
        }
      }
      if (!isDue) continue;
      const label = `the leader decides${during}`;
      const made = this.leaders.step(leader, label, { kind: "decide", transfer });
      yield* this.#afterLeader(label, state, leader, made);
    }
    if (leader.rounds === 0) return;
    const label = "a quorum confirms the round";
    const made = this.leaders.step(leader, label, { kind: "confirm" });
    const isVouched = state.isVouched || state.isRoundDue;
    yield* this.#afterLeader(label, { ...state, isVouched, isRoundDue: false }, leader, made, true);
  }

  /** What the keeper asked for, and what it told the client. */
  *#afterLeader(
    label: string,
    before: LeaseState,
    leader: LeaderState,
    made: LeaderStep,
    ended: boolean = false,
  ): Steps {
    const violation = this.judge.ofAsked(before, made);
    const tail = [...before.tail, ...made.proposed];
    if (tail.length > this.#scope.tailMax && violation === null) return;
    const { next } = made;
    const renewed = Math.min(before.renewed, ...made.acknowledged);
    const begins = next.rounds > 0 && (leader.rounds === 0 || ended);
    const state = { ...before, leader: next, tail, renewed };
    const isHeardOut = !next.hasHeard || next.silentUnits >= 4;
    const isDue = state.isDue || (unitsOf(state) >= 8 && isHeardOut);
    const isRoundDue = begins ? isDue : state.isRoundDue && next.rounds > 0;
    const hasProposed = made.proposed.some(({ kind }) => kind === "expireSessions");
    const isVouched = state.isVouched && !hasProposed;
    const roundAge = begins || next.rounds === 0 ? 0 : state.roundAge;
    yield { action: label, state: { ...state, roundAge, isDue, isRoundDue, isVouched }, violation };
  }

  *#log(state: LeaseState): Steps {
    const [entry, ...tail] = state.tail;
    if (entry === undefined) return;
    if (entry === noop) {
      // An older no-op may lie before this leader's own, which is the last one.
      if (tail.includes(noop)) yield step("an older no-op is applied", { ...state, tail });
      else if (state.led >= this.#scope.electionUnits) {
        const leader = this.leaders.start(state.machine);
        yield step("the leader's no-op is applied", { ...state, tail, leader });
      }
      return;
    }
    const applied = this.machines.apply(state.machine, entry);
    const label = `${entry.kind}${entry.kind === "suspectSessions" ? ` ${entry.eighths}` : ""} is applied`;
    const violation = this.judge.ofApplied(state, applied);
    const after: LeaseState = { ...state, tail, machine: applied.next };
    if (applied.next.silence === null) {
      yield { action: label, violation, state: { ...after, leader: null, tail: [], flying: keptFor(state) } };
    } else if (state.leader === null) yield { action: label, state: after, violation };
    else {
      const made = this.leaders.onApplied(state.leader, applied, `${label} ${state.machine.id}`);
      for (const one of this.#afterLeader(label, after, state.leader, made)) {
        yield { ...one, violation: violation ?? one.violation };
      }
    }
  }

  *#changes(state: LeaseState): Steps {
    const { leader, tail } = state;
    if (state.led < this.#scope.unitsPerLeaderMin) return;
    for (let kept = 0; kept <= tail.length && kept < this.#scope.tailMax; kept += 1) {
      const deposed = this.#scope.hasDeposed ? (leader ?? state.deposed) : null;
      const deposedRounds = leader === null ? state.deposedRounds : Math.min(1, leader.rounds);
      yield step(`a new leader keeps ${kept} of ${tail.length} entries`, {
        ...state,
        leader: null,
        deposed,
        deposedRounds: deposed === null ? 0 : deposedRounds,
        tail: [...tail.slice(0, kept), noop],
        led: 0,
        roundAge: 0,
        isDue: false,
        isRoundDue: false,
        isVouched: false,
      });
    }
  }

  /** It proposes what nobody will have; a round that began before its end may still be confirmed to it. */
  *#deposed(state: LeaseState): Steps {
    const { deposed, flying } = state;
    if (deposed === null) return;
    yield step("the deposed leader learns of it", { ...state, deposed: null, deposedRounds: 0 });
    for (const [at, age] of flying.entries()) {
      const label = `the leader hears the keepalive of age ${age}`;
      const made = this.leaders.step(deposed, label, { kind: "hear", age, decides: false, transfer: false });
      yield this.#afterDeposed(`deposed, ${label}`, { ...state, flying: flying.toSpliced(at, 1) }, made);
    }
    if (state.deposedRounds === 0) return;
    const label = "a quorum confirms the round";
    const made = this.leaders.step(deposed, label, { kind: "confirm" });
    yield this.#afterDeposed(`before it has deposed its leader, ${label}`, { ...state, deposedRounds: 0 }, made);
  }

  #afterDeposed(action: string, before: LeaseState, made: LeaderStep): LeaseStep {
    const renewed = Math.min(before.renewed, ...made.acknowledged);
    const state = { ...before, deposed: made.next, renewed };
    return { action, state, violation: this.judge.ofBelief(state) };
  }

  *#time(state: LeaseState): Steps {
    if (!this.#canPass(state)) return;
    yield this.#tick(state, false);
    if (this.#scope.hasStalls && state.leader !== null) yield this.#tick(state, true);
  }

  #canPass(state: LeaseState): boolean {
    const { mode, lateUnitsMax, silentUnitsMax, deposedUnitsMax, roundUnitsMax } = this.#scope;
    const { electionUnits, renewUnits, flyingUnitsMax } = this.#scope;
    const { leader, deposed, flying } = state;
    if (leader !== null && (leader.lateUnits >= lateUnitsMax || leader.silentUnits >= silentUnitsMax)) return false;
    if (deposed !== null && Math.max(deposed.silentUnits, deposed.lateUnits) >= deposedUnitsMax) return false;
    if (leader !== null && leader.rounds > 0 && state.roundAge >= roundUnitsMax) return false;
    if (mode === "safety") return true;
    if (leader === null) return state.led < electionUnits;
    if (state.tail.length > 0 || leader.rounds > 0) return false;
    if (mode === "dead") return flying.length === 0;
    // A client renews at once when it has resumed at a new leader.
    if (!leader.hasHeard && flying.length === 0 && state.sent > 0) return false;
    return state.sent < renewUnits && flying.every((age) => age < flyingUnitsMax);
  }

  #tick(state: LeaseState, stalled: boolean): LeaseStep {
    const { tickUnits, unitsPerLeaderMin, electionUnits, flyingUnitsMax, renewUnits } = this.#scope;
    const action = { kind: "tick", stalled, units: tickUnits } as const;
    const passed = tickUnits === 1 ? "an eighth passes" : `${tickUnits} eighths pass`;
    const label = stalled ? `${passed}, the leader is stuck` : passed;
    const { leader, deposed } = state;
    const plain = { ...action, stalled: false };
    const after: LeaseState = {
      ...state,
      leader: leader && this.leaders.step(leader, label, action).next,
      deposed: deposed && this.leaders.step(deposed, passed, plain).next,
      flying: state.flying.map((age) => age + tickUnits).filter((age) => age <= flyingUnitsMax),
      renewed: Math.min(ttlUnits, state.renewed + tickUnits),
      sent: Math.min(Math.max(1, renewUnits), state.sent + tickUnits),
      led: Math.min(Math.max(unitsPerLeaderMin, electionUnits), state.led + tickUnits),
      roundAge: leader !== null && leader.rounds > 0 ? state.roundAge + tickUnits : 0,
      dead: state.dead < 0 ? -1 : state.dead + tickUnits,
    };
    return { action: label, state: after, violation: this.judge.ofTime(after) };
  }
}

/** When the session has ended, only a deposed leader may still hear. */
function keptFor(state: LeaseState): readonly number[] {
  return state.deposed === null ? [] : state.flying;
}

function step(action: string, state: LeaseState): LeaseStep {
  return { action, state, violation: null };
}

export type { LeaderState, LeaseState, MachineState };
