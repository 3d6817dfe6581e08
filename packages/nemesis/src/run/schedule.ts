/** Carries out a schedule in time, and notes for each step what came of it. */
import { setTimeout as sleep } from "node:timers/promises";
import { machineMs } from "../clock.js";
import type { Step } from "../scenario/scenario.js";
import type { Faults } from "./faults.js";

export interface DoneStep {
  readonly step: Step;
  readonly text: string;
  readonly from: number;
  readonly to: number | null;
  readonly bytesPassed: number | null;
}

/** Resolves when the load has run for `seconds` and every step has ended. Steps may overlap; each begins when its time has come. */
export async function carryOut(
  steps: readonly Step[],
  seconds: number,
  faults: Faults,
  startedAt: number,
): Promise<readonly DoneStep[]> {
  const until = async (atSeconds: number): Promise<void> => {
    await sleep(Math.max(0, startedAt + atSeconds * 1_000 - machineMs()));
  };
  const done = await Promise.all(
    steps.map(async (step): Promise<DoneStep> => {
      await until(step.at);
      const before = machineMs();
      const begun = await faults.begin(step);
      // A pause begins when its holder is caught. What takes its time otherwise (a node that ends in order) is part of the fault.
      const from = step.action.kind === "pause" ? machineMs() : before;
      if (step.forSeconds === null) {
        const { bytesPassed } = await begun.end();
        return { step, text: begun.text, from, to: step.action.kind === "roll" ? machineMs() : null, bytesPassed };
      }
      await sleep(step.forSeconds * 1_000);
      const to = machineMs();
      const { bytesPassed } = await begun.end();
      return { step, text: begun.text, from, to, bytesPassed };
    }),
  );
  await until(seconds);
  return [...done].sort((a, b) => a.from - b.from);
}
