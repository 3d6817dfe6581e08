/**
 * A search for models in which states can be merged: many that differ in little are gone through as one that can do all that any of them
 * can. What is reached is reached, and what could break a rule breaks it; so when no rule is broken here, none can be. The price: a merged
 * state may do what none of its states can do alone, and a violation that needs this is none. So a violation's path has to be tried.
 */
import type { Bounds, Figures, Model, Result, Violation } from "./search.js";

export interface MergingModel<State, Action> extends Model<State, Action> {
  /** States with one group are merged. Takes the place of keyFor. */
  groupFor(state: State): string;
  /** For states of one group: a state that can do all that either can; null when `known` can. */
  merge(known: State, state: State): { readonly state: State; readonly violation: string | null } | null;
  /** A whole number: the less, the sooner a state is explored. When successors have more, few groups are explored more than once. */
  progressOf(state: State): number;
}

interface Group<State, Action> {
  /** All that was met of the group, merged. */
  state: State;
  /** From where and how the first of its states was met. */
  readonly parent: Group<State, Action> | null;
  readonly action: Action | null;
  readonly depth: number;
  isWaiting: boolean;
}

const groupsPerLook = 64;

/** The result's distinct states are groups. */
export function exploreMerging<State, Action>(
  model: MergingModel<State, Action>,
  bounds: Bounds,
): Result<State, Action> {
  return new MergingSearch(model, bounds).run();
}

class MergingSearch<State, Action> {
  readonly #model: MergingModel<State, Action>;
  readonly #bounds: Bounds;
  readonly #groups = new Map<string, Group<State, Action>>();
  /** By progress: what waits for its turn, last come, first served. */
  readonly #waiting: Group<State, Action>[][] = [];
  /** No group with less progress waits. */
  #leastProgress = 0;
  #states = 0;
  #explored = 0;
  #depth = 0;
  #ends = 0;
  #violation: Violation<State, Action> | null = null;

  constructor(model: MergingModel<State, Action>, bounds: Bounds) {
    this.#model = model;
    this.#bounds = bounds;
  }

  run(): Result<State, Action> {
    this.#add(this.#model.groupFor(this.#model.initial), this.#model.initial, null, null);
    let isCut = false;
    for (let group = this.#next(); group !== null; group = this.#next()) {
      isCut = this.#isOver() || !this.#exploreFrom(group);
      if (isCut) break;
    }
    return { ...this.#figures(), isComplete: !isCut, violation: this.#violation };
  }

  /** False when a rule is broken. */
  #exploreFrom(from: Group<State, Action>): boolean {
    this.#explored += 1;
    let isEnd = true;
    for (const { action, state, violation } of this.#model.stepsFrom(from.state)) {
      isEnd = false;
      this.#states += 1;
      const rule = violation ?? this.#meet(state, from, action);
      if (rule !== null) {
        this.#violation = { rule, path: [...pathTo(from), action], state };
        return false;
      }
    }
    if (isEnd) this.#ends += 1;
    return true;
  }

  /** The rule that the merged state breaks, or null. */
  #meet(state: State, parent: Group<State, Action>, action: Action): string | null {
    const name = this.#model.groupFor(state);
    const group = this.#groups.get(name);
    if (group === undefined) {
      this.#add(name, state, parent, action);
      return null;
    }
    const merged = this.#model.merge(group.state, state);
    if (merged === null) return null;
    group.state = merged.state;
    // All that follows from the group has to be worked out again, with what is new in it.
    if (!group.isWaiting) this.#await(group);
    return merged.violation;
  }

  #add(name: string, state: State, parent: Group<State, Action> | null, action: Action | null): void {
    const depth = parent === null ? 0 : parent.depth + 1;
    const group: Group<State, Action> = { state, parent, action, depth, isWaiting: false };
    this.#groups.set(name, group);
    this.#depth = Math.max(this.#depth, depth);
    this.#await(group);
  }

  #await(group: Group<State, Action>): void {
    const progress = this.#model.progressOf(group.state);
    while (this.#waiting.length <= progress) this.#waiting.push([]);
    this.#waiting[progress]?.push(group);
    group.isWaiting = true;
    this.#leastProgress = Math.min(this.#leastProgress, progress);
  }

  #next(): Group<State, Action> | null {
    for (; this.#leastProgress < this.#waiting.length; this.#leastProgress += 1) {
      const group = this.#waiting[this.#leastProgress]?.pop();
      if (group === undefined) continue;
      group.isWaiting = false;
      return group;
    }
    return null;
  }

  #isOver(): boolean {
    if (this.#groups.size >= this.#bounds.statesMax) return true;
    return this.#explored % groupsPerLook === 0 && this.#bounds.isOver?.() === true;
  }

  #figures(): Figures {
    return { states: this.#states, distinct: this.#groups.size, depth: this.#depth, ends: this.#ends };
  }
}

function pathTo<State, Action>(group: Group<State, Action>): Action[] {
  const path: Action[] = [];
  for (let at = group; at.parent !== null; at = at.parent) path.push(at.action as Action);
  return path.reverse();
}
