/** Whole clusters under random faults. HOLDFAST_SEEDS=FROM-TO runs other seeds than the suite's; a failure names its seed. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RandomSchedule } from "./virtual/random-schedule.js";

const [from = 1, to = 60] = (process.env["HOLDFAST_SEEDS"] ?? "")
  .split("-")
  .filter((text) => text !== "")
  .map(Number);

describe("random schedules", () => {
  const totals: Record<string, number> = {};

  it(`keep the promises, and progress after healing: seeds ${from} to ${to}`, async () => {
    for (let seed = from; seed <= to; seed += 1) {
      const schedule = new RandomSchedule(seed);
      await schedule.run().catch((error: unknown) => {
        throw new Error(
          `seed ${seed}: ${error instanceof Error ? error.stack : String(error)}\n${schedule.describe()}`,
        );
      });
      for (const [name, count] of Object.entries(schedule.judge.counts)) totals[name] = (totals[name] ?? 0) + count;
    }
  });

  it("did what they are for", { skip: from !== 1 || to !== 60 }, () => {
    const { handovers = 0, ...others } = totals;
    // A lock passes on although its holder never said a word again.
    assert.ok(handovers >= 3, `handovers: ${handovers}`);
    for (const [name, count] of Object.entries(others)) assert.ok(count > 50, `${name}: ${count}`);
  });
});
