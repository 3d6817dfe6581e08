/** Runs of the simulator over a range of seeds, and what they say of a mutant. */
import { runNode } from "./children.js";

/** A bug can make a run go on for ever; a run without one takes well below this. */
const msPerSeedMax = 5_000;
const startMs = 60_000;
const testMsMax = 180_000;

/**
 * @typedef {{ kind: "found", seed: number, rule: string, message: string } | { kind: "survived" } | { kind: "broken", problem: string }} Finding
 * `broken`: the simulator itself came to a bad end, which says nothing of its checks.
 */

/**
 * @param {string} copy
 * @param {number} first
 * @param {number} seeds
 * @returns {Promise<Finding>}
 */
export async function simulate(copy, first, seeds) {
  // In one process the first seed that fails is the first that is told.
  const range = ["--first", String(first), "--seeds", String(seeds), "--workers", "1", "--stop"];
  const msMax = startMs + msPerSeedMax * seeds;
  try {
    const ending = await runNode(["packages/simulator/dist/src/main.js", ...range], { cwd: copy, msMax });
    if (ending.isLate) return { kind: "broken", problem: `no end within ${msMax} ms` };
    const { code, signal, stdout, stderr } = ending;
    return findingIn(code, stdout, stderr.trim() || `ended by ${signal ?? `exit code ${code}`}`);
  } catch (error) {
    return { kind: "broken", problem: String(error) };
  }
}

/**
 * @param {string} copy
 * @param {string} test A compiled test, from the top.
 * @returns {Promise<boolean>} Whether it passes. One that can't be started doesn't.
 */
export async function runTest(copy, test) {
  try {
    return (await runNode(["--test", test], { cwd: copy, msMax: testMsMax })).code === 0;
  } catch {
    return false;
  }
}

/**
 * @param {number | null} code
 * @param {string} output
 * @param {string} problem What is said when the output explains nothing.
 * @returns {Finding}
 */
export function findingIn(code, output, problem) {
  if (code === 0) return { kind: "survived" };
  const line = /^failed seed (\d+): ([^:\n]*): ?(.*)$/m.exec(output);
  if (code !== 1 || line === null) return { kind: "broken", problem };
  return { kind: "found", seed: Number(line[1]), rule: line[2], message: line[3] };
}

/**
 * How many seeds one run of several needed in the middle; Infinity when most needed more than they had.
 * @param {readonly number[]} needed
 */
export function medianOf(needed) {
  const sorted = [...needed].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.POSITIVE_INFINITY;
}

/**
 * The one found most often; of two, the one found first.
 * @param {readonly string[]} rules
 */
export function commonest(rules) {
  let best = "";
  let bestCount = 0;
  for (const rule of rules) {
    const count = rules.filter((other) => other === rule).length;
    if (count > bestCount) [best, bestCount] = [rule, count];
  }
  return best;
}
