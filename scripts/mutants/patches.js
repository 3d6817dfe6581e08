/**
 * The planted bugs: one small unified diff each. The lines above the diff say its name, the rule that it breaks, and who has to find it: the
 * simulator within so many seeds ("seeds"), or, for what the simulated network can't bring about, a test ("test", and "why").
 */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";

/**
 * @typedef {{ name: string, breaks: string, seeds: number, test: string | null, file: string, hunks: Hunk[] }} Mutant `file`: the patch's
 * absolute path; `test`: the compiled test that finds it, from the top; then `seeds` is 0.
 * @typedef {{ file: string, before: string }} Hunk `before`: the lines that the hunk takes the place of.
 */

/**
 * @param {string} folder
 * @returns {Mutant[]} By name.
 */
export function readMutants(folder) {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".patch"))
    .sort()
    .map((file) => parseMutant(path.join(folder, file), readFileSync(path.join(folder, file), "utf8")));
}

/**
 * Throws on a patch that doesn't say what it is.
 * @param {string} file
 * @param {string} text
 * @returns {Mutant}
 */
export function parseMutant(file, text) {
  const name = headerIn(file, text, "name");
  if (`${name}.patch` !== path.basename(file)) throw new Error(`${file}: its name is ${name}`);
  const isOfTest = /^# test:/m.test(text);
  const test = isOfTest ? headerIn(file, text, "test") : null;
  const seeds = isOfTest ? 0 : Number(headerIn(file, text, "seeds"));
  if (isOfTest) headerIn(file, text, "why");
  else if (!Number.isSafeInteger(seeds) || seeds < 1)
    throw new Error(`${file}: "# seeds:" must be a whole number above 0`);
  const hunks = hunksOf(text);
  if (hunks.length === 0) throw new Error(`${file}: changes nothing`);
  return { name, breaks: headerIn(file, text, "breaks"), seeds, test, file, hunks };
}

/**
 * @param {string} file
 * @param {string} text
 * @param {string} key
 */
function headerIn(file, text, key) {
  const [head = ""] = text.split(/^--- /m);
  const value = new RegExp(`^# ${key}: *(.*\\S)`, "m").exec(head)?.[1];
  if (value === undefined) throw new Error(`${file}: has no line "# ${key}: ..."`);
  return value;
}

/**
 * @param {string} text
 * @returns {Hunk[]}
 */
function hunksOf(text) {
  /** @type {{ file: string, lines: string[] }[]} */
  const hunks = [];
  let file = "";
  for (const line of text.split("\n")) {
    if (line.startsWith("--- ")) file = line.slice("--- a/".length);
    else if (line.startsWith("@@ ")) hunks.push({ file, lines: [] });
    else if (/^[ -]/.test(line)) hunks.at(-1)?.lines.push(line.slice(1));
  }
  return hunks.map((hunk) => ({ file: hunk.file, before: hunk.lines.join("\n") }));
}

/**
 * Why a patch can't be applied to the tree at `top`; null when it can. With few lines of context a hunk could land in another place than it
 * was made for, so the lines that it takes the place of must stand there once.
 * @param {string} top
 * @param {Mutant} mutant
 * @returns {string | null}
 */
export function problemOf(top, mutant) {
  const result = applyIn(top, mutant, ["--check"]);
  if (result !== null) return result;
  for (const { file, before } of mutant.hunks) {
    const count = `\n${readFileSync(path.join(top, file), "utf8")}`.split(`\n${before}\n`).length - 1;
    if (count !== 1) return `${file}: a hunk's lines stand there ${count} times: give it more lines of context`;
  }
  return null;
}

/**
 * @param {string} top
 * @param {Mutant} mutant
 */
export function applyMutant(top, mutant) {
  const problem = applyIn(top, mutant, []);
  if (problem !== null) throw new Error(`${mutant.name}: ${problem}`);
}

/**
 * @param {string} top
 * @param {Mutant} mutant
 */
export function revertMutant(top, mutant) {
  const problem = applyIn(top, mutant, ["--reverse"]);
  if (problem !== null) throw new Error(`${mutant.name}: can't be taken back: ${problem}`);
}

/**
 * @param {string} top
 * @param {Mutant} mutant
 * @param {readonly string[]} options
 * @returns {string | null}
 */
function applyIn(top, mutant, options) {
  // A copy is no repository: git must not take one above it for its own, or it would pass over the files.
  const env = { ...process.env, GIT_CEILING_DIRECTORIES: path.dirname(top) };
  const { status, stderr, error } = spawnSync("git", ["apply", ...options, mutant.file], { cwd: top, env });
  if (error !== undefined) return error.message;
  return status === 0 ? null : stderr.toString().trim();
}
