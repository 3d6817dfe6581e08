/**
 * The search of Wing and Gong with Lowe's memory: is there an order of the operations, each at one moment between its call and its return,
 * that the sequential specification allows? It walks the calls and returns in their order, takes any operation whose call comes before the
 * first return that is left, and goes back where it can't go on. What was tried (set of operations taken, state) is not tried again.
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
  /** Whatever is placed now comes before this: the first return of an operation that isn't placed yet. */
  readonly latestAt: number;
  /** Operations that may be under way now, in the order of their calls. */
  pending(): Iterable<Operation>;
}

export interface Specification<Operation, State> {
  readonly initial: State;
  /** Null: not allowed in this state. */
  apply(state: State, operation: Operation, moment: Moment<Operation>): State | null;
  /** False: it only stands in the way of others, and has no place in the order. */
  hasPlace(operation: Operation): boolean;
  /** Equal exactly for equal states. */
  keyOf(state: State): string;
  /**
   * Required operations that can only be placed in the order of a number of their own, equal ones in any order: whatever else is tried first
   * leads nowhere. Null: it has no such number. This makes searches with many waiters short.
   */
  turnOf(operation: Operation): Turn | null;
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

interface Frame<State> {
  readonly operation: number;
  readonly before: State;
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
    this.turns = new Turns(this.operations.map((each) => (each.isRequired ? specification.turnOf(each) : null)));
    this.requiredLeft = this.operations.filter(({ isRequired }) => isRequired).length;
  }

  get latestAt(): number {
    for (let node = this.chain.first; node !== -1; node = this.chain.after(node)) {
      const { operation, isCall } = this.nodeAt(node);
      if (!isCall) return this.operationAt(operation).returnAt;
    }
    return Number.POSITIVE_INFINITY;
  }

  *pending(): Iterable<Operation> {
    for (let node = this.chain.first; node !== -1; node = this.chain.after(node)) {
      const { operation, isCall } = this.nodeAt(node);
      if (!isCall) return;
      yield this.operationAt(operation);
    }
  }

  run(): SearchResult<Operation> {
    let state = this.specification.initial;
    let node = this.chain.first;
    while (this.requiredLeft > 0) {
      const current = node === -1 ? null : this.nodeAt(node);
      if (current !== null && current.isCall && !this.mayPlace(current.operation)) {
        node = this.chain.after(node);
        continue;
      }
      if (current !== null && current.isCall) {
        this.steps += 1;
        if (this.steps > this.stepsMax) return { kind: "unknown", steps: this.steps };
        const next = this.tryToPlace(current.operation, state);
        if (next === null) {
          node = this.chain.after(node);
        } else {
          this.stack.push({ operation: current.operation, before: state });
          state = next;
          node = this.chain.first;
        }
        continue;
      }
      if (current !== null && this.stack.length > this.longest) {
        this.longest = this.stack.length;
        this.stuck = current.operation;
      }
      const frame = this.stack.pop();
      if (frame === undefined) {
        return { kind: "impossible", steps: this.steps, stuck: this.operationAt(this.stuck) };
      }
      this.takeBack(frame.operation);
      state = frame.before;
      node = this.chain.after(this.callNode[frame.operation] ?? -1);
    }
    return { kind: "linearizable", steps: this.steps };
  }

  private mayPlace(index: number): boolean {
    return this.turns.isNext(index) && this.specification.hasPlace(this.operationAt(index));
  }

  private tryToPlace(index: number, state: State): State | null {
    const operation = this.operationAt(index);
    const next = this.specification.apply(state, operation, this);
    if (next === null) return null;
    this.placed.add(index);
    const key = `${this.placed.key()}|${this.specification.keyOf(next)}`;
    if (this.tried.has(key)) {
      this.placed.delete(index);
      return null;
    }
    this.tried.add(key);
    this.turns.take(index);
    this.chain.takeOut(this.callNode[index] ?? -1);
    const returnNode = this.returnNode[index];
    if (returnNode !== undefined) this.chain.takeOut(returnNode);
    if (operation.isRequired) this.requiredLeft -= 1;
    return next;
  }

  private takeBack(index: number): void {
    this.placed.delete(index);
    this.turns.giveBack(index);
    const returnNode = this.returnNode[index];
    if (returnNode !== undefined) this.chain.putBack(returnNode);
    this.chain.putBack(this.callNode[index] ?? -1);
    if (this.operationAt(index).isRequired) this.requiredLeft += 1;
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
  private readonly turns: readonly (Turn | null)[];
  private readonly numbers: Map<number, number[]> = new Map();
  private readonly taken: Map<number, number> = new Map();

  constructor(turns: readonly (Turn | null)[]) {
    this.turns = turns;
    for (const turn of turns) {
      if (turn === null) continue;
      const numbers = this.numbers.get(turn.kind);
      if (numbers === undefined) this.numbers.set(turn.kind, [turn.number]);
      else numbers.push(turn.number);
    }
    for (const numbers of this.numbers.values()) numbers.sort((a, b) => a - b);
  }

  isNext(index: number): boolean {
    const turn = this.turns[index] ?? null;
    return turn === null || this.numbers.get(turn.kind)?.[this.taken.get(turn.kind) ?? 0] === turn.number;
  }

  take(index: number): void {
    const turn = this.turns[index] ?? null;
    if (turn !== null) this.taken.set(turn.kind, (this.taken.get(turn.kind) ?? 0) + 1);
  }

  giveBack(index: number): void {
    const turn = this.turns[index] ?? null;
    if (turn !== null) this.taken.set(turn.kind, (this.taken.get(turn.kind) ?? 0) - 1);
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
