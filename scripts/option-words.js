/** The words of a command line as options, for the scripts: all that is wrong with them is told at once. */
import { parseArgs } from "node:util";

/**
 * @param {readonly string[]} args
 * @param {{ texts: readonly string[], flags: readonly string[] }} names Of options with a value, and of those without.
 * @returns {{ given: Map<string, string>, problems: string[] }} `given`: by name; "" for a flag.
 */
export function readOptionWords(args, { texts, flags }) {
  /** @type {Map<string, string>} */
  const given = new Map();
  /** @type {string[]} */
  const problems = [];
  const kindsOf = (/** @type {readonly string[]} */ names, /** @type {"string" | "boolean"} */ type) =>
    names.map((name) => [name, { type }]);
  // Strict, it would throw at the first problem.
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries([...kindsOf(texts, "string"), ...kindsOf(flags, "boolean")]),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind === "positional") problems.push(`stray word ${token.value}`);
    if (token.kind !== "option") continue;
    const { name, rawName, value } = token;
    const isMissing = value === undefined || (token.inlineValue === false && value.startsWith("-"));
    if (!texts.includes(name) && !flags.includes(name)) problems.push(`unknown option ${rawName}`);
    else if (given.has(name)) problems.push(`${rawName} is given twice`);
    else if (texts.includes(name) && isMissing) problems.push(`${rawName} needs a value`);
    else if (flags.includes(name) && value !== undefined) problems.push(`${rawName} takes no value`);
    else given.set(name, value ?? "");
  }
  return { given, problems };
}
