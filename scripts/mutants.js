/**
 * Plants the bugs of packages/simulator/mutants, one at a time, in a copy of the code, and demands that the simulator finds each within
 * its seed budget: `npm run mutants`. `--only TEXT` those whose name contains it; `--first SEED`; `--repeats N` ranges of seeds for each;
 * `--jobs N` at a time. `--check`: only whether each patch applies to the tree as it is; with `--compile`: whether each compiles.
 */
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build, Copies } from "./mutants/copies.js";
import { isDead, judge, rowOf } from "./mutants/judge.js";
import { applyMutant, problemOf, readMutants, revertMutant } from "./mutants/patches.js";

/** @typedef {import("./mutants/patches.js").Mutant} Mutant */

const top = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const { values } = parseArgs({
  options: {
    check: { type: "boolean", default: false },
    compile: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    first: { type: "string", default: "1" },
    repeats: { type: "string", default: "3" },
    jobs: { type: "string", default: String(Math.min(os.availableParallelism(), 2)) },
  },
});
const mutants = readMutants(path.join(top, "packages/simulator/mutants")).filter(({ name }) =>
  name.includes(values.only),
);

if (mutants.length === 0) {
  console.error(`mutants: none is named like ${values.only}`);
  process.exitCode = 1;
} else if (!checkPatches()) {
  process.exitCode = 1;
} else if (!values.check) {
  process.exitCode = (await withCopies(findAll)) ? 0 : 1;
} else if (values.compile) {
  process.exitCode = (await withCopies(compileAll)) ? 0 : 1;
}

function checkPatches() {
  const problems = mutants.flatMap((mutant) => {
    const problem = problemOf(top, mutant);
    return problem === null ? [] : [`${path.relative(top, mutant.file)}: ${problem}`];
  });
  for (const problem of problems) console.error(problem);
  if (values.check) console.log(`mutants: ${mutants.length - problems.length} of ${mutants.length} apply`);
  return problems.length === 0;
}

/** @param {(copies: Copies, clean: string) => boolean | Promise<boolean>} body */
async function withCopies(body) {
  const copies = new Copies(top);
  process.on("exit", () => copies.remove());
  for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM"])) process.on(signal, () => process.exit(130));
  const clean = copies.fresh();
  const complaint = build(clean);
  if (complaint === null) return await body(copies, clean);
  console.error(`mutants: the code does not compile as it is: ${complaint}`);
  return false;
}

/**
 * @param {Copies} _copies
 * @param {string} copy
 */
function compileAll(_copies, copy) {
  let failures = 0;
  for (const mutant of mutants) {
    applyMutant(copy, mutant);
    const complaint = build(copy);
    revertMutant(copy, mutant);
    if (complaint === null) continue;
    failures += 1;
    console.error(`${mutant.name} does not compile: ${complaint}`);
  }
  console.log(`mutants: ${mutants.length - failures} of ${mutants.length} compile`);
  return failures === 0;
}

/**
 * @param {Copies} copies
 * @param {string} clean
 */
async function findAll(copies, clean) {
  const first = wholeNumber("first");
  const repeats = wholeNumber("repeats");
  const nameWidth = Math.max(...mutants.map(({ name }) => name.length));
  console.log(`${"mutant".padEnd(nameWidth)}  ${"found in".padEnd(8)}  ${"median".padStart(6)}  rule`);
  const waiting = [...mutants];
  /** @type {import("./mutants/judge.js").Verdict[]} */
  const verdicts = [];
  const work = async () => {
    const copy = copies.again(clean);
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const verdict = await judge(mutant, { copy, clean, first, repeats });
      verdicts.push(verdict);
      console.log(rowOf(verdict, nameWidth));
    }
  };
  await Promise.all(Array.from({ length: Math.min(wholeNumber("jobs"), mutants.length) }, work));
  const alive = verdicts.filter((verdict) => !isDead(verdict)).map(({ mutant }) => mutant.name);
  console.log(`mutants: ${verdicts.length - alive.length} of ${verdicts.length} found within their budgets`);
  if (alive.length > 0) console.log(`mutants: not found: ${alive.sort().join(", ")}`);
  return alive.length === 0;
}

/** @param {"first" | "repeats" | "jobs"} name */
function wholeNumber(name) {
  const value = Number(values[name]);
  if (!Number.isSafeInteger(value) || value < 1) throw new Error(`--${name} must be a whole number above 0`);
  return value;
}
