/** What becomes of one mutant: planted in a copy, built, run over several ranges of seeds, taken out again. */
import { build } from "./copies.js";
import { applyMutant, revertMutant } from "./patches.js";
import { commonest, medianOf, runTest, simulate } from "./runs.js";

/** Ranges of seeds are so far apart that no budget makes them meet. */
const rangeStep = 1_000_000;

/**
 * @typedef {import("./patches.js").Mutant} Mutant
 * @typedef {{ mutant: Mutant, found: number, runs: number, median: number, rule: string, problem: string | null }} Verdict
 * `problem`: why it counts as a failure beside not being found.
 */

/**
 * @param {Mutant} mutant
 * @param {{ copy: string, clean: string, first: number, repeats: number }} options `clean`: a copy without any bug.
 * @returns {Promise<Verdict>}
 */
export async function judge(mutant, { copy, clean, first, repeats }) {
  const verdict = { mutant, found: 0, runs: repeats, median: Number.POSITIVE_INFINITY, rule: "", problem: null };
  applyMutant(copy, mutant);
  try {
    const project = mutant.test === null ? "packages/simulator" : mutant.test.replace(/\/dist\/.*/, "/test");
    const complaint = (await build(copy, project)) ?? (await build(clean, project));
    if (complaint !== null) return { ...verdict, problem: `does not compile: ${complaint}` };
    if (mutant.test !== null) return await judgeByTest({ ...verdict, runs: 1 }, mutant.test, copy, clean);
    const needed = [];
    const rules = [];
    for (let range = 0; range < repeats; range += 1) {
      const from = first + range * rangeStep;
      const finding = await simulate(copy, from, mutant.seeds);
      if (finding.kind === "broken") return { ...verdict, problem: `from seed ${from}: ${finding.problem}` };
      needed.push(finding.kind === "found" ? finding.seed - from + 1 : Number.POSITIVE_INFINITY);
      if (finding.kind !== "found") continue;
      // What fails without the bug as well says nothing about it.
      const control = await simulate(clean, finding.seed, 1);
      if (control.kind !== "survived") return { ...verdict, problem: problemWithout(finding, control) };
      rules.push(finding.rule);
    }
    return { ...verdict, found: rules.length, median: medianOf(needed), rule: commonest(rules) };
  } finally {
    revertMutant(copy, mutant);
  }
}

/**
 * @param {{ seed: number, rule: string, message: string }} finding
 * @param {Exclude<import("./runs.js").Finding, { kind: "survived" }>} control Of the same seed without the bug.
 */
function problemWithout({ seed, rule, message }, control) {
  if (control.kind === "broken") return `seed ${seed} can't be run without it: ${control.problem}`;
  return `seed ${seed} fails without it too: ${rule}: ${message}`;
}

/**
 * @param {Verdict} verdict
 * @param {string} test
 * @param {string} copy
 * @param {string} clean
 * @returns {Promise<Verdict>}
 */
async function judgeByTest(verdict, test, copy, clean) {
  if (await runTest(copy, test)) return verdict;
  // What fails without the bug as well says nothing about it.
  if (!(await runTest(clean, test))) return { ...verdict, problem: `${test} fails without it too` };
  return { ...verdict, found: 1, rule: test.replace("/dist/", "/") };
}

/**
 * Found in every range.
 * @param {Verdict} verdict
 */
export function isDead(verdict) {
  return verdict.problem === null && verdict.found === verdict.runs;
}

/**
 * @param {Verdict} verdict
 * @param {number} nameWidth
 */
export function rowOf({ mutant, found, runs, median, rule, problem }, nameWidth) {
  const seeds = mutant.test !== null ? "-" : Number.isFinite(median) ? String(median) : `> ${mutant.seeds}`;
  const end = problem ?? (found === runs ? rule : `${rule}  (breaks ${mutant.breaks})`.trim());
  return `${mutant.name.padEnd(nameWidth)}  ${`${found} of ${runs}`.padEnd(8)}  ${seeds.padStart(6)}  ${end}`;
}
