/**
 * The search of Wing and Gong with Lowe's memory: is there an order of the operations, each at one moment between its call and its return,
 * that the sequential specification allows? It takes any operation whose call comes before the first return that is left, and goes back where
 * it can't go on. What was tried (set of operations taken, state) is not tried again.
 *
 * Three things make it short, none of which changes the answer. What only observes is taken as soon as it fits, and nothing else is tried
 * in its place: else n observations under way at once are 2^n sets. What has to come before another, by numbers of its own, is not tried after
 * it. And whatever returns first is tried first.
 */
import { Chain } from "./chain.js";

export interface Interval {
  /** Positions in the history, all different. `returnPosition`: Infinity when it never returned. */
  readonly callPosition: number;
  readonly returnPosition: number;
  /** True time of the return; Infinity likewise. */
  readonly returnAt: number;
  /** Else it may have happened or not. */
  readonly isRequired: boolean;
}

export interface Moment<Operation> {
  /** Whatever is placed now comes before this (true time, position): the first return of an operation that isn't placed yet, or Infinity. */
  readonly latestAt: number;
  readonly latestPosition: number;
  /** Operations that may be under way now, in the order of their calls. */
  pending(): Iterable<Operation>;
}

export interface Specification<Operation, State> {
  readonly initial: State;
  /** Null: not allowed in this state. The state itself, not a copy, if the operation changes nothing. */
  apply(state: State, operation: Operation, moment: Moment<Operation>): State | null;
  /**
   * It only narrows down what a state may be: whatever is allowed after it would be allowed without it, too. One that changes nothing is
   * placed at once, for in any order that goes on from there it can be moved to the front. For that, what is allowed must be so at a later
   * moment as well, and without observations under way.
   */
  isObservation(operation: Operation): boolean;
  /** Equal exactly for equal states. */
  keyOf(state: State): string;
  /**
   * Of a required operation: numbers of its own, in the order of which alone it can be placed, equal ones in any order. Whatever else is
   * tried first leads nowhere. None: it can be placed whenever it fits.
   */
  turnsOf(operation: Operation): readonly Turn[];
}

export interface Turn {
  /** Turns of different kinds have nothing to do with each other. */
  readonly kind: number;
  readonly number: number;
}

export type SearchResult<Operation> =
  | { readonly kind: "linearizable"; readonly steps: number }
  /** `stuck`: the operation before whose return the search found no way on, in its longest attempt. */
  | { readonly kind: "impossible"; readonly steps: number; readonly stuck: Operation }
  | { readonly kind: "unknown"; readonly steps: number };

/** `stepsMax`: bound of the attempts to place an operation. */
export function searchOrder<Operation extends Interval, State>(
  operations: readonly Operation[],
  specification: Specification<Operation, State>,
  stepsMax: number,
): SearchResult<Operation> {
  return new Search(operations, specification, stepsMax).run();
}

/** What is placed, and what may be placed next. */
interface Frame<State> {
  /** Those that led here from the frame before, in order: one that was chosen, and what fitted at once. */
  readonly placed: readonly number[];
  readonly state: State;
  /** Not tried yet; the last one is the next to try. */
  readonly candidates: number[];
}

class Search<Operation extends Interval, State> implements Moment<Operation> {
  private readonly operations: readonly Operation[];
  private readonly specification: Specification<Operation, State>;
  private readonly stepsMax: number;
  /** Calls and returns in order. */
  private readonly nodes: readonly { readonly operation: number; readonly isCall: boolean }[];
  private readonly chain: Chain;
  private readonly callNode: number[] = [];
  private readonly returnNode: number[] = [];
  private readonly placed: Placed;
  private readonly turns: Turns;
  private readonly tried: Set<string> = new Set();
  private readonly stack: Frame<State>[] = [];
  private requiredLeft: number;
  private steps = 0;
  private placedCount = 0;
  private longest = -1;
  private stuck = 0;

  constructor(operations: readonly Operation[], specification: Specification<Operation, State>, stepsMax: number) {
    this.operations = [...operations].sort((a, b) => a.callPosition - b.callPosition);
    this.specification = specification;
    this.stepsMax = stepsMax;
    this.nodes = nodesOf(this.operations);
    this.chain = new Chain(this.nodes.length);
    for (const [node, { operation, isCall }] of this.nodes.entries()) {
      (isCall ? this.callNode : this.returnNode)[operation] = node;
    }
    this.placed = new Placed(this.operations.map(({ isRequired }) => isRequired));
    this.turns = new Turns(this.operations.map((each) => (each.isRequired ? specification.turnsOf(each) : [])));
    this.requiredLeft = this.operations.filter(({ isRequired }) => isRequired).length;
  }

  get latestAt(): number {
    return this.firstToReturn()?.returnAt ?? Number.POSITIVE_INFINITY;
  }

  get latestPosition(): number {
    return this.firstToReturn()?.returnPosition ?? Number.POSITIVE_INFINITY;
  }

  *pending(): Iterable<Operation> {
    for (const index of this.pendingIndexes()) yield this.operationAt(index);
  }

  run(): SearchResult<Operation> {
    this.enter(this.specification.initial, []);
    for (;;) {
      if (this.steps > this.stepsMax) return { kind: "unknown", steps: this.steps };
      if (this.requiredLeft === 0) return { kind: "linearizable", steps: this.steps };
      const frame = this.stack.at(-1);
      if (frame === undefined) return { kind: "impossible", steps: this.steps, stuck: this.operationAt(this.stuck) };
      const index = frame.candidates.pop();
      if (index === undefined) {
        this.stack.pop();
        this.takeBack(frame.placed);
        continue;
      }
      const next = this.apply(index, frame.state);
      if (next === null) continue;
      this.place(index);
      this.enter(next, [index]);
    }
  }

  /** Goes on from a state to which `placed` has led, or takes that back if it has been there before. */
  private enter(state: State, placed: number[]): void {
    placed.push(...this.placeWhatFits(state));
    if (this.placedCount > this.longest) {
      this.longest = this.placedCount;
      this.stuck = this.firstIndexToReturn();
    }
    const key = `${this.placed.key()}|${this.specification.keyOf(state)}`;
    if (this.tried.has(key)) {
      this.takeBack(placed);
      return;
    }
    this.tried.add(key);
    this.stack.push({ placed, state, candidates: this.candidates() });
  }

  /** Observations that change nothing. Each one placed may let others fit. */
  private placeWhatFits(state: State): number[] {
    const fitting: number[] = [];
    let before = -1;
    while (before < fitting.length) {
      before = fitting.length;
      for (const index of this.pendingIndexes()) {
        if (!this.specification.isObservation(this.operationAt(index)) || !this.turns.isNext(index)) continue;
        if (this.apply(index, state) !== state) continue;
        this.place(index);
        fitting.push(index);
      }
    }
    return fitting;
  }

  /** Whatever returns first has to be placed first, or is waiting for one of the others (Lowe: just in time). */
  private candidates(): number[] {
    const candidates = [...this.pendingIndexes()].filter((index) => this.turns.isNext(index));
    return candidates.sort((a, b) => this.returnOf(b) - this.returnOf(a));
  }

  private returnOf(index: number): number {
    return this.returnNode[index] ?? this.nodes.length + index;
  }

  private apply(index: number, state: State): State | null {
    this.steps += 1;
    return this.specification.apply(state, this.operationAt(index), this);
  }

  private place(index: number): void {
    this.placed.add(index);
    this.turns.take(index);
    // The return first: who walks on from the call must come to what lies behind both.
    const returnNode = this.returnNode[index];
    if (returnNode !== undefined) this.chain.takeOut(returnNode);
    this.chain.takeOut(this.callNode[index] ?? -1);
    if (this.operationAt(index).isRequired) this.requiredLeft -= 1;
    this.placedCount += 1;
  }

  private takeBack(placed: readonly number[]): void {
    for (const index of placed.toReversed()) {
      this.placed.delete(index);
      this.turns.giveBack(index);
      this.chain.putBack(this.callNode[index] ?? -1);
      const returnNode = this.returnNode[index];
      if (returnNode !== undefined) this.chain.putBack(returnNode);
      if (this.operationAt(index).isRequired) this.requiredLeft += 1;
      this.placedCount -= 1;
    }
  }

  /** Those called before the first return that is left. While it goes on, one that it has told may be placed. */
  private *pendingIndexes(): Iterable<number> {
    for (let node = this.chain.first; node !== -1; node = this.chain.after(node)) {
      const { operation, isCall } = this.nodeAt(node);
      if (!isCall) return;
      yield operation;
    }
  }

  private firstToReturn(): Operation | null {
    const index = this.firstIndexToReturn();
    return index === -1 ? null : this.operationAt(index);
  }

  private firstIndexToReturn(): number {
    for (let node = this.chain.first; node !== -1; node = this.chain.after(node)) {
      const { operation, isCall } = this.nodeAt(node);
      if (!isCall) return operation;
    }
    return -1;
  }

  private operationAt(index: number): Operation {
    return this.operations[index] as Operation;
  }

  private nodeAt(node: number): { readonly operation: number; readonly isCall: boolean } {
    return this.nodes[node] as { readonly operation: number; readonly isCall: boolean };
  }
}

/**
 * The set of operations placed, in few words: all required ones below a number, then those above it one by one; and the others one by one.
 */
class Placed {
  private readonly isRequired: readonly boolean[];
  private readonly flags: Uint8Array;
  private readonly optional: Set<number> = new Set();
  private floor = 0;
  private top = -1;

  constructor(isRequired: readonly boolean[]) {
    this.isRequired = isRequired;
    this.flags = new Uint8Array(isRequired.length);
    this.raiseFloor();
  }

  add(index: number): void {
    this.flags[index] = 1;
    if (this.isRequired[index] !== true) {
      this.optional.add(index);
      return;
    }
    this.top = Math.max(this.top, index);
    this.raiseFloor();
  }

  delete(index: number): void {
    this.flags[index] = 0;
    this.optional.delete(index);
    if (this.isRequired[index] === true) this.floor = Math.min(this.floor, index);
  }

  key(): string {
    const above: number[] = [];
    for (let index = this.floor; index <= this.top; index += 1) {
      if (this.flags[index] === 1 && this.isRequired[index] === true) above.push(index);
    }
    // Everything up to the floor is known: look no further down than to the highest one next time.
    this.top = Math.max(this.floor - 1, above.at(-1) ?? -1);
    return `${this.floor}:${above.join(",")}:${[...this.optional].sort((a, b) => a - b).join(",")}`;
  }

  private raiseFloor(): void {
    const { flags, isRequired } = this;
    while (this.floor < flags.length && (flags[this.floor] === 1 || isRequired[this.floor] !== true)) this.floor += 1;
  }
}

/** Whose turn it is: of each kind, the lowest number that isn't placed. */
class Turns {
  private readonly turns: readonly (readonly Turn[])[];
  private readonly numbers: Map<number, number[]> = new Map();
  private readonly taken: Map<number, number> = new Map();

  constructor(turns: readonly (readonly Turn[])[]) {
    this.turns = turns;
    for (const { kind, number } of turns.flat()) {
      const numbers = this.numbers.get(kind);
      if (numbers === undefined) this.numbers.set(kind, [number]);
      else numbers.push(number);
    }
    for (const numbers of this.numbers.values()) numbers.sort((a, b) => a - b);
  }

  isNext(index: number): boolean {
    for (const { kind, number } of this.turnsOf(index)) {
      if (this.numbers.get(kind)?.[this.taken.get(kind) ?? 0] !== number) return false;
    }
    return true;
  }

  take(index: number): void {
    for (const { kind } of this.turnsOf(index)) this.taken.set(kind, (this.taken.get(kind) ?? 0) + 1);
  }

  giveBack(index: number): void {
    for (const { kind } of this.turnsOf(index)) this.taken.set(kind, (this.taken.get(kind) ?? 0) - 1);
  }

  private turnsOf(index: number): readonly Turn[] {
    return this.turns[index] ?? [];
  }
}

/** A required operation without a return has one at the very end. */
function nodesOf(operations: readonly Interval[]): { operation: number; isCall: boolean }[] {
  const nodes = operations.flatMap(({ callPosition, returnPosition, isRequired }, operation) => {
    const call = { position: callPosition, operation, isCall: true };
    if (!isRequired && returnPosition === Number.POSITIVE_INFINITY) return [call];
    return [call, { position: returnPosition, operation, isCall: false }];
  });
  nodes.sort((a, b) => (a.position === b.position ? 0 : a.position - b.position));
  return nodes.map(({ operation, isCall }) => ({ operation, isCall }));
}
