import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Latencies } from "../../src/bench/latencies.js";

test("percentiles are those of a sorted list, to 1 %", () => {
  const value = fc.double({ min: 0.002, max: 60_000, noNaN: true });
  fc.assert(
    fc.property(
      fc.array(value, { minLength: 1, maxLength: 300 }),
      fc.constantFrom(0, 0.5, 0.9, 0.99, 1),
      (values, fraction) => {
        const latencies = new Latencies();
        for (const each of values) latencies.add(each);
        const sorted = [...values].sort((a, b) => a - b);
        const exact = sorted[Math.max(0, Math.ceil(sorted.length * fraction) - 1)] ?? 0;
        const found = latencies.percentileMs(fraction);
        assert.ok(found >= exact * 0.999999 && found <= exact * 1.010001, `${found} for ${exact}`);
      },
    ),
  );
});

test("nothing measured, and the smallest measure", () => {
  const latencies = new Latencies();
  assert.deepEqual(latencies.summary(), { count: 0, meanMs: 0, p50Ms: 0, p90Ms: 0, p99Ms: 0, p999Ms: 0, maxMs: 0 });
  latencies.add(0);
  assert.equal(latencies.percentileMs(0.5), 0);
});
