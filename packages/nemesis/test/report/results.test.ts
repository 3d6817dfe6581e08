import assert from "node:assert/strict";
import { test } from "node:test";
import { resultsText } from "../../src/report/results.js";
import type { RunResult } from "../../src/report/results.js";

const fault = { kind: "cut", text: "cut n1 <-> n2", from: 0, to: 1, elections: 1, termFrom: 1, termTo: 2 };

function run(scenario: string, more: Partial<RunResult> = {}): RunResult {
  return {
    scenario,
    about: "",
    mode: "netns",
    seed: null,
    nodes: ["n1", "n2", "n3"],
    workers: ["w1"],
    electionTimeoutMs: 500,
    ttlMs: 2_000,
    startedWallTime: "2026-12-01T08:36:02.180Z",
    startedAt: 1_000,
    endedAt: 37_000,
    faults: [{ ...fault, outageMs: 300.4, waitP99Ms: 70, boundMs: 4_500, bytesPassed: 0 }],
    load: { operations: 20, grants: 10, releases: 10, unknown: 0, losses: 0 },
    cluster: { elections: 1, ownElections: 1, installs: 0, failovers: 1, termFrom: 1, termTo: 2, committed: 20 },
    store: { guardedWrites: 5, refused: 0, lostGuarded: 0, unguardedWrites: 5, lostUnguarded: 0 },
    log: { toldBy: "n1", snapshots: [] },
    unavailability: { maxMs: 300, p99Ms: 300 },
    expectations: [],
    isPassed: true,
    violations: 0,
    ...more,
  };
}

test("runs are summed up by scenario, those from seeds as one", () => {
  const worse = { ...fault, outageMs: 800, waitP99Ms: 70, boundMs: 6_000, bytesPassed: 7 };
  const store = { guardedWrites: 5, refused: 1, lostGuarded: 0, unguardedWrites: 6, lostUnguarded: 4 };
  const cluster = { ...run("").cluster, elections: 3, ownElections: 2 };
  const unbounded = [{ ...fault, outageMs: 50, waitP99Ms: 50, boundMs: null, bytesPassed: null }];
  const text = resultsText([
    run("split"),
    run("drawn-8", { seed: 8, mode: "proxy", nodes: ["n1", "n2", "n3", "n4", "n5"], faults: unbounded }),
    run("drawn-9", { seed: 9, mode: "proxy", faults: [] }),
    run("split", { faults: [worse], cluster, store, isPassed: false, violations: 2 }),
  ]);
  const lines = text.split("\n");
  assert.deepEqual(lines.slice(7), [
    "| scenario | nodes | runs | grants | elections | outage | bound | refused | lost unguarded |",
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    "| drawn from a seed | 3, 5 | 2 | 20 | 2 | 50 |  |  |  |",
    "| split | 3 | 2 | 20 | 4 (1) | 800 | 6000 | 1 | 4 |",
    "",
    "Over all 2 faults with a bound: median 300 ms, p99 800 ms, max 800 ms.",
  ]);
  const totals = lines.slice(0, 6).join(" ");
  assert.match(
    totals,
    /^4 runs of 2 scenarios, 3 passed; 2 in namespaces, 2 over proxies; 0\.04 hours of load, 3 faults,/,
  );
  assert.match(totals, /Rules of the checker broken: 2\. .* stale ones refused: 1\. .* cut: 7, in 2 cuts\.$/);
});

test("without a fault that has a bound there is no outage to tell", () => {
  assert.match(resultsText([run("calm", { faults: [] })]), /No fault had a bound\.$/);
});
