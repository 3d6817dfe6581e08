/**
 * Makes a failing run smaller: fewer nodes' worth of faults, fewer clients, fewer actions, a shorter run. What is tried fails again if it
 * breaks one of the same rules. First in big steps of our own, then fast-check takes single faults away.
 */
import fc from "fast-check";
import type { PlannedFault } from "./run/fault-kinds.js";
import type { Plan } from "./run/plan.js";
import { run } from "./run/run.js";
import type { Problem } from "./run/run.js";

type Change = (plan: Plan) => Plan;

/** Runs that are tried, at most. */
const triesMax = 400;

export interface Shrunk {
  /** The smallest that was found. */
  readonly plan: Plan;
  /** Runs that were tried. */
  readonly tries: number;
}

export async function shrink(plan: Plan, problems: readonly Problem[]): Promise<Shrunk> {
  const rules = new Set(problems.map(({ rule }) => rule));
  let tries = 0;
  const fails = async (candidate: Plan): Promise<boolean> => {
    tries += 1;
    const result = await run(candidate);
    return result.problems.some(({ rule }) => rules.has(rule));
  };
  let smallest = plan;
  for (let isSmaller = true; isSmaller && tries < triesMax / 2; ) {
    isSmaller = false;
    for (const change of changesOf(smallest)) {
      const candidate = change(smallest);
      if (tries >= triesMax / 2 || !(await fails(candidate))) continue;
      smallest = candidate;
      isSmaller = true;
    }
  }
  smallest = { ...smallest, faults: await fewestFaults(smallest, fails) };
  return { plan: smallest, tries };
}

/** For people: the plan, or the file that holds it, and how to run it. */
export function shrunkLines({ plan, tries }: Shrunk, file: string | null): string[] {
  const found = `after ${tries} runs the smallest plan that fails is`;
  const command = `  npm run simulate -- --plan ${file ?? "smallest.json"} --trace`;
  if (file !== null) return [`${found} in ${file}; to run it:`, command];
  return [found, jsonOf(plan), "to run it, save it as smallest.json (--out does), then:", command];
}

export function jsonOf(plan: Plan): string {
  return JSON.stringify(plan, null, 2);
}

function* changesOf(plan: Plan): Generator<Change> {
  if (plan.faultyMs > 1_000) yield (from) => ({ ...from, faultyMs: Math.round(from.faultyMs / 2) });
  const kinds = [...new Set(plan.faults.map(({ kind }) => kind))];
  for (const left of kinds) yield (from) => ({ ...from, faults: from.faults.filter(({ kind }) => kind !== left) });
  if (plan.rawClients > 0) yield (from) => ({ ...from, rawClients: from.rawClients - 1 });
  if (plan.spares > 0) yield (from) => ({ ...from, spares: from.spares - 1 });
  if (plan.clients > 1) yield (from) => ({ ...from, clients: from.clients - 1 });
  if (plan.longHolds) yield (from) => ({ ...from, longHolds: false });
  if (plan.locks > 1) yield (from) => ({ ...from, locks: from.locks - 1 });
  if (plan.actionsMax > 100) yield (from) => ({ ...from, actionsMax: 100 });
  else if (plan.actionsMax > 1) yield (from) => ({ ...from, actionsMax: Math.ceil(from.actionsMax / 2) });
  if (!plan.healsAll) yield (from) => ({ ...from, healsAll: true });
}

async function fewestFaults(plan: Plan, fails: (plan: Plan) => Promise<boolean>): Promise<readonly PlannedFault[]> {
  const { faults } = plan;
  if (faults.length === 0) return faults;
  let fewest = faults;
  const property = fc.asyncProperty(fc.subarray([...faults]), async (some) => {
    const isBroken = await fails({ ...plan, faults: some });
    if (isBroken && some.length < fewest.length) fewest = some;
    return !isBroken;
  });
  await fc.check(property, {
    seed: plan.seed,
    examples: [[[...faults]]],
    numRuns: 1,
  });
  return fewest;
}
