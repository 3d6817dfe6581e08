/** What a client counts and times, as Prometheus reads it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { ClientMetrics } from "../src/client-metrics.js";
import { SecondsHistogram, secondsBounds } from "../src/histogram.js";
import { World } from "./world/world.js";

/** Series -> value. Throws for what is no line of the text format, for a series said twice and for one without its type. */
function seriesOf(text: string): Map<string, number> {
  assert.ok(text.endsWith("\n"));
  const series = new Map<string, number>();
  const typed = new Set<string>();
  for (const line of text.trimEnd().split("\n")) {
    const head = /^# (?:HELP|TYPE) ([a-z_]+) .+$/.exec(line);
    if (head !== null) {
      typed.add(head[1] ?? "");
      continue;
    }
    const match = /^([a-z_]+)((?:\{[a-z]+="[^"]*"(?:,[a-z]+="[^"]*")*\})?) (\S+)$/.exec(line);
    assert.ok(match !== null, line);
    const [, name = "", labels = "", value] = match;
    assert.ok(typed.has(name.replace(/_(bucket|sum|count)$/, "")) || typed.has(name), `${name} has no type`);
    assert.ok(!series.has(name + labels), `twice: ${line}`);
    assert.ok(Number.isFinite(Number(value)), line);
    series.set(name + labels, Number(value));
  }
  return series;
}

describe("a histogram", () => {
  test("counts every value once, below the bounds that it does not pass", () => {
    const value = fc.oneof(
      fc.constantFrom(...secondsBounds, 0),
      fc.double({ min: 0, max: 100, noNaN: true }),
      fc.constant(Number.MAX_SAFE_INTEGER),
    );
    fc.assert(
      fc.property(fc.array(value, { maxLength: 30 }), (values) => {
        const histogram = new SecondsHistogram();
        for (const one of values) histogram.record(one);
        const counts = histogram.lines("x", 'a="b"').map((line) => Number(line.split(" ")[1]));
        const expected = secondsBounds.map((bound) => values.filter((one) => one <= bound).length);
        assert.deepEqual(counts.slice(0, secondsBounds.length), expected);
        assert.equal(counts[secondsBounds.length], values.length);
        assert.equal(counts.at(-1), values.length);
      }),
    );
  });
});

describe("holdfast.metrics()", () => {
  test("has the five figures by their names, at 0 before anything happened", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const text = holdfast.metrics();
    const series = seriesOf(text);
    for (const name of ["acquire_seconds", "hold_seconds", "lease_margin_seconds"]) {
      assert.match(text, new RegExp(`^# TYPE holdfast_client_${name} histogram$`, "m"));
    }
    assert.equal(series.get('holdfast_client_renewals_total{outcome="renewed"}'), 0);
    const reasons = "expired forced max_hold closed restored session_gone clock_jump loop_stall".split(" ");
    const losses = reasons.map((reason) => series.get(`holdfast_client_losses_total{reason="${reason}"}`));
    assert.deepEqual(new Set(losses), new Set([0]));
    assert.equal([...series.keys()].filter((key) => key.startsWith("holdfast_client_losses_total")).length, 8);
  });

  test("waits by outcome and mode, holds by their ending", async () => {
    const world = new World();
    const holdfast = await world.connect({ ttlMs: 4_000 });
    const lock = await world.within(100, holdfast.acquire("a"));
    const reader = await world.within(100, holdfast.acquire("b", { mode: "shared", maxHoldMs: 1_000 }));
    await assert.rejects(world.within(5_000, holdfast.acquire("a", { waitMs: 3_000 })), { code: "wait_timeout" });
    assert.equal(reader.state, "lost");
    assert.equal(await world.within(100, holdfast.tryAcquire("a")), null);
    await world.within(100, lock.release());
    const forced = await world.within(100, holdfast.acquire("c"));
    await world.within(100, holdfast.forceRelease("c", forced.token));
    await world.clock.advance(10);
    const series = seriesOf(holdfast.metrics());
    const count = (rest: string): number | undefined => series.get(`holdfast_client_${rest}`);
    assert.equal(count('acquire_seconds_count{outcome="granted",mode="exclusive"}'), 2);
    assert.equal(count('acquire_seconds_count{outcome="granted",mode="shared"}'), 1);
    assert.equal(count('acquire_seconds_count{outcome="refused",mode="exclusive"}'), 1);
    assert.equal(count('acquire_seconds_sum{outcome="timeout",mode="exclusive"}'), 3);
    assert.equal(count('acquire_seconds_bucket{outcome="timeout",mode="exclusive",le="2.5"}'), 0);
    assert.equal(count('acquire_seconds_bucket{outcome="timeout",mode="exclusive",le="5"}'), 1);
    assert.equal(count('hold_seconds_count{ending="released"}'), 1);
    assert.equal(count('hold_seconds_count{ending="lost"}'), 1);
    assert.equal(count('hold_seconds_bucket{ending="max_hold",le="1"}'), 1);
    assert.equal(count('losses_total{reason="forced"}'), 1);
    assert.equal(count('losses_total{reason="max_hold"}'), 1);
    assert.equal(count('lock_count{mode="exclusive"}'), 0);
  });

  test("renewals, what was left at each, and the states of sessions", async () => {
    const world = new World();
    const holdfast = await world.connect({ ttlMs: 4_000 });
    await world.within(100, holdfast.acquire("a"));
    const value = (rest: string): number => seriesOf(holdfast.metrics()).get(`holdfast_client_${rest}`) ?? -1;
    assert.equal(value('session_state{state="open"}'), 1);
    await world.clock.advance(10_000);
    const renewed = value('renewals_total{outcome="renewed"}');
    assert.ok(renewed >= 7, String(renewed));
    assert.equal(value("lease_margin_seconds_count"), renewed);
    // Two thirds of the lease less its margin, more or less.
    assert.equal(value('lease_margin_seconds_bucket{le="1"}'), 0);
    assert.equal(value('lease_margin_seconds_bucket{le="5"}'), renewed);
    world.cluster.hasQuorum = false;
    await world.clock.advance(2_500);
    assert.ok(value('renewals_total{outcome="unanswered"}') > 0);
    assert.equal(value('session_state{state="jeopardy"}'), 1);
    assert.equal(value('session_state{state="open"}'), 0);
    await world.clock.advance(4_000);
    assert.equal(value('losses_total{reason="expired"}'), 1);
    assert.equal(value('session_state{state="jeopardy"}'), 0);
    assert.equal(value('lock_count{mode="exclusive"}'), 0);
  });

  test("a lock given back to a cluster that is silent has ended, and is no loss", async () => {
    const world = new World();
    const holdfast = await world.connect({ ttlMs: 4_000 });
    const lock = await world.within(100, holdfast.acquire("a"));
    for (const node of world.cluster.nodes) node.reach = "silent";
    assert.equal(await world.within(5_000, lock.release()), "already-lost");
    const series = seriesOf(holdfast.metrics());
    assert.equal(series.get('holdfast_client_hold_seconds_count{ending="released"}'), 1);
    assert.equal(series.get('holdfast_client_lock_count{mode="exclusive"}'), 0);
    const losses = [...series].filter(([key]) => key.startsWith("holdfast_client_losses_total"));
    assert.deepEqual(new Set(losses.map(([, value]) => value)), new Set([0]));
  });

  test("clients that share theirs are printed once, and the names of locks nowhere", async () => {
    const metrics = new ClientMetrics();
    const world = new World();
    const first = await world.connect({ metrics }, 1);
    const second = await world.connect({ metrics }, 2);
    await world.within(100, first.acquire("secret:1"));
    await world.within(100, second.semaphore("secret:2", { slots: 2 }).acquire());
    assert.equal(first.metrics(), second.metrics());
    const series = seriesOf(metrics.prometheusText());
    assert.equal(series.get('holdfast_client_lock_count{mode="exclusive"}'), 1);
    assert.equal(series.get('holdfast_client_lock_count{mode="slot"}'), 1);
    assert.doesNotMatch(metrics.prometheusText(), /secret/);
    await world.within(1_000, Promise.all([first.close(), second.close()]));
    const after = seriesOf(metrics.prometheusText());
    assert.equal(after.get('holdfast_client_losses_total{reason="closed"}'), 2);
    assert.equal(after.get('holdfast_client_session_state{state="open"}'), 0);
  });
});
