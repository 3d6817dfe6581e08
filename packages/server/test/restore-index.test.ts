import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RestoreIndexError, restoreIndexFor } from "../src/restore-index.js";

const nowMs = Date.UTC(2027, 3, 5, 6, 7, 8, 900);
const second = Math.floor(nowMs / 1_000);
const clockIndex = second * 2 ** 20;

const minuteMs = 60_000;
/** Of a cluster that lay far below the clock. */
const backup = { index: 77, takenAtMs: nowMs - minuteMs };

function refusal(
  { index, takenAtMs = backup.takenAtMs }: { readonly index: number; readonly takenAtMs?: number },
  above: number | null,
  wallMs: number,
): RestoreIndexError["code"] {
  try {
    restoreIndexFor({ index, takenAtMs }, above, wallMs);
  } catch (error) {
    assert.ok(error instanceof RestoreIndexError);
    return error.code;
  }
  return assert.fail("it was taken");
}

describe("the index of a restore", () => {
  it("is that of the clock, until the next second begins", () => {
    const expected = { index: clockIndex, notBeforeMs: (second + 1) * 1_000, isAheadOfClock: false };
    assert.deepEqual(restoreIndexFor(backup, null, nowMs), expected);
    assert.deepEqual(restoreIndexFor(backup, 2 ** 20, nowMs), expected, "what is below it makes no difference");
    assert.deepEqual(restoreIndexFor({ index: clockIndex - 1, takenAtMs: nowMs }, clockIndex, nowMs), expected);
  });

  it("is above what is known of the tokens out there, and says that the clock doesn't vouch for the next one", () => {
    const above = clockIndex + 5;
    const expected = { index: above, notBeforeMs: (second + 1) * 1_000, isAheadOfClock: true };
    assert.deepEqual(restoreIndexFor(backup, above, nowMs), expected);
    assert.deepEqual(restoreIndexFor({ index: clockIndex + 4, takenAtMs: nowMs }, above, nowMs), expected);
  });

  it("rises with every second, so a restore that begins when another has ended lands 2^20 higher at least", () => {
    const first = restoreIndexFor(backup, null, nowMs);
    const next = restoreIndexFor(backup, null, first.notBeforeMs);
    assert.equal(next.index, first.index + 2 ** 20);
    const ofFirst = { index: first.index + 2 ** 20 - 1, takenAtMs: first.notBeforeMs };
    assert.equal(restoreIndexFor(ofFirst, null, first.notBeforeMs).index, next.index);
  });

  it("is never the backup's own: tokens given out after the backup would be given out again", () => {
    for (const takenAtMs of [nowMs - minuteMs, nowMs]) {
      assert.equal(refusal({ index: clockIndex, takenAtMs }, null, nowMs), "index_unknown");
      assert.equal(refusal({ index: clockIndex + 9, takenAtMs }, clockIndex + 9, nowMs), "index_unknown");
      assert.equal(refusal({ index: clockIndex + 9, takenAtMs }, 5, nowMs), "index_unknown");
    }
  });

  it("isn't the clock's for a backup of a cluster ahead of the clock, also when the clock has passed the backup since", () => {
    const ahead = { index: clockIndex + 2 ** 20 * 60, takenAtMs: nowMs };
    const laterMs = nowMs + 61_000;
    assert.ok(restoreIndexFor(backup, null, laterMs).index > ahead.index);
    assert.equal(refusal(ahead, null, laterMs), "index_unknown", "it may have given out as many more");
    assert.equal(refusal(ahead, ahead.index, laterMs), "index_unknown", "says nothing of those after the backup");
    const above = ahead.index + 2 ** 30;
    assert.deepEqual(restoreIndexFor(ahead, above, laterMs).index, above);
    assert.equal(restoreIndexFor(ahead, ahead.index + 1, laterMs).index, clockIndex + 2 ** 20 * 61);
    assert.equal(refusal({ index: clockIndex, takenAtMs: nowMs }, null, laterMs), "index_unknown");
    assert.ok(restoreIndexFor({ index: clockIndex - 1, takenAtMs: nowMs }, null, laterMs).index > clockIndex);
  });

  it("isn't that of a clock that lies before the backup, unless somebody knows better", () => {
    const now = { index: 77, takenAtMs: nowMs };
    assert.equal(restoreIndexFor(now, null, nowMs).index, clockIndex);
    assert.equal(refusal(now, null, nowMs - 1), "index_unknown");
    assert.equal(refusal(now, 77, nowMs - 1), "index_unknown");
    assert.equal(restoreIndexFor(now, clockIndex + 7, nowMs - minuteMs).index, clockIndex + 7);
    assert.equal(refusal({ index: 77, takenAtMs: Number.MAX_SAFE_INTEGER }, null, nowMs), "index_unknown");
  });

  it("isn't drawn from a clock that is absurd", () => {
    for (const wallMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, Date.UTC(2023, 11, 31), Date.UTC(2209, 0)]) {
      assert.equal(refusal(backup, null, wallMs), "absurd_clock", String(wallMs));
      assert.equal(refusal(backup, 2 ** 51, wallMs), "absurd_clock", String(wallMs));
    }
    const early = { index: 77, takenAtMs: Date.UTC(2024, 0) };
    assert.equal(restoreIndexFor(early, null, Date.UTC(2024, 0)).isAheadOfClock, false);
    const late = restoreIndexFor(backup, null, Date.UTC(2205, 0)).index;
    assert.ok(Number.isSafeInteger(late + 10 ** 15));
  });

  it("isn't taken from a number that is no safe index", () => {
    for (const above of [-1, 0.5, Number.NaN, 2 ** 52 + 1, Number.POSITIVE_INFINITY, 2 ** 60]) {
      assert.equal(refusal(backup, above, nowMs), "unsafe_above", String(above));
    }
    assert.equal(restoreIndexFor(backup, 2 ** 52, nowMs).index, 2 ** 52);
  });
});
