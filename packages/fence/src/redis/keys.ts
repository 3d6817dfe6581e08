import { InvalidArgumentError } from "../errors.js";
import { described, isWellFormed } from "../fence.js";

/** @throws InvalidArgumentError naming `argument`. */
export function checkedKey(key: unknown, argument: string): string {
  if (typeof key !== "string" || key === "" || !isWellFormed(key)) {
    throw new InvalidArgumentError(argument, `must be a well-formed string that isn't empty, not ${described(key)}`);
  }
  return key;
}

/**
 * What decides a key's hash slot: the text in its first pair of braces, else all of it.
 * @throws InvalidArgumentError naming `argument`, for a key whose slot no other key can be given by name.
 */
export function hashTagOf(key: string, argument: string): string {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open + 1);
  if (close > open + 1) return key.slice(open + 1, close);
  if (key.includes("}")) {
    throw new InvalidArgumentError(
      argument,
      "has a } outside of a {hash tag}: its fence could not lie in its hash slot",
    );
  }
  return key;
}

/** The register of a resource in the hash slot of `tag`. */
export function fenceKey(prefix: string, tag: string, resource: string): string {
  return `${prefix}{${tag}}:${resource}`;
}
