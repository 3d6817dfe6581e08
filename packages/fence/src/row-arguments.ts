/** What the guards of rows are handed, whatever the database: the row's key, and columns with their values. */
import { InvalidArgumentError } from "./errors.js";
import { described, isWellFormed } from "./fence.js";

/** @throws InvalidArgumentError naming "id". */
export function checkedRowKey(id: unknown): string | number | bigint {
  if (typeof id === "bigint" || (typeof id === "number" && Number.isSafeInteger(id))) return id;
  if (typeof id === "string" && isWellFormed(id)) return id;
  throw new InvalidArgumentError(
    "id",
    `must be a well-formed string, a safe integer or a bigint, not ${described(id)}`,
  );
}

/** @throws InvalidArgumentError naming "values". */
export function columnEntries(values: unknown, columnsMin: number): [column: string, value: unknown][] {
  if (typeof values !== "object" || values === null || Array.isArray(values)) {
    throw new InvalidArgumentError("values", `must be an object of columns, not ${described(values)}`);
  }
  const entries: [string, unknown][] = Object.entries(values);
  if (entries.length < columnsMin) throw new InvalidArgumentError("values", "names no column");
  return entries;
}

/** `key`, `fence`: the guard's own columns, quoted. */
export interface OwnColumns {
  readonly key: string;
  readonly fence: string;
  readonly isSame: (name: string, other: string) => boolean;
}

/** @throws InvalidArgumentError naming `argument`, when the quoted name is one of the guard's own. */
export function checkNotOwn(name: string, argument: string, { key, fence, isSame }: OwnColumns): void {
  if (isSame(name, key)) throw new InvalidArgumentError(argument, "is the key, which the second argument gives");
  if (isSame(name, fence)) throw new InvalidArgumentError(argument, "is the fence, which only the guard writes");
}

/** Where the names of columns are the same in capitals. */
export function isSameInCapitals(name: string, other: string): boolean {
  return name.toLowerCase() === other.toLowerCase();
}
