/** Runs one scenario after the other, tells of each, and sums up. */
import { appendFileSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { RealMachine } from "./machine/real-machine.js";
import { placeFor } from "./run/facilities.js";
import type { Facilities } from "./run/facilities.js";
import { runScenario } from "./run/run.js";
import type { RunSummary } from "./run/summary.js";
import { linesOf } from "./run/tell.js";
import type { RunResult } from "./report/results.js";
import type { Scenario } from "./scenario/scenario.js";

/** In the folder of the runs. */
export const resultsFile = "results.ndjson";

export interface FleetResult {
  readonly passed: readonly string[];
  readonly failed: readonly string[];
  /** With the reason. */
  readonly skipped: readonly string[];
}

export async function runFleet(
  scenarios: Iterable<Scenario>,
  options: {
    readonly out: string;
    readonly facilities: Facilities /** Of the first, when they are drawn. */;
    readonly seed: number | null;
  },
): Promise<FleetResult> {
  const { out, facilities } = options;
  const result = { passed: [] as string[], failed: [] as string[], skipped: [] as string[] };
  const asked = await RealMachine.open();
  try {
    let number = 0;
    for (const scenario of scenarios) {
      const seed = options.seed === null ? null : options.seed + number;
      number += 1;
      const place = await placeFor(scenario, facilities, asked);
      if (place.skipped !== null) {
        console.log(`skipped ${scenario.name}: ${place.skipped}`);
        result.skipped.push(`${scenario.name}: ${place.skipped}`);
        continue;
      }
      const folder = newFolder(out, scenario.name);
      const { openNetwork } = place;
      const run = { scenario, folder, seed, openNetwork, openMachine: () => RealMachine.open() };
      const isPassed = await runOne(run, out);
      (isPassed ? result.passed : result.failed).push(scenario.name);
    }
  } finally {
    await asked.close();
  }
  return result;
}

async function runOne(options: Parameters<typeof runScenario>[0], out: string): Promise<boolean> {
  const { scenario, folder } = options;
  try {
    const { summary } = await runScenario(options);
    for (const line of linesOf(summary, folder)) console.log(line);
    appendFileSync(join(out, resultsFile), `${JSON.stringify(withoutVerdict(summary))}\n`);
    return summary.isPassed;
  } catch (error) {
    console.log(`FAILED ${scenario.name}: ${folder}`);
    console.log(`  ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    return false;
  }
}

/** It stands in the run's own folder. */
function withoutVerdict({ verdict, ...rest }: RunSummary): RunResult {
  return { ...rest, violations: verdict.violations.length };
}

/** A run never goes on with what another has left. */
function newFolder(out: string, name: string): string {
  for (let number = 1; ; number += 1) {
    const folder = join(out, number === 1 ? name : `${name}-${number}`);
    if (existsSync(folder)) continue;
    mkdirSync(folder, { recursive: true });
    return folder;
  }
}
