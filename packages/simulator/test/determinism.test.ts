import assert from "node:assert/strict";
import { test } from "node:test";
import { drawPlan } from "../src/run/plan.js";
import { runSeed } from "../src/run/run-seed.js";

test("a seed is one run: the same hash and the same counts whatever ran before it", async () => {
  for (const seed of [6, 17]) {
    const first = await runSeed(seed);
    await runSeed(seed + 1);
    const second = await runSeed(seed);
    assert.equal(second.hash, first.hash);
    assert.deepEqual(second, first);
  }
});

test("other seeds are other runs", async () => {
  const hashes = new Set<string>();
  for (let seed = 3; seed <= 6; seed += 1) hashes.add((await runSeed(seed)).hash);
  assert.equal(hashes.size, 4);
});

test("plans differ in what they leave out", () => {
  const plans = Array.from({ length: 300 }, (_, at) => drawPlan(at + 1));
  assert.deepEqual(new Set(plans.map(({ nodes }) => nodes)), new Set([1, 3, 5]));
  const kinds = plans.map(({ faults }) => new Set(faults.map(({ kind }) => kind)).size);
  assert.ok(
    Math.min(...kinds) <= 2 && Math.max(...kinds) >= 10,
    `${Math.min(...kinds)} to ${Math.max(...kinds)} kinds`,
  );
  for (const { faults } of plans) {
    assert.deepEqual(
      faults.map(({ atMs }) => atMs),
      faults.map(({ atMs }) => atMs).sort((a, b) => a - b),
    );
  }
  assert.deepEqual(drawPlan(8_412), drawPlan(8_412));
});
