import { strict as assert } from "node:assert";
import { test } from "node:test";
import { createSystemClock } from "../src/clock.js";
import { Sweeper } from "../src/sweeper.js";

test("a sweep after a stall of our own is passed over: what the others sent hasn't been read yet", () => {
  let nowMs = 0;
  let due: { atMs: number; run: () => void } | null = null;
  const clock = {
    ...createSystemClock(),
    monotonicMs: () => nowMs,
    setTimer: (delayMs: number, run: () => void) => {
      const mine = { atMs: nowMs + delayMs, run };
      due = mine;
      return { cancel: () => (due = due === mine ? null : due) };
    },
  };
  const passTo = (ms: number): void => {
    nowMs = ms;
    if (due !== null && due.atMs <= nowMs) due.run();
  };
  let sweeps = 0;
  const sweeper = new Sweeper(clock, 1_000, () => (sweeps += 1));
  sweeper.start();
  passTo(1_000);
  passTo(2_400);
  assert.equal(sweeps, 2);
  passTo(12_000);
  assert.equal(sweeps, 2, "the stall");
  passTo(13_000);
  assert.equal(sweeps, 3);
  sweeper.stop();
  passTo(20_000);
  assert.equal(sweeps, 3);
});
