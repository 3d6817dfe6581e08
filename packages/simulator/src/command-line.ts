/** What `npm run simulate` was asked for. */
import { readWords, wholeNumber } from "./words.js";
import type { OptionKinds, Words } from "./words.js";

export const usage = `usage: npm run simulate -- [options]
many seeds:
  --first F      the first (default 1)
  --seeds N      how many (default 100)
  --workers W    processes (default: one per core)
  --stop         end at the first seed that fails
  --hashes       print each seed's trace hash
  --table        print everything that was counted, and the marks that no run has met
  --marks        fail when a mark was met by no run
one run:
  --seed S       of this seed
  --plan FILE    of a plan that --shrink has written
  --trace        print its timeline, around the first line that a broken rule names
  --lines N      so many lines of it (default 200)
  --shrink       if it fails: find the smallest plan that fails
  --out FILE     write that plan to a file`;

export type Command =
  | { readonly kind: "help" }
  | ({ readonly kind: "one" } & OneRun)
  | ({ readonly kind: "many" } & ManyRuns);

export interface OneRun {
  readonly source: { readonly seed: number } | { readonly file: string };
  readonly isTraced: boolean;
  /** Of the timeline. */
  readonly linesMax: number;
  readonly isShrunk: boolean;
  /** Where the smallest plan goes; null: it is printed. */
  readonly out: string | null;
}

export interface ManyRuns {
  readonly first: number;
  readonly seeds: number;
  readonly workers: number;
  readonly isStopped: boolean;
  readonly hasHashes: boolean;
  readonly hasTable: boolean;
  readonly needsMarks: boolean;
}

const ofOne: OptionKinds = { trace: "flag", lines: "text", shrink: "flag", out: "text" };
const ofMany: OptionKinds = {
  first: "text",
  seeds: "text",
  workers: "text",
  stop: "flag",
  hashes: "flag",
  table: "flag",
  marks: "flag",
};
const kinds: OptionKinds = { ...ofOne, ...ofMany, seed: "text", plan: "text", help: "flag" };

/** `workers`: how many processes there are unless the words say so. */
export function readCommand(
  args: readonly string[],
  workers: number,
): { readonly command: Command } | { readonly problems: readonly string[] } {
  const words = readWords(args, kinds);
  if (words.flags.has("help")) return { command: { kind: "help" } };
  const problems = [...words.problems, ...words.rest.map((word) => `stray word ${word}`), ...conflictsIn(words)];
  const command = isOfOne(words) ? oneRunIn(words, problems) : manyRunsIn(words, workers, problems);
  return problems.length > 0 ? { problems } : { command };
}

function oneRunIn(words: Words, problems: string[]): Command {
  const file = words.texts.get("plan");
  return {
    kind: "one",
    source: file === undefined ? { seed: wholeNumber(words, "seed", 1, problems) } : { file },
    isTraced: words.flags.has("trace"),
    linesMax: wholeNumber(words, "lines", 200, problems),
    isShrunk: words.flags.has("shrink"),
    out: words.texts.get("out") ?? null,
  };
}

function manyRunsIn(words: Words, workers: number, problems: string[]): Command {
  const first = wholeNumber(words, "first", 1, problems);
  const seeds = wholeNumber(words, "seeds", 100, problems);
  if (!Number.isSafeInteger(first + seeds)) problems.push(`--seeds ${seeds}: there are no such seeds`);
  return {
    kind: "many",
    first,
    seeds,
    workers: wholeNumber(words, "workers", workers, problems),
    isStopped: words.flags.has("stop"),
    hasHashes: words.flags.has("hashes"),
    hasTable: words.flags.has("table"),
    needsMarks: words.flags.has("marks"),
  };
}

function isOfOne(words: Words): boolean {
  return words.texts.has("seed") || words.texts.has("plan");
}

/** Options that would have no effect. */
function conflictsIn(words: Words): string[] {
  const has = (name: string): boolean => words.texts.has(name) || words.flags.has(name);
  const problems: string[] = [];
  const source = has("seed") ? "--seed" : "--plan";
  if (has("seed") && has("plan")) problems.push("--seed and --plan exclude each other");
  for (const name of Object.keys(isOfOne(words) ? ofMany : ofOne).filter(has))
    problems.push(isOfOne(words) ? `--${name} is of many seeds, not of ${source}` : `--${name} needs --seed or --plan`);
  if (isOfOne(words) && has("lines") && !has("trace")) problems.push("--lines needs --trace");
  if (isOfOne(words) && has("out") && !has("shrink")) problems.push("--out needs --shrink");
  return problems;
}
