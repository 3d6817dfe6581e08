import assert from "node:assert/strict";
import { test } from "node:test";
import { RandomRun } from "./support/random-run.js";
import type { RunStatistics } from "./support/random-run.js";

/** RAFT_SEEDS=from-to runs others than the usual seeds. */
const [first, last] = (process.env["RAFT_SEEDS"] ?? "1-300").split("-").map(Number) as [number, number];

test(`random clusters keep every promise under faults and make progress after them (seeds ${first} to ${last})`, () => {
  const total: RunStatistics = { terms: 0, committed: 0, crashes: 0, installs: 0, confirmed: 0, transfers: 0 };
  for (let seed = first; seed <= last; seed += 1) {
    let statistics: RunStatistics;
    try {
      statistics = new RandomRun(seed).run(1_500);
    } catch (error) {
      throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
    }
    for (const key of Object.keys(total) as (keyof RunStatistics)[]) total[key] += statistics[key];
  }
  // A run in which nothing happens proves nothing.
  const seeds = last - first + 1;
  assert.ok(total.terms > 1.5 * seeds, `${total.terms} leaders`);
  assert.ok(total.committed > 5 * seeds, `${total.committed} entries`);
  assert.ok(total.crashes > seeds / 2, `${total.crashes} crashes`);
  assert.ok(total.installs > seeds / 10, `${total.installs} snapshots installed`);
  assert.ok(total.confirmed > seeds, `${total.confirmed} confirmed rounds`);
});
