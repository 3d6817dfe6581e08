import { InvalidArgumentError } from "../errors.js";
import { described, isWellFormed } from "../fence.js";

/** PostgreSQL cuts longer names off without a word, so that two of them can become one. */
const identifierBytesMax = 63;

/**
 * A name as SQL text, in double quotes: any name is data, and none is code. Case counts, as always in quotes.
 * @throws InvalidArgumentError naming `argument`.
 */
export function quotedIdentifier(name: unknown, argument: string): string {
  if (typeof name !== "string" || name === "") {
    throw new InvalidArgumentError(argument, `must be a name that isn't empty, not ${described(name)}`);
  }
  if (!isWellFormed(name) || name.includes("\0")) {
    throw new InvalidArgumentError(argument, "must be well-formed Unicode without U+0000");
  }
  if (Buffer.byteLength(name) > identifierBytesMax) {
    throw new InvalidArgumentError(argument, `must have at most ${identifierBytesMax} bytes`);
  }
  return `"${name.replaceAll('"', '""')}"`;
}

/** `schema.table` in quotes. A dot inside `table` is part of its name. */
export function quotedTable(table: unknown, schema: unknown): string {
  const name = quotedIdentifier(table, "options.table");
  return schema === undefined ? name : `${quotedIdentifier(schema, "options.schema")}.${name}`;
}
