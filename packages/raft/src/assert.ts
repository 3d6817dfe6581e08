/** A rule that the safety argument rests on does not hold. Nothing after it can be trusted: the host ends the process. */
export class InvariantError extends Error {
  readonly invariant: string;

  constructor(invariant: string, facts?: string) {
    super(facts === undefined ? `broken invariant: ${invariant}` : `broken invariant: ${invariant} (${facts})`);
    this.name = "InvariantError";
    this.invariant = invariant;
  }
}

export function assert(condition: boolean, invariant: string): asserts condition {
  if (!condition) throw new InvariantError(invariant);
}

export function assertNever(value: never): never {
  throw new InvariantError("closed unions have no other member", JSON.stringify(value));
}
