import { strict as assert } from "node:assert";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Registry } from "prom-client";
import { lagSeconds, registerProcessMetrics } from "../src/process-metrics.js";

test("the loop's lag is what goes beyond the monitor's own pause", () => {
  assert.equal(lagSeconds(500e6), 0);
  assert.equal(lagSeconds(499e6), 0, "a timer may fire early");
  assert.ok(Math.abs(lagSeconds(750e6) - 0.25) < 1e-9);
  assert.equal(lagSeconds(Number.NaN), 0, "nothing measured yet");
});

test("a loop that was blocked shows its lag once, an idle one next to none", async () => {
  const registry = new Registry();
  registerProcessMetrics(registry);
  const lag = async (): Promise<number> => {
    const [value] = (await registry.getSingleMetric("nodejs_eventloop_lag_p99_seconds")?.get())?.values ?? [];
    return value?.value ?? Number.NaN;
  };
  await sleep(700);
  await lag();
  // The first look after a reading begins the next measurement.
  await sleep(600);
  const endMs = performance.now() + 1_000;
  while (performance.now() < endMs);
  await sleep(600);
  const blocked = await lag();
  assert.ok(blocked > 0.3 && blocked < 5, `blocked: ${blocked}`);
  // Other processes may have the CPU for a moment: one quiet stretch is enough.
  let least = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < 10 && least > 0.1; tries += 1) {
    await sleep(700);
    least = Math.min(least, await lag());
  }
  assert.ok(least <= 0.1, `idle: ${least}`);
});
