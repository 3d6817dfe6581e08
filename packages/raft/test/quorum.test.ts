import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { quorumValueFor, tallyBallots, voterSetsFor } from "../src/index.js";
import type { VoterSets } from "../src/index.js";
import { configurationOf } from "./support/codec.js";

const ids = ["a", "b", "c", "d", "e", "f", "g"];
/** 1 to 7 voters, and in a joint configuration as many outgoing ones. */
const sets = fc.record({
  voters: fc.shuffledSubarray(ids, { minLength: 1 }),
  outgoing: fc.oneof(fc.constant<string[]>([]), fc.shuffledSubarray(ids, { minLength: 1 })),
});
const values = fc.dictionary(fc.constantFrom(...ids), fc.nat(5));

/** By the definition: more than half of each half that isn't empty. */
function isQuorum({ voters, outgoing }: VoterSets, has: (id: string) => boolean): boolean {
  const isMajority = (half: readonly string[]): boolean => half.filter(has).length * 2 > half.length;
  return isMajority(voters) && (outgoing.length === 0 || isMajority(outgoing));
}

test("a quorum value is the highest that a naive count finds reached by a majority of each half", () => {
  fc.assert(
    fc.property(sets, values, (halves, valueOf) => {
      const naive = [5, 4, 3, 2, 1, 0].find((value) => isQuorum(halves, (id) => (valueOf[id] ?? 0) >= value));
      assert.equal(
        quorumValueFor(halves, (id) => valueOf[id] ?? 0),
        naive,
      );
    }),
    { numRuns: 2_000 },
  );
});

test("ballots are won by a quorum of grants, lost when refusals leave none possible, and pending before", () => {
  const ballots = fc.dictionary(fc.constantFrom(...ids), fc.boolean());
  fc.assert(
    fc.property(sets, ballots, (halves, cast) => {
      const tally = tallyBallots(halves, new Map(Object.entries(cast)));
      const isWon = isQuorum(halves, (id) => cast[id] === true);
      const isLost = !isQuorum(halves, (id) => cast[id] !== false);
      assert.equal(tally, isWon ? "won" : isLost ? "lost" : "pending");
    }),
    { numRuns: 2_000 },
  );
});

test("any two quorums of one configuration meet", () => {
  fc.assert(
    fc.property(sets, fc.subarray(ids), fc.subarray(ids), (halves, a, b) => {
      const grants = (granted: string[]): Map<string, boolean> => new Map(granted.map((id) => [id, true]));
      if (tallyBallots(halves, grants(a)) !== "won" || tallyBallots(halves, grants(b)) !== "won") return;
      assert.ok(a.some((id) => b.includes(id)));
    }),
    { numRuns: 2_000 },
  );
});

test("quorums of a configuration, of the joint one and of the next one meet (thesis 4.3)", () => {
  fc.assert(
    fc.property(
      fc.shuffledSubarray(ids, { minLength: 1 }),
      sets,
      fc.subarray(ids),
      fc.subarray(ids),
      (next, old, a, b) => {
        const joint = { voters: next, outgoing: old.voters };
        const grants = (granted: string[]): Map<string, boolean> => new Map(granted.map((id) => [id, true]));
        if (tallyBallots(joint, grants(a)) !== "won") return;
        for (const half of [next, old.voters]) {
          if (tallyBallots({ voters: half, outgoing: [] }, grants(b)) === "won")
            assert.ok(a.some((id) => b.includes(id)));
        }
      },
    ),
    { numRuns: 2_000 },
  );
});

test("learners have no vote", () => {
  assert.deepEqual(voterSetsFor(configurationOf(["a", "b"], ["b", "c"], ["d"])), {
    voters: ["a", "b"],
    outgoing: ["b", "c"],
  });
});
