/** Some seeds in a row, for tests: they fail with everything that was found, and how to see it. */
import { runSeed } from "./run/run-seed.js";

/** Throws when a run failed. Returns how often each thing was counted in all of them. */
export async function runSeeds(first: number, last: number): Promise<ReadonlyMap<string, number>> {
  const totals = new Map<string, number>();
  const failures: string[] = [];
  for (let seed = first; seed <= last; seed += 1) {
    const { problems, counts } = await runSeed(seed);
    for (const { rule, message } of problems) failures.push(`seed ${seed}: ${rule}: ${message}`);
    if (problems.length > 0) failures.push(`  npm run simulate -- --seed ${seed} --trace`);
    for (const [name, count] of counts) totals.set(name, (totals.get(name) ?? 0) + count);
  }
  if (failures.length > 0) throw new Error(failures.join("\n"));
  return totals;
}
