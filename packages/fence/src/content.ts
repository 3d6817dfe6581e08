import { InvalidArgumentError } from "./errors.js";

/**
 * A copy: what the caller does to its bytes afterwards is not part of the write.
 * @throws InvalidArgumentError naming `argument`.
 */
export function contentBytes(content: unknown, argument: string): Buffer {
  if (typeof content === "string") return Buffer.from(content);
  if (content instanceof Uint8Array) return Buffer.from(content);
  throw new InvalidArgumentError(argument, "must be a string or a Uint8Array");
}
