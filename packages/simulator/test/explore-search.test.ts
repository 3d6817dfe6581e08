import assert from "node:assert/strict";
import test from "node:test";
import { exploreMerging } from "../src/explore/merging-search.js";
import type { MergingModel } from "../src/explore/merging-search.js";
import { explore } from "../src/explore/search.js";
import type { Model } from "../src/explore/search.js";

/** Two jugs of 3 and 5 litres: `wanted` litres in the greater one are forbidden. */
function jugs(wanted: number): Model<readonly [number, number], string> {
  return {
    initial: [0, 0],
    keyFor: (state) => state.join(),
    *stepsFrom([a, b]) {
      const toB = Math.min(a, 5 - b);
      const toA = Math.min(b, 3 - a);
      const steps: [string, readonly [number, number]][] = [
        ["fill a", [3, b]],
        ["fill b", [a, 5]],
        ["empty a", [0, b]],
        ["empty b", [a, 0]],
        ["a to b", [a - toB, b + toB]],
        ["b to a", [a + toA, b - toA]],
      ];
      for (const [action, state] of steps) {
        yield { action, state, violation: state[1] === wanted ? `${wanted} litres` : null };
      }
    },
  };
}

test("a violation comes with a shortest path", () => {
  const { violation, isComplete } = explore(jugs(4), { statesMax: 1_000 });
  assert.equal(violation?.rule, "4 litres");
  assert.deepEqual(violation?.path, ["fill b", "b to a", "empty a", "b to a", "fill b", "b to a"]);
  assert.equal(isComplete, false);
});

test("without a violation every state that can be reached is explored once", () => {
  const { violation, isComplete, distinct, states } = explore(jugs(9), { statesMax: 1_000 });
  assert.equal(violation, null);
  assert.equal(isComplete, true);
  // One jug is always full or empty: 2 x (4 + 6) states, less the 4 corners that are counted twice.
  assert.equal(distinct, 16);
  assert.equal(states, 6 * 16);
});

test("bounds end the search, and it says that it is not complete", () => {
  const few = explore(jugs(9), { statesMax: 5 });
  assert.deepEqual([few.distinct, few.isComplete], [5, false]);
  const shallow = explore(jugs(9), { statesMax: 1_000, depthMax: 2 });
  assert.deepEqual([shallow.depth, shallow.isComplete], [2, false]);
});

test("a state without successors is counted as an end", () => {
  const model: Model<number, string> = {
    initial: 0,
    keyFor: String,
    *stepsFrom(state) {
      if (state < 3) yield { action: "on", state: state + 1, violation: null };
    },
  };
  assert.deepEqual(explore(model, { statesMax: 10 }), {
    states: 3,
    distinct: 4,
    depth: 3,
    ends: 1,
    isComplete: true,
    violation: null,
  });
});

/** A walker on the places 0 to 9 that picks up each place's coin; all coins that were ever picked up on the way to a place are merged. */
interface Walker {
  readonly place: number;
  readonly coins: number;
}

function walk(forbidden: number): MergingModel<Walker, number> {
  return {
    initial: { place: 0, coins: 0 },
    keyFor: ({ place, coins }) => `${place} ${coins}`,
    groupFor: ({ place }) => `${place}`,
    progressOf: ({ place }) => place,
    merge(known, { coins }) {
      const all = known.coins | coins;
      return all === known.coins ? null : { state: { ...known, coins: all }, violation: null };
    },
    *stepsFrom({ place, coins }) {
      for (const next of [2 * place + 1, 2 * place + 2, 0]) {
        if (next > 9) continue;
        const state = { place: next, coins: coins | (1 << next) };
        yield { action: next, state, violation: (state.coins & forbidden) === forbidden ? "forbidden coins" : null };
      }
    },
  };
}

test("merged states reach every place, and each again with what is new in it", () => {
  const plain = explore(walk(1 << 20), { statesMax: 10_000 });
  const merged = exploreMerging(walk(1 << 20), { statesMax: 10_000 });
  assert.equal(plain.isComplete && merged.isComplete, true);
  assert.equal(merged.distinct, 10);
  assert.ok(merged.distinct < plain.distinct);
  // The coins of 9 and 5 are found together only after a way back.
  assert.equal(exploreMerging(walk((1 << 9) | (1 << 5)), { statesMax: 10_000 }).violation?.rule, "forbidden coins");
});

test("bounds end a merging search, and it says that it is not complete", () => {
  const { distinct, isComplete } = exploreMerging(walk(1 << 20), { statesMax: 5 });
  assert.equal(isComplete, false);
  assert.ok(distinct < 10);
});
