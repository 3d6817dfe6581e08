/**
 * Plants the bugs of packages/simulator/mutants, one at a time, in a copy of the code, and demands that the simulator finds each within
 * its seed budget: `npm run mutants -- --help`.
 */
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { endOnSignals } from "./mutants/children.js";
import { build, Copies } from "./mutants/copies.js";
import { isDead, judge, rowOf } from "./mutants/judge.js";
import { readOptions, usage } from "./mutants/options.js";
import { applyMutant, problemOf, readMutants, revertMutant } from "./mutants/patches.js";

/** @typedef {import("./mutants/patches.js").Mutant} Mutant */

/** Called wrongly (EX_USAGE of sysexits.h). */
const usageExitCode = 64;

const top = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const { options, problems } = readOptions(process.argv.slice(2), { jobs: Math.min(os.availableParallelism(), 2) });
const mutants = readMutants(path.join(top, "packages/simulator/mutants")).filter(({ name }) =>
  name.includes(options.only),
);
if (mutants.length === 0) problems.push(`no mutant's name contains ${options.only}`);

if (options.mode === "help") console.log(usage);
else if (problems.length > 0) {
  for (const problem of problems) console.error(`mutants: ${problem}`);
  console.error(usage);
  process.exitCode = usageExitCode;
} else process.exitCode = (await isWell()) ? 0 : 1;

async function isWell() {
  if (!checkPatches()) return false;
  if (options.mode === "check") return true;
  return await withCopies(options.mode === "compile" ? compileAll : findAll);
}

function checkPatches() {
  const misfits = mutants.flatMap((mutant) => {
    const problem = problemOf(top, mutant);
    return problem === null ? [] : [`${path.relative(top, mutant.file)}: ${problem}`];
  });
  for (const misfit of misfits) console.error(misfit);
  if (options.mode !== "find") console.log(`mutants: ${mutants.length - misfits.length} of ${mutants.length} apply`);
  return misfits.length === 0;
}

/** @param {(copies: Copies, clean: string) => Promise<boolean>} body */
async function withCopies(body) {
  const copies = new Copies(top);
  process.on("exit", () => copies.remove());
  endOnSignals();
  const clean = copies.fresh();
  const complaint = await build(clean);
  if (complaint === null) return await body(copies, clean);
  console.error(`mutants: the code does not compile as it is: ${complaint}`);
  return false;
}

/**
 * @param {Copies} _copies
 * @param {string} copy
 */
async function compileAll(_copies, copy) {
  let failures = 0;
  for (const mutant of mutants) {
    applyMutant(copy, mutant);
    const complaint = await build(copy);
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
  const { first, repeats, jobs } = options;
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
  await Promise.all(Array.from({ length: Math.min(jobs, mutants.length) }, work));
  const alive = verdicts.filter((verdict) => !isDead(verdict)).map(({ mutant }) => mutant.name);
  console.log(`mutants: ${verdicts.length - alive.length} of ${verdicts.length} found within their budgets`);
  if (alive.length > 0) console.log(`mutants: not found: ${alive.sort().join(", ")}`);
  return alive.length === 0;
}
