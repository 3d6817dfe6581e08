import assert from "node:assert/strict";
import { test } from "node:test";
import type { MembersView } from "@holdfast/client";
import { membersSummary, membersText } from "../../src/members/member-table.js";
import { addressesOf } from "./fake-members.js";

const versions = { min: 1, max: 2 };
const view: MembersView = {
  clusterId: "c",
  leader: "n1",
  members: [
    { ...addressesOf("n1"), instance: "a", role: "voter", isUp: true, percent: 100, isCaughtUp: true, versions },
    {
      ...addressesOf("n2"),
      instance: "b",
      role: "outgoing",
      isUp: false,
      percent: 9,
      isCaughtUp: false,
      versions: null,
    },
    { ...addressesOf("n3"), instance: "c", role: "learner", isUp: true, percent: 62, isCaughtUp: false, versions },
    { ...addressesOf("n4"), instance: "d", role: "learner", isUp: true, percent: 99, isCaughtUp: true, versions },
  ],
  removed: ["n0"],
  isChanging: true,
};

test("members are shown with their roles, and how far they are", () => {
  assert.deepEqual(
    membersSummary(view).members.map(({ role }) => role),
    ["voter", "leaving", "joining", "learner"],
  );
  const text = membersText(membersSummary(view));
  assert.match(text, /^cluster c: n1 leads; a change is under way\n\n/);
  assert.match(text, /^n3 +joining +yes +62 +1-2 +n3:7201 +n3:7101$/m);
  assert.match(text, /^n2 +leaving +no +9 +n2:7201/m);
  assert.match(text, /\nremoved, for ever: n0\n$/);
  assert.doesNotMatch(membersText(membersSummary({ ...view, removed: [], isChanging: false })), /removed|under way/);
});
