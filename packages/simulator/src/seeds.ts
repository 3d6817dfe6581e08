/** Some seeds in a row, for tests: they fail with everything that was found, and how to see it. */
import { Report } from "./report.js";
import { runSeed } from "./run/run-seed.js";

/** Throws when a run failed. Returns what all of them came to. */
export async function runSeeds(first: number, last: number): Promise<Report> {
  const report = new Report();
  const failures: string[] = [];
  for (let seed = first; seed <= last; seed += 1) {
    const summary = await runSeed(seed);
    const { problems } = summary;
    for (const { rule, message } of problems) failures.push(`seed ${seed}: ${rule}: ${message}`);
    if (problems.length > 0) failures.push(`  npm run simulate -- --seed ${seed} --trace`);
    report.add(summary, 0);
  }
  if (failures.length > 0) throw new Error(failures.join("\n"));
  return report;
}
