import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { certainDifference, ownRate, possibleDifference, rateBoundsOf } from "../../src/doctor/clock-rates.js";
import type { ClockSample } from "../../src/doctor/clock-rates.js";

/** A node whose clock runs at this rate, asked every `everyMs`, with the time there and back. */
function samples(rate: number, trips: readonly (readonly [number, number])[], everyMs = 200): ClockSample[] {
  return trips.map(([thereMs, backMs], at) => {
    const sentMs = 1_000 + at * everyMs;
    return { sentMs, receivedMs: sentMs + thereMs + backMs, monotonicMs: 77 + rate * (sentMs + thereMs) };
  });
}

describe("clock rates", () => {
  it("need two samples that lie apart", () => {
    assert.equal(rateBoundsOf([]), null);
    assert.equal(rateBoundsOf(samples(1, [[1, 1]])), null);
    assert.equal(
      rateBoundsOf(
        samples(1, [
          [1, 500],
          [1, 500],
        ]),
      ),
      null,
      "one began before the other had ended",
    );
  });

  it("are bounded by the round trips of the two samples that say most", () => {
    const trips: [number, number][] = [
      [0.5, 0.5],
      [40, 90],
      [90, 3],
      [0, 1],
    ];
    const bounds = rateBoundsOf(samples(1, trips));
    assert.ok(bounds !== null);
    assert.ok(bounds.low > 1 - 2 / 600 && bounds.high < 1 + 2 / 598, JSON.stringify(bounds));
  });

  it("contain the true rate, whatever the network does", () => {
    const trip = fc.tuple(fc.double({ min: 0, max: 300, noNaN: true }), fc.double({ min: 0, max: 300, noNaN: true }));
    const rate = fc.double({ min: 0.5, max: 2, noNaN: true });
    fc.assert(
      fc.property(rate, rate, fc.array(trip, { maxLength: 12 }), (one, other, trips) => {
        const bounds = rateBoundsOf(samples(one, trips));
        const others = rateBoundsOf(samples(other, trips));
        if (bounds === null || others === null) return;
        const slack = 1e-9;
        assert.ok(bounds.low <= one + slack && one <= bounds.high + slack);
        const slower = Math.min(one / other, other / one);
        assert.ok(certainDifference(bounds, others) <= 1 - slower + slack, "never more than there is");
        assert.ok(possibleDifference(bounds, others) >= 1 / slower - 1 - slack);
      }),
    );
  });

  it("tell a clock that is too fast or too slow once the measuring takes long enough", () => {
    const trips = (count: number): [number, number][] => Array.from({ length: count }, () => [5, 5]);
    for (const rate of [1.02, 0.98]) {
      const short = rateBoundsOf(samples(rate, trips(3)));
      const long = rateBoundsOf(samples(rate, trips(40)));
      assert.ok(short !== null && long !== null);
      assert.equal(certainDifference(short, ownRate), 0, "20 ms of 400 explain it");
      const found = certainDifference(long, ownRate);
      assert.ok(found > 0.017 && found <= 0.02, String(found));
    }
  });
});
