import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  assertConfiguration,
  changedConfiguration,
  finalConfiguration,
  membershipBounds,
  problemWith,
} from "../src/configuration.js";
import { tallyBallots, voterSetsFor } from "../src/index.js";
import type { Configuration, Member, MembershipChange } from "../src/index.js";
import { configurationOf, memberOf } from "./support/codec.js";

const ids = ["n1", "n2", "n3", "n4", "n5", "n6", "n7"];
const current = configurationOf(["n1", "n2", "n3"], [], ["n4"], ["n9"]);

/** Each id has one part in the configuration, and is perhaps named in the change. */
const drawn = fc
  .array(fc.tuple(fc.constantFrom("voter", "learner", "removed", "none"), fc.constantFrom("none", "named")), {
    minLength: ids.length,
    maxLength: ids.length,
  })
  .map((parts) => {
    const having = (part: string, naming?: string): string[] =>
      ids.filter((_, at) => parts[at]?.[0] === part && (naming === undefined || parts[at]?.[1] === naming));
    const learners = having("learner", "named");
    const half = Math.ceil(learners.length / 2);
    return {
      configuration: configurationOf(having("voter"), [], having("learner"), having("removed")),
      change: {
        add: having("none", "named").map(memberOf),
        promote: learners.slice(0, half),
        remove: [...having("voter", "named"), ...learners.slice(half)],
      },
    };
  })
  .filter(({ configuration }) => configuration.voters.length > 0);

function idsOf(members: readonly Member[]): string[] {
  return members.map((member) => member.id);
}

/** Whether the ids that are in favour decide, and the others decide against them. */
function canBothDecide(a: Configuration, b: Configuration, inFavour: ReadonlySet<string>): boolean {
  const decides = (configuration: Configuration, isIn: (id: string) => boolean): boolean =>
    tallyBallots(voterSetsFor(configuration), new Map(ids.map((id) => [id, isIn(id)]))) === "won";
  return decides(a, (id) => inFavour.has(id)) && decides(b, (id) => !inFavour.has(id));
}

function changeOf(change: Partial<MembershipChange>): MembershipChange {
  return { add: [], promote: [], remove: [], ...change };
}

test("whatever changes, no two neighbouring configurations can decide without a common voter", () => {
  fc.assert(
    fc.property(drawn, fc.uniqueArray(fc.constantFrom(...ids)), ({ configuration, change }, inFavour) => {
      fc.pre(problemWith(configuration, change) === null);
      const first = changedConfiguration(configuration, change);
      const last = finalConfiguration(first);
      const side = new Set(inFavour);
      for (const [a, b] of [
        [configuration, first],
        [first, last],
      ] as const) {
        assert.ok(!canBothDecide(a, b, side) && !canBothDecide(b, a, side));
      }
    }),
    { numRuns: 2_000 },
  );
});

test("at its end everybody is what the change says, and who has gone is remembered", () => {
  fc.assert(
    fc.property(drawn, ({ configuration, change }) => {
      fc.pre(problemWith(configuration, change) === null);
      const first = changedConfiguration(configuration, change);
      const last = first.outgoing.length > 0 ? finalConfiguration(first) : first;
      assertConfiguration(first);
      assertConfiguration(last);
      const gone = (id: string): boolean => change.remove.includes(id);
      const voters = [...idsOf(configuration.voters), ...change.promote].filter((id) => !gone(id));
      const learners = [...idsOf(configuration.learners), ...idsOf(change.add)];
      assert.deepEqual(idsOf(last.voters).sort(), voters.sort());
      assert.deepEqual(
        idsOf(last.learners).sort(),
        learners.filter((id) => !gone(id) && !change.promote.includes(id)).sort(),
      );
      assert.deepEqual([...last.removed].sort(), [...configuration.removed, ...change.remove].sort());
      assert.deepEqual(last.outgoing, []);
      assert.equal(first.outgoing.length > 0, voters.join() !== idsOf(configuration.voters).sort().join());
    }),
    { numRuns: 2_000 },
  );
});

test("a voter that goes is no tombstone while it counts", () => {
  const joint = changedConfiguration(current, changeOf({ promote: ["n4"], remove: ["n3"] }));
  assert.deepEqual(joint, configurationOf(["n1", "n2", "n4"], ["n1", "n2", "n3"], [], ["n9"]));
  assert.deepEqual(finalConfiguration(joint), configurationOf(["n1", "n2", "n4"], [], [], ["n9", "n3"]));
});

test("what is wrong with a change is named, with the member", () => {
  const n5 = memberOf("n5");
  const cases: [Partial<MembershipChange>, string, string | null][] = [
    [{}, "empty_change", null],
    [{ promote: ["n4"], remove: ["n4"] }, "named_twice", "n4"],
    [{ promote: ["n2"], remove: ["n2"] }, "named_twice", "n2"],
    [{ remove: ["n2", "n2"] }, "named_twice", "n2"],
    [{ add: [n5, { ...memberOf("n6"), id: "n5" }] }, "named_twice", "n5"],
    [{ add: [memberOf("n9")] }, "removed_id", "n9"],
    [{ promote: ["n9"] }, "removed_id", "n9"],
    [{ remove: ["n9"] }, "removed_id", "n9"],
    [{ add: [memberOf("n1")] }, "already_member", "n1"],
    [{ add: [memberOf("n4")] }, "already_member", "n4"],
    [{ promote: ["n2"] }, "already_member", "n2"],
    [{ promote: ["n2"], remove: ["n3"] }, "already_member", "n2"],
    [{ add: [{ ...memberOf("n4"), instance: "another" }] }, "instance_differs", "n4"],
    [{ add: [{ ...n5, instance: "n1-1" }] }, "instance_taken", "n5"],
    [{ add: [n5, { ...memberOf("n6"), instance: n5.instance }] }, "instance_taken", "n6"],
    [{ add: [{ ...n5, peer: "n4:1" }] }, "address_taken", "n5"],
    [{ add: [{ ...n5, client: "n1:2" }] }, "address_taken", "n5"],
    [{ add: [{ ...n5, peer: "n1:2" }] }, "address_taken", "n5"],
    [{ promote: ["n5"] }, "unknown_member", "n5"],
    [{ remove: ["n1", "n5"] }, "unknown_member", "n5"],
    [{ remove: ["n1", "n2", "n3"] }, "no_voters", null],
  ];
  for (const [change, code, member] of cases) {
    assert.deepEqual(problemWith(current, changeOf(change)), { code, member }, JSON.stringify(change));
  }
  assert.equal(problemWith(current, changeOf({ add: [n5], promote: ["n4"], remove: ["n1", "n2", "n3"] })), null);
});

test("there are bounds, and all voters can be replaced at once within them", () => {
  const { votersMax, membersMax, removedMax } = membershipBounds;
  const named = (from: number, count: number): string[] => Array.from({ length: count }, (_, at) => `m${from + at}`);
  const voters = named(0, votersMax);
  const learners = named(votersMax, membersMax - votersMax);
  const full = configurationOf(voters, [], learners);
  assert.equal(problemWith(full, changeOf({ promote: learners, remove: voters })), null);
  assert.equal(problemWith(full, changeOf({ promote: learners.slice(1) }))?.code, "too_many_voters");
  assert.equal(problemWith(full, changeOf({ add: [memberOf("n1")] }))?.code, "too_many_members");
  const worn = configurationOf(["n1", "n2"], [], ["n3"], named(0, removedMax - 1));
  assert.equal(problemWith(worn, changeOf({ remove: ["n1"] })), null);
  assert.equal(problemWith(worn, changeOf({ remove: ["n1", "n3"] }))?.code, "too_many_removed");
});

test("a configuration in which an id has two parts to play is none", () => {
  assert.throws(() => assertConfiguration(configurationOf(["n1"], [], ["n1"])), /a learner has no vote/);
  assert.throws(() => assertConfiguration(configurationOf(["n1"], ["n2"], [], ["n2"])), /never comes back/);
  assert.throws(() => assertConfiguration(configurationOf(["n1"], [], ["n2"], ["n2"])), /never comes back/);
});
