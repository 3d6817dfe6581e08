import assert from "node:assert/strict";
import { test } from "node:test";
import { noStatistics, RandomRun } from "./support/random-run.js";
import type { RunStatistics } from "./support/random-run.js";

/** RAFT_SEEDS=from-to runs others than the usual seeds. */
const [first, last] = (process.env["RAFT_SEEDS"] ?? "1-300").split("-").map(Number) as [number, number];

test(`random clusters keep every promise under faults and make progress after them (seeds ${first} to ${last})`, () => {
  const { total, seeds } = runAll("faults", 1_500);
  assert.ok(total.terms > 1.5 * seeds, `${total.terms} leaders`);
  assert.ok(total.committed > 5 * seeds, `${total.committed} entries`);
  assert.ok(total.crashes > seeds / 2, `${total.crashes} crashes`);
  assert.ok(total.installs > seeds / 10, `${total.installs} snapshots installed`);
  assert.ok(total.confirmed > seeds, `${total.confirmed} confirmed rounds`);
});

test(`they do so while members come and go (seeds ${first} to ${last})`, () => {
  const { total, seeds } = runAll("members", 2_000);
  assert.ok(total.changes > seeds, `${total.changes} changes of membership`);
  assert.ok(total.inherited > seeds / 10, `${total.inherited} joint configurations finished by another leader`);
  assert.ok(total.removals > seeds / 2, `${total.removals} nodes that learnt of their removal`);
  assert.ok(total.installs > seeds / 10, `${total.installs} snapshots installed`);
});

/** A run in which nothing happens proves nothing: what happened is returned. */
function runAll(focus: "faults" | "members", events: number): { total: RunStatistics; seeds: number } {
  const total = noStatistics();
  for (let seed = first; seed <= last; seed += 1) {
    try {
      const statistics = new RandomRun(seed, focus).run(events);
      for (const key of Object.keys(total) as (keyof RunStatistics)[]) total[key] += statistics[key];
    } catch (error) {
      throw new Error(`seed ${seed} of ${focus}: ${String(error)}`, { cause: error });
    }
  }
  return { total, seeds: last - first + 1 };
}
