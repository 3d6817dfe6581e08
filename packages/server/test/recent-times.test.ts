import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RecentTimes } from "../src/recent-times.js";

describe("recent times", () => {
  it("knows nothing before the first, and one is all of its percentiles", () => {
    const times = new RecentTimes(10);
    assert.equal(times.summary(), null);
    times.add(2.00049);
    assert.deepEqual(times.summary(), { count: 1, p50Ms: 2, p99Ms: 2, maxMs: 2 });
  });

  it("takes percentiles of what it keeps, and forgets the oldest", () => {
    const times = new RecentTimes(200);
    for (let ms = 1_000; ms > 0; ms -= 1) times.add(ms);
    assert.deepEqual(times.summary(), { count: 200, p50Ms: 100, p99Ms: 198, maxMs: 200 });
  });
});
