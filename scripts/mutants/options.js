/** What `npm run mutants` was asked for. */
import { readOptionWords } from "../option-words.js";

export const usage = `usage: npm run mutants -- [options]
Plants the bugs of packages/simulator/mutants, one at a time, in a copy of the code; each must be found within its seed budget.
  --only TEXT    those whose name contains it
  --first SEED   the first seed (default 1)
  --repeats N    ranges of seeds for each (default 3)
  --jobs N       at a time (default: one per core, at most 2)
  --check        only whether each patch applies to the tree as it is
  --compile      with --check: only whether each compiles`;

const texts = ["only", "first", "repeats", "jobs"];
const flags = ["check", "compile", "help"];

/**
 * @typedef {{ mode: "find" | "check" | "compile" | "help", only: string, first: number, repeats: number, jobs: number }} Options
 * @param {readonly string[]} args
 * @param {{ jobs: number }} defaults
 * @returns {{ options: Options, problems: string[] }} With problems the options mean nothing.
 */
export function readOptions(args, defaults) {
  const { given, problems } = readOptionWords(args, { texts, flags });
  const wholeNumber = (/** @type {string} */ name, /** @type {number} */ other) => {
    const text = given.get(name) ?? String(other);
    if (/^\d+$/.test(text) && Number.isSafeInteger(Number(text)) && Number(text) >= 1) return Number(text);
    problems.push(`--${name} ${text} is no whole number from 1 on`);
    return other;
  };
  const options = {
    mode: modeOf(given),
    only: given.get("only") ?? "",
    first: wholeNumber("first", 1),
    repeats: wholeNumber("repeats", 3),
    jobs: wholeNumber("jobs", defaults.jobs),
  };
  if (options.mode === "help") return { options, problems: [] };
  if (given.has("compile") && !given.has("check")) problems.push("--compile needs --check");
  for (const name of ["first", "repeats", "jobs"])
    if (given.has("check") && given.has(name)) problems.push(`--${name} has no effect with --check`);
  return { options, problems };
}

/** @param {ReadonlyMap<string, string>} given */
function modeOf(given) {
  if (given.has("help")) return "help";
  if (given.has("compile")) return "compile";
  return given.has("check") ? "check" : "find";
}
