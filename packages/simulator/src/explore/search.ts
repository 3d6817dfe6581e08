/**
 * Breadth-first search over all states of a model that its actions can reach, each state once. The first violation that it meets has a
 * shortest path. A state is held only as long as it waits for its turn; what stays of it is its key, its parent and its action.
 */

/** What one action makes of a state. `violation` says which rule is broken; the search ends there. */
export interface Step<State, Action> {
  readonly action: Action;
  readonly state: State;
  readonly violation: string | null;
}

export interface Model<State, Action> {
  readonly initial: State;
  /** Two states with one key have the same future, and only the first that is met is explored. */
  keyFor(state: State): string;
  /** All that can happen next. What would leave the scope is left out. */
  stepsFrom(state: State): Iterable<Step<State, Action>>;
}

export interface Bounds {
  /** No more distinct states than this. */
  readonly statesMax: number;
  /** No longer paths than this. */
  readonly depthMax?: number;
  /** Asked now and then; true ends the search. A clock, if there is one, is the caller's. */
  readonly isOver?: () => boolean;
  /** Told at the end of each level: its depth, and how far the search has come. */
  readonly onLevel?: (depth: number, figures: Figures) => void;
}

export interface Figures {
  /** Steps made: each state that was met, as often as it was met. */
  readonly states: number;
  readonly distinct: number;
  /** Length of the longest path from the start to a state met, when each is reached by its shortest. */
  readonly depth: number;
  /** States in which nothing can happen any more, within the scope. */
  readonly ends: number;
}

export interface Violation<State, Action> {
  readonly rule: string;
  readonly path: readonly Action[];
  readonly state: State;
}

export interface Result<State, Action> extends Figures {
  /** Every state of the scope was explored. */
  readonly isComplete: boolean;
  readonly violation: Violation<State, Action> | null;
}

interface Waiting<State> {
  readonly state: State;
  readonly number: number;
}

/** How many states are explored between two questions whether the search is over. */
const statesPerLook = 256;

export function explore<State, Action>(model: Model<State, Action>, bounds: Bounds): Result<State, Action> {
  return new Search(model, bounds).run();
}

class Search<State, Action> {
  readonly #model: Model<State, Action>;
  readonly #bounds: Bounds;
  readonly #keys = new KeySet();
  /** By number of a state: that of the state before, and what led from there. */
  readonly #parents: number[] = [];
  readonly #actions: Action[] = [];
  #states = 0;
  #depth = 0;
  #ends = 0;
  #violation: Violation<State, Action> | null = null;

  constructor(model: Model<State, Action>, bounds: Bounds) {
    this.#model = model;
    this.#bounds = bounds;
  }

  run(): Result<State, Action> {
    const { initial } = this.#model;
    this.#keys.add(this.#model.keyFor(initial));
    let level: Waiting<State>[] = [{ state: initial, number: 0 }];
    let isCut = false;
    while (level.length > 0 && !isCut) {
      if (this.#depth >= (this.#bounds.depthMax ?? Number.POSITIVE_INFINITY)) {
        isCut = true;
        break;
      }
      const next: Waiting<State>[] = [];
      isCut = !this.#exploreLevel(level, next);
      level = next;
      if (next.length > 0) this.#depth += 1;
      if (!isCut) this.#bounds.onLevel?.(this.#depth, this.#figures());
    }
    return { ...this.#figures(), isComplete: !isCut, violation: this.#violation };
  }

  /** False when the search must end before all of the level was explored. */
  #exploreLevel(level: readonly Waiting<State>[], next: Waiting<State>[]): boolean {
    let sinceLook = 0;
    for (const waiting of level) {
      sinceLook += 1;
      if (sinceLook >= statesPerLook) {
        sinceLook = 0;
        if (this.#bounds.isOver?.() === true) return false;
      }
      if (!this.#exploreState(waiting, next)) return false;
    }
    return true;
  }

  #exploreState(from: Waiting<State>, next: Waiting<State>[]): boolean {
    let isEnd = true;
    for (const { action, state, violation } of this.#model.stepsFrom(from.state)) {
      isEnd = false;
      this.#states += 1;
      if (violation !== null) {
        this.#violation = { rule: violation, path: [...this.#pathTo(from.number), action], state };
        return false;
      }
      if (!this.#keys.add(this.#model.keyFor(state))) continue;
      const number = this.#keys.size - 1;
      this.#parents[number - 1] = from.number;
      this.#actions[number - 1] = action;
      next.push({ state, number });
      if (this.#keys.size >= this.#bounds.statesMax) return false;
    }
    if (isEnd) this.#ends += 1;
    return true;
  }

  #pathTo(number: number): Action[] {
    const path: Action[] = [];
    for (let at = number; at > 0; at = this.#parents[at - 1] ?? 0) path.push(this.#actions[at - 1] as Action);
    return path.reverse();
  }

  #figures(): Figures {
    return { states: this.#states, distinct: this.#keys.size, depth: this.#depth, ends: this.#ends };
  }
}

/** A Set ends at 2^24 members: this one goes on in another. */
class KeySet {
  readonly #sets: Set<string>[] = [new Set()];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** False when the key was there already. */
  add(key: string): boolean {
    for (const set of this.#sets) if (set.has(key)) return false;
    let last = this.#sets.at(-1);
    if (last === undefined || last.size >= keysPerSetMax) {
      last = new Set();
      this.#sets.push(last);
    }
    last.add(key);
    this.#size += 1;
    return true;
  }
}

const keysPerSetMax = 2 ** 24 - 1;
