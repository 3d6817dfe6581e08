import type { Index, Position, Term } from "./types.js";

/** Terms and indexes up to here are taken from messages: far enough below 2^53 that counting on from them stays exact. */
export const numberMax: number = Number.MAX_SAFE_INTEGER - 2 ** 32;

export const zeroIndex = 0 as Index;

/** Which log is more up to date: the later last term, then the longer log (thesis 3.6.1). Negative when `a` is behind `b`. */
export function comparePositions(a: Position, b: Position): number {
  return a.term !== b.term ? a.term - b.term : a.index - b.index;
}

/** The index `count` steps on; `count` may be negative. */
export function indexAfter(index: Index, count = 1): Index {
  return (index + count) as Index;
}

export function minIndex(a: Index, b: Index): Index {
  return a < b ? a : b;
}

export function maxIndex(a: Index, b: Index): Index {
  return a > b ? a : b;
}

export function nextTerm(term: Term): Term {
  return (term + 1) as Term;
}
