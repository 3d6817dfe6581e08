import { InvalidArgumentError } from "../errors.js";
import { described, isWellFormed } from "../fence.js";

/** The server refuses longer ones. */
const identifierCharactersMax = 64;

/**
 * A name as SQL text, in backquotes, which mean a name in every sql_mode.
 * @throws InvalidArgumentError naming `argument`.
 */
export function quotedName(name: unknown, argument: string): string {
  if (typeof name !== "string" || name === "") {
    throw new InvalidArgumentError(argument, `must be a name that isn't empty, not ${described(name)}`);
  }
  if (!isWellFormed(name) || name.includes("\0")) {
    throw new InvalidArgumentError(argument, "must be well-formed Unicode without U+0000");
  }
  if ([...name].length > identifierCharactersMax) {
    throw new InvalidArgumentError(argument, `must have at most ${identifierCharactersMax} characters`);
  }
  return `\`${name.replaceAll("`", "``")}\``;
}

/** `schema.table` in quotes. A dot inside `table` is part of its name. */
export function quotedTable(table: unknown, schema: unknown): string {
  const name = quotedName(table, "options.table");
  return schema === undefined ? name : `${quotedName(schema, "options.schema")}.${name}`;
}
