import assert from "node:assert/strict";
import { test } from "node:test";

import { openTelemetryFenceMetrics, prometheusFenceMetrics } from "../src/index.js";
import type { OpenTelemetryMeter } from "../src/index.js";

const help =
  "# HELP holdfast_fence_rejected_total Writes refused by a guard because a newer fencing token had been accepted.\n" +
  "# TYPE holdfast_fence_rejected_total counter\n";

test("Prometheus: a series for each guard and class, at 0 before the first refusal", () => {
  const metrics = prometheusFenceMetrics();
  assert.equal(metrics.prometheusText(), help);
  metrics.watched?.("redis", "documents");
  metrics.rejected("postgres", "accounts");
  metrics.rejected("postgres", "accounts");
  assert.equal(
    metrics.prometheusText(),
    `${help}holdfast_fence_rejected_total{guard="postgres",class="accounts"} 2\n` +
      'holdfast_fence_rejected_total{guard="redis",class="documents"} 0\n',
  );
});

test("Prometheus: labels are escaped, and the classes beyond fifty are one", () => {
  const metrics = prometheusFenceMetrics();
  metrics.rejected("redis", 'a"\\\n');
  assert.ok(metrics.prometheusText().endsWith('{guard="redis",class="a\\"\\\\\\n"} 1\n'), metrics.prometheusText());
  for (let at = 0; at < 60; at += 1) metrics.rejected("redis", `class ${at}`);
  const lines = metrics.prometheusText().trim().split("\n").slice(2);
  assert.equal(lines.length, 51);
  assert.ok(lines.includes('holdfast_fence_rejected_total{guard="redis",class="other"} 11'), lines.join("\n"));
  metrics.rejected("redis", "class 3");
  assert.ok(metrics.prometheusText().includes('class="class 3"} 2\n'));
});

test("OpenTelemetry: one counter with two attributes", () => {
  const added: unknown[] = [];
  const meter: OpenTelemetryMeter = {
    createCounter: (name, options) => {
      added.push([name, options?.unit]);
      return { add: (value, attributes) => added.push([value, attributes]) };
    },
  };
  const metrics = openTelemetryFenceMetrics(meter);
  metrics.watched?.("sqlite", "documents");
  metrics.rejected("sqlite", "documents");
  const attributes = { "holdfast.guard": "sqlite", "holdfast.resource.class": "documents" };
  assert.deepEqual(added, [
    ["holdfast.fence.rejected", "{write}"],
    [0, attributes],
    [1, attributes],
  ]);
  assert.throws(() => openTelemetryFenceMetrics({} as OpenTelemetryMeter), {
    code: "invalid_argument",
    argument: "meter",
  });
});
