/** A broken invariant of the checker itself: its verdict would be worth nothing. */
class AssertionError extends Error {
  override readonly name: string = "AssertionError";
}

export function assert(condition: boolean, invariant: string): asserts condition {
  if (!condition) throw new AssertionError(`broken invariant of the checker: ${invariant}`);
}

export function assertNever(value: never): never {
  throw new AssertionError(`unhandled case: ${JSON.stringify(value)}`);
}
