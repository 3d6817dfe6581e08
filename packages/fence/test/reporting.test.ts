import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";

import { StaleTokenError, prometheusFenceMetrics } from "../src/index.js";
import type { ReportingOptions, StaleReport } from "../src/index.js";
import { postgresFences, postgresGuard } from "../src/postgres.js";
import { FakePool } from "./postgres/fake-pool.js";

/** A row whose fence is at 34. */
const newerRow = (): FakePool =>
  new FakePool(({ text }) => (text.startsWith("SELECT") ? [{ highest: "34", newer: true }] : []));
const columns = { table: "documents", key: "id", fence: "fence" };

async function refusedWith(options: ReportingOptions): Promise<unknown> {
  const documents = postgresGuard(newerRow(), { ...columns, ...options });
  return documents.update({ token: 33, holder: "worker-7" }, 42, { body: "x" }).catch((error: unknown) => error);
}

test("a row guard's class is its table, and its counter stands from the beginning", async () => {
  const metrics = prometheusFenceMetrics();
  const reports: StaleReport[] = [];
  const documents = postgresGuard(newerRow(), { ...columns, metrics, onStale: (report) => reports.push(report) });
  const series = 'holdfast_fence_rejected_total{guard="postgres",class="documents"}';
  assert.ok(metrics.prometheusText().includes(`${series} 0\n`));
  await assert.rejects(documents.update({ resource: "doc:42", token: 33 }, 42, { body: "x" }), StaleTokenError);
  assert.ok(metrics.prometheusText().includes(`${series} 1\n`));
  assert.deepEqual(reports, [
    {
      guard: "postgres",
      resource: "doc:42",
      resourceClass: "documents",
      holder: reports[0]?.holder,
      presented: 33,
      highest: 34,
    },
  ]);
});

test("a listener that throws or rejects is warned of, and the caller gets the refusal all the same", async () => {
  const failures: readonly (() => unknown)[] = [
    () => {
      throw new Error("pager is down");
    },
    () => Promise.reject(new Error("pager is down")),
  ];
  for (const onStale of failures) {
    const warned = once(process, "warning");
    assert.ok((await refusedWith({ onStale })) instanceof StaleTokenError);
    assert.match(String((await warned)[0]), /report of a stale token failed.*pager is down/);
  }
});

test("odd reporting options are refused by name, by every guard", () => {
  const odd: readonly (readonly [string, object])[] = [
    ["options.onStale", { onStale: "log" }],
    ["options.metrics", { metrics: {} }],
    ["options.metrics", { metrics: null }],
    ["options.resourceClass", { resourceClass: "" }],
    ["options.resourceClass", { resourceClass: 5 }],
  ];
  for (const [argument, options] of odd) {
    const expected = { code: "invalid_argument", argument };
    assert.throws(() => postgresGuard(newerRow(), { ...columns, ...options }), expected);
    assert.throws(() => postgresFences(newerRow(), options), expected);
  }
});
