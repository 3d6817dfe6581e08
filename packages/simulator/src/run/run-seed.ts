/** What is kept of a run when thousands are run: no history. */
import { drawPlan } from "./plan.js";
import { run } from "./run.js";
import type { Problem } from "./run.js";
import type { Times } from "./liveness.js";

export interface Summary {
  readonly seed: number;
  readonly hash: string;
  readonly problems: readonly Problem[];
  readonly virtualMs: number;
  readonly events: number;
  readonly counts: readonly (readonly [string, number])[];
  readonly times: Times;
  readonly electionTimeoutMs: number;
}

export async function runSeed(seed: number): Promise<Summary> {
  const plan = drawPlan(seed);
  const { hash, problems, virtualMs, events, counts, times } = await run(plan);
  const { electionTimeoutMs } = plan.timing;
  return { seed, hash, problems, virtualMs, events, counts: [...counts], times, electionTimeoutMs };
}
