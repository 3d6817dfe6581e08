/**
 * Ends the call when an invariant of our own code is broken. Never for what arrives from outside: that is a WireError.
 */
export function assert(condition: boolean, invariant: string): asserts condition {
  if (!condition) throw new Error(`broken invariant: ${invariant}`);
}

export function assertNever(value: never, what: string): never {
  throw new Error(`broken invariant: unknown ${what} ${typeof value}`);
}
