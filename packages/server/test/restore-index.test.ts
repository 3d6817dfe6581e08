import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RestoreIndexError, restoreIndexFor } from "../src/restore-index.js";

const nowMs = Date.UTC(2027, 3, 5, 6, 7, 8, 900);
const second = Math.floor(nowMs / 1_000);
const clockIndex = second * 2 ** 20;

function refusal(backupIndex: number, above: number | null, wallMs: number): RestoreIndexError["code"] {
  try {
    restoreIndexFor(backupIndex, above, wallMs);
  } catch (error) {
    assert.ok(error instanceof RestoreIndexError);
    return error.code;
  }
  return assert.fail("it was taken");
}

describe("the index of a restore", () => {
  it("is that of the clock, until the next second begins", () => {
    const expected = { index: clockIndex, notBeforeMs: (second + 1) * 1_000, isAheadOfClock: false };
    assert.deepEqual(restoreIndexFor(77, null, nowMs), expected);
    assert.deepEqual(restoreIndexFor(77, 2 ** 20, nowMs), expected, "what is below it makes no difference");
    assert.deepEqual(restoreIndexFor(clockIndex - 1, clockIndex, nowMs), expected);
  });

  it("is above what is known of the tokens out there, and says that the clock doesn't vouch for the next one", () => {
    const above = clockIndex + 5;
    const expected = { index: above, notBeforeMs: (second + 1) * 1_000, isAheadOfClock: true };
    assert.deepEqual(restoreIndexFor(77, above, nowMs), expected);
    assert.deepEqual(restoreIndexFor(clockIndex + 4, above, nowMs), expected);
  });

  it("rises with every second, so a restore that begins when another has ended lands 2^20 higher at least", () => {
    const first = restoreIndexFor(77, null, nowMs);
    const next = restoreIndexFor(77, null, first.notBeforeMs);
    assert.equal(next.index, first.index + 2 ** 20);
    assert.equal(restoreIndexFor(first.index + 2 ** 20 - 1, null, first.notBeforeMs).index, next.index);
  });

  it("is never the backup's own: tokens given out after the backup would be given out again", () => {
    assert.equal(refusal(clockIndex, null, nowMs), "index_unknown");
    assert.equal(refusal(clockIndex + 9, clockIndex + 9, nowMs), "index_unknown");
    assert.equal(refusal(clockIndex + 9, 5, nowMs), "index_unknown");
  });

  it("isn't drawn from a clock that is absurd", () => {
    for (const wallMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, Date.UTC(2023, 11, 31), Date.UTC(2209, 0)]) {
      assert.equal(refusal(77, null, wallMs), "absurd_clock", String(wallMs));
      assert.equal(refusal(77, 2 ** 51, wallMs), "absurd_clock", String(wallMs));
    }
    assert.equal(restoreIndexFor(77, null, Date.UTC(2024, 0)).isAheadOfClock, false);
    const late = restoreIndexFor(77, null, Date.UTC(2205, 0)).index;
    assert.ok(Number.isSafeInteger(late + 10 ** 15));
  });

  it("isn't taken from a number that is no safe index", () => {
    for (const above of [-1, 0.5, Number.NaN, 2 ** 52 + 1, Number.POSITIVE_INFINITY, 2 ** 60]) {
      assert.equal(refusal(77, above, nowMs), "unsafe_above", String(above));
    }
    assert.equal(restoreIndexFor(77, 2 ** 52, nowMs).index, 2 ** 52);
  });
});
