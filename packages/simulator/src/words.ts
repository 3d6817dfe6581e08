/** Reads the words of a command line. What is wrong with them is said all at once; nothing is passed over, nothing is thrown. */
import { parseArgs } from "node:util";

/** `text` takes a value, `flag` none. */
export type OptionKinds = Readonly<Record<string, "text" | "flag">>;

export interface Words {
  readonly texts: ReadonlyMap<string, string>;
  readonly flags: ReadonlySet<string>;
  /** Words that belong to no option. */
  readonly rest: readonly string[];
  /** One line each. */
  readonly problems: readonly string[];
}

/** The exit code of a command that was called wrongly (EX_USAGE of sysexits.h). */
export const usageExitCode = 64;

export function readWords(args: readonly string[], kinds: OptionKinds): Words {
  const texts = new Map<string, string>();
  const flags = new Set<string>();
  const rest: string[] = [];
  const problems: string[] = [];
  const options = Object.fromEntries(
    Object.entries(kinds).map(([name, kind]) => [name, { type: kind === "text" ? "string" : "boolean" } as const]),
  );
  // Strict, it would throw at the first problem.
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true });
  for (const token of tokens) {
    if (token.kind === "positional") rest.push(token.value);
    if (token.kind !== "option") continue;
    const { name, rawName, value } = token;
    const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
    const isGiven = texts.has(name) || flags.has(name);
    const isMissing = value === undefined || (token.inlineValue === false && value.startsWith("-"));
    if (kind === undefined) problems.push(`unknown option ${rawName}`);
    else if (isGiven) problems.push(`${rawName} is given twice`);
    else if (kind === "text" && isMissing) problems.push(`${rawName} needs a value`);
    else if (kind === "flag" && value !== undefined) problems.push(`${rawName} takes no value`);
    else if (kind === "flag") flags.add(name);
    else texts.set(name, value ?? "");
  }
  return { texts, flags, rest, problems };
}

/** The option's whole number, or `other` when it isn't given or is wrong; then it is among the problems. */
export function wholeNumber(words: Words, name: string, other: number, problems: string[]): number {
  const text = words.texts.get(name);
  if (text === undefined) return other;
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(number) && number >= 1) return number;
  problems.push(`--${name} ${text} is no whole number from 1 on`);
  return other;
}
