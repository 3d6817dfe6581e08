import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { addToRanges, closeLowestGap, raiseFloor, rangesInclude } from "../src/ranges.js";
import type { Ranges } from "../src/ranges.js";

const universe = Array.from({ length: 40 }, (_, number) => number);
const numbers = fc.array(fc.nat(39), { maxLength: 60 });

test("ranges hold what was added, in as few ranges as can be", () => {
  fc.assert(
    fc.property(numbers, (added) => {
      const ranges = rangesOf(added);
      assert.deepEqual(
        universe.filter((number) => rangesInclude(ranges, number)),
        [...new Set(added)].sort((a, b) => a - b),
      );
      checkShape(ranges);
    }),
  );
});

test("a raised floor removes what is below, and goes on to the first number that is missing", () => {
  fc.assert(
    fc.property(numbers, fc.nat(45), (added, floor) => {
      const ranges = rangesOf(added);
      let expected = floor;
      while (added.includes(expected)) expected += 1;
      assert.equal(raiseFloor(ranges, floor), expected);
      const left = universe.filter((number) => number > expected && added.includes(number));
      assert.deepEqual(
        universe.filter((number) => rangesInclude(ranges, number)),
        left,
      );
      checkShape(ranges);
    }),
  );
});

test("the lowest gap that may close is closed", () => {
  fc.assert(
    fc.property(numbers, fc.array(fc.nat(39), { maxLength: 4 }), (added, open) => {
      const ranges = rangesOf(added);
      const gap = closeLowestGap(ranges, (from, to) => !open.some((number) => number >= from && number <= to));
      const low = Math.min(...added);
      const missing = universe.filter(
        (number) => number > low && number < Math.max(...added) && !added.includes(number),
      );
      const gaps = missing
        .filter((number) => !missing.includes(number - 1))
        .map((from) => {
          let to = from;
          while (missing.includes(to + 1)) to += 1;
          return { from, to };
        });
      const expected = gaps.find(({ from, to }) => !open.some((number) => number >= from && number <= to)) ?? null;
      assert.deepEqual(gap, expected);
      if (expected !== null) assert.ok(rangesInclude(ranges, expected.from) && rangesInclude(ranges, expected.to));
      checkShape(ranges);
    }),
  );
});

function rangesOf(added: readonly number[]): Ranges {
  const ranges: Ranges = [];
  for (const number of added) addToRanges(ranges, number);
  return ranges;
}

function checkShape(ranges: Ranges): void {
  assert.equal(ranges.length % 2, 0);
  for (let at = 0; at < ranges.length; at += 2) {
    const [from = 0, to = 0] = [ranges[at], ranges[at + 1]];
    assert.ok(from <= to);
    assert.ok(at === 0 || from > (ranges[at - 1] ?? 0) + 1, `${ranges} could be shorter`);
  }
}
