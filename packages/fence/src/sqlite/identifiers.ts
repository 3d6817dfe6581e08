import { InvalidArgumentError } from "../errors.js";
import { described, isWellFormed } from "../fence.js";

/**
 * A name as SQL text, in double quotes: any name is data, and none is code. SQLite takes "A" for "a".
 * @throws InvalidArgumentError naming `argument`.
 */
export function quotedName(name: unknown, argument: string): string {
  if (typeof name !== "string" || name === "") {
    throw new InvalidArgumentError(argument, `must be a name that isn't empty, not ${described(name)}`);
  }
  if (!isWellFormed(name) || name.includes("\0")) {
    throw new InvalidArgumentError(argument, "must be well-formed Unicode without U+0000");
  }
  return `"${name.replaceAll('"', '""')}"`;
}
