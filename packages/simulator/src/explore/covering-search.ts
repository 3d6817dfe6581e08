/**
 * A search for models in which some states can do all that others can. Of two such states only the abler one is explored, and the ablest
 * are explored first, so most of the others never are. It finds a violation exactly if the plain search does, but not by a shortest path.
 */
import type { Bounds, Figures, Model, Result, Violation } from "./search.js";

export interface CoveringModel<State, Action> extends Model<State, Action> {
  /** States of different families have nothing to do with each other. Takes the place of keyFor. */
  familyFor(state: State): string;
  /** For states of one family: whether `abler` can do all that `state` can. Of itself, yes. */
  covers(abler: State, state: State): boolean;
  /** A whole number: greater for a state that covers another than for that one. */
  rankFor(state: State): number;
}

interface Met<State> {
  readonly state: State;
  readonly number: number;
  readonly depth: number;
  isCovered: boolean;
}

const statesPerLook = 64;

export function exploreCovering<State, Action>(
  model: CoveringModel<State, Action>,
  bounds: Bounds,
): Result<State, Action> {
  return new CoveringSearch(model, bounds).run();
}

class CoveringSearch<State, Action> {
  readonly #model: CoveringModel<State, Action>;
  readonly #bounds: Bounds;
  /** The states of each family that no other covers. */
  readonly #families = new Map<string, Met<State>[]>();
  /** By rank: what waits for its turn, first come, first served. */
  readonly #waiting: { readonly list: Met<State>[]; head: number }[] = [];
  readonly #parents: number[] = [0];
  readonly #actions: (Action | null)[] = [null];
  #states = 0;
  #explored = 0;
  #depth = 0;
  #ends = 0;
  #violation: Violation<State, Action> | null = null;

  constructor(model: CoveringModel<State, Action>, bounds: Bounds) {
    this.#model = model;
    this.#bounds = bounds;
  }

  run(): Result<State, Action> {
    this.#meet({ state: this.#model.initial, number: 0, depth: 0, isCovered: false });
    let isCut = false;
    for (let met = this.#next(); met !== null && !isCut; met = isCut ? null : this.#next()) {
      isCut = this.#isOver() || !this.#exploreFrom(met);
    }
    return { ...this.#figures(), isComplete: !isCut, violation: this.#violation };
  }

  #exploreFrom(from: Met<State>): boolean {
    this.#explored += 1;
    let isEnd = true;
    for (const { action, state, violation } of this.#model.stepsFrom(from.state)) {
      isEnd = false;
      this.#states += 1;
      if (violation !== null) {
        this.#violation = { rule: violation, path: [...this.#pathTo(from.number), action], state };
        return false;
      }
      const met: Met<State> = { state, number: this.#parents.length, depth: from.depth + 1, isCovered: false };
      if (!this.#meet(met)) continue;
      this.#parents.push(from.number);
      this.#actions.push(action);
    }
    if (isEnd) this.#ends += 1;
    return true;
  }

  /** False when another state covers it. */
  #meet(met: Met<State>): boolean {
    const model = this.#model;
    const name = model.familyFor(met.state);
    const family = this.#families.get(name) ?? [];
    if (family.some((other) => model.covers(other.state, met.state))) return false;
    const left: Met<State>[] = [];
    for (const other of family) {
      if (model.covers(met.state, other.state)) other.isCovered = true;
      else left.push(other);
    }
    left.push(met);
    this.#families.set(name, left);
    const rank = model.rankFor(met.state);
    while (this.#waiting.length <= rank) this.#waiting.push({ list: [], head: 0 });
    this.#waiting[rank]?.list.push(met);
    this.#depth = Math.max(this.#depth, met.depth);
    return true;
  }

  #next(): Met<State> | null {
    for (let rank = this.#waiting.length - 1; rank >= 0; rank -= 1) {
      const queue = this.#waiting[rank];
      for (; queue !== undefined && queue.head < queue.list.length; ) {
        const met = queue.list[queue.head];
        queue.head += 1;
        if (met !== undefined && !met.isCovered) return met;
      }
      this.#waiting.length = rank;
    }
    return null;
  }

  #isOver(): boolean {
    if (this.#parents.length >= this.#bounds.statesMax) return true;
    return this.#explored % statesPerLook === 0 && this.#bounds.isOver?.() === true;
  }

  #pathTo(number: number): Action[] {
    const path: Action[] = [];
    for (let at = number; at > 0; at = this.#parents[at] ?? 0) path.push(this.#actions[at] as Action);
    return path.reverse();
  }

  #figures(): Figures {
    return { states: this.#states, distinct: this.#parents.length, depth: this.#depth, ends: this.#ends };
  }
}
