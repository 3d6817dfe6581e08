/** The rules that every step of the lease model is held against. */
import type { LeaderStep } from "./leader-table.js";
import { isSuspect, unitsOf } from "./lease-state.js";
import type { LeaseState } from "./lease-state.js";
import { isHeld } from "./machine-table.js";
import type { Applied } from "./machine-table.js";
import { rules } from "./scope.js";
import type { LeaseScope, Rule } from "./scope.js";
import { ttlUnits } from "./units.js";

export class Judge {
  /** The longest time from a client's death to its session's end, in units; -1: none died. */
  longestDead = -1;
  /** How many ends, acknowledgements and refused expiries were judged: none would mean that nothing was tried. */
  readonly judged = { ends: 0, acknowledgements: 0, refusedExpiries: 0 };
  readonly #scope: LeaseScope;
  readonly #without: readonly Rule[];

  constructor(scope: LeaseScope, without: readonly Rule[]) {
    this.#scope = scope;
    this.#without = without;
  }

  /** What the serving leader did in one turn; `before` as of its begin. */
  ofAsked(before: LeaseState, made: LeaderStep): string | null {
    let broken: string | null = null;
    if (made.acknowledged.length > 0) {
      this.judged.acknowledgements += 1;
      const isSuspected = (before.machine.silence ?? 0) > 0 || before.tail.some(isSuspect);
      if (isSuspected) broken = this.#broken("suspected");
    }
    return broken ?? this.#ofExpiries(before, made);
  }

  ofApplied(before: LeaseState, { next, effects }: Applied): string | null {
    if (effects.some(({ kind }) => kind === "expiryRefused")) this.judged.refusedExpiries += 1;
    if (next.silence !== null) return null;
    this.judged.ends += 1;
    if (before.dead >= 0) this.longestDead = Math.max(this.longestDead, before.dead);
    if (before.renewed < ttlUnits) {
      const broken = this.#broken("early");
      if (broken !== null) return broken;
    }
    if (this.#scope.mode === "live") return this.#broken("lost");
    if (before.machine.silence === 0) return this.#broken("conditional");
    return isHeld(next) ? this.#broken("held") : null;
  }

  /** A deposed leader has told the client something. */
  ofBelief(state: LeaseState): string | null {
    return state.machine.silence === null && state.renewed < ttlUnits ? this.#broken("early") : null;
  }

  ofTime(state: LeaseState): string | null {
    const { mode, endUnitsMax } = this.#scope;
    if (mode === "dead" && state.dead > endUnitsMax) return this.#broken("immortal");
    return mode === "live" && state.renewed >= ttlUnits ? this.#broken("lost") : null;
  }

  #ofExpiries(before: LeaseState, made: LeaderStep): string | null {
    const at = made.proposed.findIndex(({ kind }) => kind === "expireSessions");
    if (at < 0) return null;
    const units = unitsOf({ machine: before.machine, tail: [...before.tail, ...made.proposed.slice(0, at)] });
    // None: a late commit brought a renewal for an old keepalive after the last suspicion, and the expiry will be refused.
    if (units > 0 && units < 8) return this.#broken("counted");
    return before.isVouched ? null : this.#broken("round");
  }

  #broken(rule: Rule): string | null {
    return this.#without.includes(rule) ? null : rules[rule];
  }
}
