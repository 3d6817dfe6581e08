import assert from "node:assert/strict";
import { test } from "node:test";
import { LatencyRun } from "./support/latency-run.js";
import type { Latencies } from "./support/latency-run.js";

/** Sorted, in ms, over many deaths of a leader under load. */
function failovers(latencies: Latencies): number[] {
  return Array.from({ length: 150 }, (_, seed) => new LatencyRun(latencies, seed + 1).failoverMs()).toSorted(
    (a, b) => a - b,
  );
}

const settings: [string, Latencies, number][] = [
  ["on one machine", { nodes: 3, messageMs: 0.2, writeMs: 2, noticeMs: 2 }, 40],
  ["with slow disks", { nodes: 3, messageMs: 0.5, writeMs: 20, noticeMs: 10 }, 120],
  ["between sites", { nodes: 3, messageMs: 5, writeMs: 5, noticeMs: 30 }, 120],
  ["of five nodes", { nodes: 5, messageMs: 1, writeMs: 5, noticeMs: 10 }, 100],
];

for (const [name, latencies, medianMsMax] of settings) {
  test(`the successor of a dead leader ${name} commits in ${medianMsMax} ms at the median, and split votes are rare`, () => {
    const sorted = failovers(latencies);
    const median = sorted[75] ?? Number.POSITIVE_INFINITY;
    assert.ok(median <= medianMsMax, `median ${median} ms`);
    const slow = sorted.filter((ms) => ms > 300);
    assert.ok(slow.length <= 3, `${slow.length} of 150 took longer than 300 ms: ${slow.map(Math.round).join(", ")}`);
  });
}
