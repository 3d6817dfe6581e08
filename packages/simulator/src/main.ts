/** The command line: npm run simulate -- --help. */
import { readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { runFleet } from "./fleet.js";
import { Report } from "./report.js";
import { drawPlan } from "./run/plan.js";
import type { Plan } from "./run/plan.js";
import { run } from "./run/run.js";
import type { Summary } from "./run/run-seed.js";
import { shrink } from "./shrink.js";
import { timelineOf } from "./timeline.js";

const usage = `usage: npm run simulate -- [options]
  --plan FILE    one run of a plan that --shrink has printed; with --trace its timeline
  --seed S       one run; with --trace its timeline, with --shrink the smallest plan that fails
  --lines N      of the timeline, the last ones (default 200)
  --first F      the first of many seeds (default 1)
  --seeds N      how many (default 100)
  --workers W    threads (default: one per core)
  --stop         end at the first seed that fails
  --hashes       print each seed's trace hash
  --table        print everything that was counted
  --marks        fail when a mark was met by no run
`;

const { values } = parseArgs({
  options: {
    plan: { type: "string" },
    seed: { type: "string" },
    trace: { type: "boolean", default: false },
    shrink: { type: "boolean", default: false },
    lines: { type: "string", default: "200" },
    first: { type: "string", default: "1" },
    seeds: { type: "string", default: "100" },
    workers: { type: "string", default: String(availableParallelism()) },
    stop: { type: "boolean", default: false },
    hashes: { type: "boolean", default: false },
    table: { type: "boolean", default: false },
    marks: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

if (values.help) console.log(usage);
else if (values.plan !== undefined) await showOne(JSON.parse(await readFile(values.plan, "utf8")) as Plan);
else if (values.seed !== undefined) await showOne(drawPlan(numberIn("seed", values.seed)));
else await runMany();

/** Ends with 64 when the option is no whole number from 1 on. */
function numberIn(name: string, text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 1) return number;
  console.error(`--${name} ${text} is no whole number from 1 on\n${usage}`);
  process.exit(64);
}

async function showOne(plan: Plan): Promise<void> {
  const { seed } = plan;
  const result = await run(plan, { isShown: values.trace });
  if (values.trace) for (const line of timelineOf(result, numberIn("lines", values.lines))) console.log(line);
  for (const { rule, message } of result.problems) console.log(`failed seed ${seed}: ${rule}: ${message}`);
  console.log(
    `seed ${seed}: hash ${result.hash}, ${(result.virtualMs / 1_000).toFixed(1)} virtual s, ${result.events} events`,
  );
  if (result.problems.length === 0) return;
  process.exitCode = 1;
  if (values.shrink) for (const line of await shrink(plan, result.problems)) console.log(line);
}

async function runMany(): Promise<void> {
  const report = new Report();
  const workers = numberIn("workers", values.workers);
  await runFleet({
    first: numberIn("first", values.first),
    seeds: numberIn("seeds", values.seeds),
    workers,
    onRun: (summary, cpuMs) => {
      report.add(summary, cpuMs);
      tell(summary);
      return !(values.stop && summary.problems.length > 0);
    },
  });
  for (const line of report.lines()) console.log(line);
  if (values.table) for (const line of report.table()) console.log(line);
  if (report.failed > 0 || (values.marks && report.missingMarks().length > 0)) process.exitCode = 1;
}

function tell({ seed, hash, problems }: Summary): void {
  if (values.hashes) console.log(`${seed} ${hash}`);
  const [first, ...others] = problems;
  if (first === undefined) return;
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  console.log(`failed seed ${seed}: ${first.rule}: ${first.message}${more}`);
  console.log(`  npm run simulate -- --seed ${seed} --trace`);
}
