import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { freePlace, isPlaceTaken, lowestFreePlace, takePlace } from "../src/places.js";

test("the lowest free place is found, whatever was taken and freed", () => {
  const step = fc.record({ frees: fc.boolean(), place: fc.oneof(fc.nat(3), fc.nat(100)) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: "max" }), fc.integer({ min: 1, max: 100 }), (steps, slots) => {
      let places: number[] | null = null;
      const used = new Set<number>();
      for (const { frees, place } of steps) {
        if (frees) {
          places = freePlace(places, place);
          used.delete(place);
        } else {
          const lowest = lowestFreePlace(places, 1_000);
          places = takePlace(places, lowest);
          used.add(lowest);
        }
        let expected = 0;
        while (used.has(expected)) expected += 1;
        assert.equal(lowestFreePlace(places, 1_000), expected);
        assert.equal(lowestFreePlace(places, slots), expected < slots ? expected : -1);
        assert.equal(isPlaceTaken(places, place), used.has(place));
        assert.equal(places === null, used.size === 0);
      }
    }),
  );
});
