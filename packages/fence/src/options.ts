import { InvalidArgumentError } from "./errors.js";

/** Misspelt options would be silently without effect. */
export function checkOptionNames(options: unknown, argument: string, known: readonly string[]): void {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new InvalidArgumentError(argument, "must be an object");
  }
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new InvalidArgumentError(`${argument}.${unknown}`, `is not an option; these are: ${known.join(", ")}`);
  }
}
