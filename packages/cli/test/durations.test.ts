import assert from "node:assert/strict";
import { test } from "node:test";
import { formatDuration, integerOption, parseDuration } from "../src/durations.js";

const bounds = { minMs: 0, maxMs: 24 * 3_600_000 };

test("durations: number and unit, whole milliseconds, within bounds", () => {
  const good = {
    "500ms": 500,
    "10s": 10_000,
    "2m": 120_000,
    "1h": 3_600_000,
    "1.5s": 1_500,
    "0s": 0,
    "0.001s": 1,
    "24h": bounds.maxMs,
  };
  for (const [text, ms] of Object.entries(good)) assert.equal(parseDuration(text, bounds), ms, text);
  const bad = [
    "",
    "10",
    "s",
    "-1s",
    "+1s",
    "1e3s",
    "10 s",
    " 10s",
    "10s ",
    "10S",
    "10d",
    "NaNs",
    "Infinitys",
    "0x10s",
    "1_0s",
    ".5s",
    "1.s",
  ];
  for (const text of bad) assert.match(String(parseDuration(text, bounds)), /is no duration; write 500ms/, text);
  assert.equal(parseDuration("0.5ms", bounds), '"0.5ms" is not a whole number of milliseconds');
  assert.equal(parseDuration("25h", bounds), '"25h" is out of bounds: from 0ms to 24h');
  assert.match(String(parseDuration("999999999999999h", bounds)), /out of bounds/);
});

test("durations are printed in the largest unit that keeps them whole", () => {
  const texts = {
    0: "0ms",
    1: "1ms",
    999: "999ms",
    1_000: "1s",
    1_500: "1500ms",
    90_000: "90s",
    120_000: "2m",
    3_600_000: "1h",
  };
  for (const [ms, text] of Object.entries(texts)) assert.equal(formatDuration(Number(ms)), text);
});

test("whole numbers within bounds", () => {
  const parse = integerOption(1, 10);
  assert.equal(parse("10"), 10);
  for (const text of ["", "0", "11", "1.5", "-1", "1e1", "NaN", "0x1", "99999999999999999999"]) {
    assert.throws(() => parse(text), /is no whole number from 1 to 10/, text);
  }
});
