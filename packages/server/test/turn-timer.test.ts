import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Clock, Timer } from "../src/ports.js";
import { TurnTimer } from "../src/turn-timer.js";

/** Timers fire a millisecond late, as Node's do at least. */
class LateClock {
  nowMs = 1_000;
  private readonly timers = new Set<{ readonly dueMs: number; readonly run: () => void }>();

  monotonicMs(): number {
    return this.nowMs;
  }

  setTimer(delayMs: number, run: () => void): Timer {
    const timer = { dueMs: this.nowMs + Math.max(delayMs, 1), run };
    this.timers.add(timer);
    return { cancel: () => this.timers.delete(timer) };
  }

  pass(ms: number): void {
    this.nowMs += ms;
    for (const timer of [...this.timers]) if (timer.dueMs <= this.nowMs && this.timers.delete(timer)) timer.run();
  }
}

function timerOf(): { clock: LateClock; timer: TurnTimer } {
  const clock = new LateClock();
  return { clock, timer: new TurnTimer(clock as unknown as Clock, () => {}) };
}

describe("the timer of turns", () => {
  it("fires for a deadline that has passed, though each turn is followed by another and arms it", () => {
    const { clock, timer } = timerOf();
    timer.arm(990);
    clock.nowMs += 10;
    timer.arm(990);
    clock.nowMs += 10;
    timer.arm(1_015);
    assert.equal(timer.takeDue(), false);
    clock.pass(0);
    assert.equal(timer.takeDue(), true);
    assert.equal(timer.takeDue(), false);
  });

  it("is set anew for an earlier deadline, and for one in the future", () => {
    const { clock, timer } = timerOf();
    timer.arm(1_100);
    timer.arm(1_050);
    clock.pass(50);
    assert.equal(timer.takeDue(), true);
    timer.arm(1_000);
    timer.arm(1_200);
    clock.pass(100);
    assert.equal(timer.takeDue(), false);
    clock.pass(50);
    assert.equal(timer.takeDue(), true);
  });
});
