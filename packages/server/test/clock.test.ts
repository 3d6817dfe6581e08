import { strict as assert } from "node:assert";
import { describe, test } from "node:test";
import { createSystemClock } from "../src/clock.js";
import type { SystemClockParts } from "../src/clock.js";

/** A setTimeout that a test drives by hand, and that keeps the real one's limits. */
function fakeParts() {
  let nowMs = 0;
  let timers: { atMs: number; run: () => void }[] = [];
  const delays: number[] = [];
  const parts: SystemClockParts = {
    monotonicMs: () => nowMs,
    wallMs: () => 0,
    setTimeout: (run, delayMs) => {
      delays.push(delayMs);
      // As Node: above 2^31-1 it fires after 1 ms.
      const timer = { atMs: nowMs + (delayMs > 2 ** 31 - 1 ? 1 : delayMs), run };
      timers.push(timer);
      return timer;
    },
    clearTimeout: (handle) => {
      timers = timers.filter((timer) => timer !== handle);
    },
    setImmediate: (run) => run(),
  };
  const passTo = (toMs: number, earlyMs = 0): void => {
    for (;;) {
      const next = timers.filter((timer) => timer.atMs - earlyMs <= toMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined) break;
      timers = timers.filter((timer) => timer !== next);
      nowMs = Math.max(nowMs, next.atMs - earlyMs);
      next.run();
    }
    nowMs = toMs;
  };
  return { parts, delays, passTo, pending: () => timers.length };
}

describe("the clock", () => {
  test("cuts long waits in pieces and fires once, at the end", () => {
    const { parts, delays, passTo } = fakeParts();
    let fired = 0;
    const delayMs = 2 ** 31 + 5_000;
    createSystemClock(parts).setTimer(delayMs, () => (fired += 1));
    passTo(delayMs - 1);
    assert.equal(fired, 0);
    passTo(delayMs);
    assert.equal(fired, 1);
    assert.ok(delays.every((delay) => delay <= 2 ** 31 - 1));
    passTo(10 * delayMs);
    assert.equal(fired, 1);
  });

  test("a timer that fires early waits for the rest", () => {
    const { parts, passTo } = fakeParts();
    const clock = createSystemClock(parts);
    let firedAtMs = -1;
    clock.setTimer(100.5, () => (firedAtMs = clock.monotonicMs()));
    passTo(100.2, 0.9);
    assert.equal(firedAtMs, -1, "not before its time");
    passTo(103);
    assert.ok(firedAtMs >= 100.5 && firedAtMs <= 102.5, `${firedAtMs}`);
  });

  test("a cancelled timer never fires, not even from its own callback's turn", () => {
    const { parts, passTo, pending } = fakeParts();
    const clock = createSystemClock(parts);
    let fired = 0;
    const timer = clock.setTimer(10, () => (fired += 1));
    timer.cancel();
    timer.cancel();
    passTo(100);
    assert.deepEqual([fired, pending()], [0, 0]);
  });

  test("takes no delay that is no number", () => {
    const clock = createSystemClock(fakeParts().parts);
    for (const delay of [Number.NaN, Number.POSITIVE_INFINITY])
      assert.throws(() => clock.setTimer(delay, () => undefined), RangeError);
    let fired = false;
    const { parts, passTo } = fakeParts();
    createSystemClock(parts).setTimer(-5, () => (fired = true));
    passTo(2);
    assert.ok(fired, "the past is now");
  });

  test("the real one", async () => {
    const clock = createSystemClock();
    const before = clock.monotonicMs();
    for (let n = 0; n < 20; n += 1) {
      const dueMs = clock.monotonicMs() + 3.3;
      await new Promise<void>((resolve) => clock.setTimer(3.3, resolve));
      assert.ok(clock.monotonicMs() >= dueMs, "never early");
    }
    assert.ok(clock.monotonicMs() > before);
    assert.ok(Math.abs(clock.wallMs() - Date.now()) < 1_000);
    await new Promise<void>((resolve) => clock.setImmediate(resolve));
  });
});
