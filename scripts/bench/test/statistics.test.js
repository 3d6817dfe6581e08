import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { median, percentile, ratioOf, summaryOf } from "../statistics.js";

describe("statistics of a run", () => {
  it("take the middle value, or the mean of the two in the middle", () => {
    assert.equal(median([3, 10, 1]), 3);
    assert.equal(median([4, 10, 1, 2]), 3);
    assert.equal(median([7]), 7);
    assert.ok(Number.isNaN(median([])));
  });

  it("leave the values in their order", () => {
    const values = [3, 1, 2];
    median(values);
    percentile(values, 0.5);
    assert.deepEqual(values, [3, 1, 2]);
  });

  it("count percentiles by nearest rank, by number and not by text", () => {
    const values = Array.from({ length: 100 }, (_, at) => 100 - at);
    assert.equal(percentile(values, 0.5), 50);
    assert.equal(percentile(values, 0.99), 99);
    assert.equal(percentile(values, 1), 100);
    assert.equal(percentile(values, 0), 1);
    assert.equal(percentile([5], 0.99), 5);
    assert.ok(Number.isNaN(percentile([], 0.5)));
  });

  it("keep the rounds beside the median", () => {
    const rounds = new Map([
      [1, 30],
      [2, 10],
      [3, 20],
    ]);
    assert.deepEqual(summaryOf(rounds), { median: 20, min: 10, max: 30, rounds: { 1: 30, 2: 10, 3: 20 } });
  });

  it("compare round by round: a machine that was slow for a while changes no ratio", () => {
    const ours = summaryOf(new Map([1, 2, 3].map((round, at) => [round, [100, 10, 30][at] ?? 0])));
    const theirs = summaryOf(new Map([1, 2, 3].map((round, at) => [round, [50, 5, 3][at] ?? 0])));
    assert.equal(ratioOf(ours, theirs), 2);
  });

  it("leave out the rounds that one of them lacks", () => {
    const ours = summaryOf(
      new Map([
        [1, 10],
        [2, 90],
      ]),
    );
    assert.equal(ratioOf(ours, summaryOf(new Map([[1, 5]]))), 2);
    assert.ok(Number.isNaN(ratioOf(ours, summaryOf(new Map([[3, 5]])))));
  });
});
