/** Some seeds in a row, for tests: they fail with everything that was found, and how to see it. */
import { runApart } from "./fleet.js";
import { Report } from "./report.js";
import type { Summary } from "./run/run-seed.js";

/**
 * Throws when a run failed. Returns what all of them came to. They run in another process: in this one the test runner watches each promise
 * (Node 20), which makes them slower.
 */
export async function runSeeds(first: number, last: number): Promise<Report> {
  const report = new Report();
  const failures: string[] = [];
  const onRun = (summary: Summary): boolean => {
    const { seed, problems } = summary;
    for (const { rule, message } of problems) failures.push(`seed ${seed}: ${rule}: ${message}`);
    if (problems.length > 0) failures.push(`  npm run simulate -- --seed ${seed} --trace`);
    report.add(summary, 0);
    return true;
  };
  await runApart({ first, seeds: last - first + 1, workers: 1, onRun });
  if (failures.length > 0) throw new Error(failures.join("\n"));
  return report;
}
