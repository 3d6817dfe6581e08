import assert from "node:assert/strict";
import { test } from "node:test";
import { ApplyLag } from "../src/apply-lag.js";

test("many entries are too long a lag at once; fewer when they are old; some thousand never", () => {
  const lag = new ApplyLag(8_192);
  lag.note(5_000, 0, 1_000);
  assert.deepEqual(
    [8_191, 8_192].map((entries) => lag.isTooLong(entries)),
    [false, true],
  );
  lag.note(5_000, 0, 1_250);
  assert.equal(lag.isTooLong(5_000), false, "not yet");
  lag.note(5_000, 0, 1_251);
  assert.deepEqual(
    [2_047, 2_048].map((entries) => lag.isTooLong(entries)),
    [false, true],
  );
});

test("the age is that of the oldest entry that is not applied, to the turn", () => {
  const lag = new ApplyLag(8_192);
  const isOldAt = (nowMs: number, lastIndex: number, lastApplied: number): boolean => {
    lag.note(lastIndex, lastApplied, nowMs);
    return lag.isTooLong(2_048);
  };
  assert.equal(isOldAt(1_000, 100, 0), false);
  assert.equal(isOldAt(1_200, 300, 0), false);
  assert.equal(isOldAt(1_300, 300, 99), true, "since 1,000");
  assert.equal(isOldAt(1_301, 300, 100), false, "since 1,200");
  assert.equal(isOldAt(1_451, 300, 299), true);
  assert.equal(isOldAt(1_452, 300, 300), false, "none");
  assert.equal(isOldAt(9_000, 300, 300), false);
  assert.equal(isOldAt(9_001, 301, 300), false);
});

test("what was cut off of the log is not waited for", () => {
  const lag = new ApplyLag(8_192);
  lag.note(5_000, 0, 1_000);
  lag.note(4_000, 0, 1_200);
  lag.note(4_000, 0, 1_450);
  assert.equal(lag.isTooLong(4_000), false, "since 1,200");
  lag.note(4_000, 0, 1_451);
  assert.equal(lag.isTooLong(4_000), true);
});
