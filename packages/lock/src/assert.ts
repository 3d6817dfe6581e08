/** A broken invariant ends the process: going on would spread a state that the other nodes don't have. Stays on in production. */
class AssertionError extends Error {
  override readonly name: string = "AssertionError";
}

export function assert(condition: boolean, invariant: string): asserts condition {
  if (!condition) throw new AssertionError(`broken invariant: ${invariant}`);
}

export function assertNever(value: never): never {
  throw new AssertionError(`unhandled case: ${JSON.stringify(value)}`);
}
