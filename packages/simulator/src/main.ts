/** The command line: npm run simulate -- --help. */
import { readFile, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { readCommand, usage } from "./command-line.js";
import type { ManyRuns, OneRun } from "./command-line.js";
import { runFleet } from "./fleet.js";
import { Report } from "./report.js";
import { parsePlan } from "./run/plan-checks.js";
import { drawPlan } from "./run/plan.js";
import type { Plan } from "./run/plan.js";
import { run } from "./run/run.js";
import type { Problem } from "./run/run.js";
import type { Summary } from "./run/run-seed.js";
import { jsonOf, shrink, shrunkLines } from "./shrink.js";
import { timelineOf, windowOf } from "./timeline.js";
import { usageExitCode } from "./words.js";

/** Something is wrong with the simulator itself, or its machine (EX_SOFTWARE of sysexits.h). */
const brokenExitCode = 70;
const progressEveryMs = 30_000;

const read = readCommand(process.argv.slice(2), availableParallelism());
if ("problems" in read) refuse(read.problems, usage);
else if (read.command.kind === "help") console.log(usage);
else if (read.command.kind === "one") await runOne(read.command);
else await runMany(read.command);

/** `more`: printed after the problems. */
function refuse(problems: readonly string[], more: string): void {
  for (const problem of problems) console.error(`simulate: ${problem}`);
  if (more !== "") console.error(more);
  process.exitCode = usageExitCode;
}

async function runOne(options: OneRun): Promise<void> {
  const { source } = options;
  if ("seed" in source) await showRun(drawPlan(source.seed), options);
  else {
    const plan = await planIn(source.file);
    if (plan !== null) await showRun(plan, options);
  }
}

/** Null when the file holds no plan that can be run; then it has been said why. */
async function planIn(file: string): Promise<Plan | null> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    refuse([`${file}: can't be read: ${reasonOf(error)}`], "");
    return null;
  }
  const result = parsePlan(text);
  if ("plan" in result) return result.plan;
  refuse(
    result.problems.map(({ path, problem }) => (path === "" ? `${file}: ${problem}` : `${file}: ${path}: ${problem}`)),
    "",
  );
  return null;
}

async function showRun(plan: Plan, { isTraced, linesMax, isShrunk, out }: OneRun): Promise<void> {
  const { seed } = plan;
  const result = await run(plan, { isShown: isTraced });
  if (isTraced) for (const line of windowOf(timelineOf(result), linesMax)) console.log(line);
  for (const { rule, message } of result.problems) console.log(`failed seed ${seed}: ${rule}: ${message}`);
  console.log(
    `seed ${seed}: hash ${result.hash}, ${(result.virtualMs / 1_000).toFixed(1)} virtual s, ${result.events} events`,
  );
  if (result.problems.length > 0) process.exitCode = 1;
  if (isShrunk && result.problems.length === 0) console.log("nothing to shrink: no rule was broken");
  else if (isShrunk) await showSmallest(plan, result.problems, out);
}

async function showSmallest(from: Plan, problems: readonly Problem[], out: string | null): Promise<void> {
  const shrunk = await shrink(from, problems);
  const isWritten = out !== null && (await isPlanWritten(out, shrunk.plan));
  for (const line of shrunkLines(shrunk, isWritten ? out : null)) console.log(line);
}

/** What took so long to find isn't lost when it can't be written. */
async function isPlanWritten(file: string, plan: Plan): Promise<boolean> {
  try {
    await writeFile(file, `${jsonOf(plan)}\n`);
    return true;
  } catch (error) {
    console.error(`simulate: ${file}: can't be written: ${reasonOf(error)}`);
    return false;
  }
}

async function runMany(options: ManyRuns): Promise<void> {
  const report = new Report();
  const timer = setInterval(() => console.error(`simulate: ${report.progress(options.seeds)}`), progressEveryMs);
  try {
    await runFleet({
      ...options,
      onRun: (summary, cpuMs) => {
        report.add(summary, cpuMs);
        tell(summary, options.hasHashes);
        return !(options.isStopped && summary.problems.length > 0);
      },
    });
  } catch (error) {
    console.error(`simulate: ${reasonOf(error)}`);
    process.exitCode = brokenExitCode;
    return;
  } finally {
    clearInterval(timer);
  }
  for (const line of report.lines()) console.log(line);
  if (options.hasTable) for (const line of report.table()) console.log(line);
  const missing = options.needsMarks ? report.missingMarks() : [];
  if (missing.length > 0) console.log(`failed: marks never met: ${missing.join("; ")}`);
  if (report.failed > 0 || missing.length > 0) process.exitCode = 1;
}

function tell({ seed, hash, problems }: Summary, hasHashes: boolean): void {
  if (hasHashes) console.log(`${seed} ${hash}`);
  const [first, ...others] = problems;
  if (first === undefined) return;
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  console.log(`failed seed ${seed}: ${first.rule}: ${first.message}${more}`);
  console.log(`  npm run simulate -- --seed ${seed} --trace`);
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT") return "there is no such file or folder";
  return code === "EISDIR" ? "it is a folder" : error.message;
}
