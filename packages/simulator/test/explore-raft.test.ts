import assert from "node:assert/strict";
import test from "node:test";
import { exploreRaft } from "../src/explore/raft/explore-raft.js";
import type { Order, Report } from "../src/explore/raft/explore-raft.js";
import { openRaft } from "../src/explore/raft/opened-core.js";

const statesMax = 2_500;

for (const scope of ["election-crash", "log", "led-disk", "led-2-terms-crash", "full"]) {
  test(`the core breaks no rule in the first ${statesMax} merged states of scope ${scope}`, async () => {
    const { isSound, distinct, lines } = await exploreRaft(scope, { statesMax });
    assert.ok(isSound, lines.join("\n"));
    assert.ok(distinct >= statesMax, lines.join("\n"));
  });
}

for (const scope of ["election", "led"]) {
  test(`the core breaks no rule in scope ${scope}`, async () => {
    const { isSound, isComplete, lines } = await exploreRaft(scope, { statesMax: 100_000 });
    assert.ok(isSound && isComplete, lines.join("\n"));
  });
}

/** Explores a core in whose compiled file `name` the text `from` was replaced. */
async function withPlanted(
  order: Order,
  scope: string,
  name: string,
  changes: readonly [string, string][],
): Promise<Report> {
  const opened = await openRaft((file, text) => {
    if (file !== name) return text;
    let planted = text;
    for (const [from, to] of changes) {
      assert.ok(planted.includes(from), `${name} holds ${from}`);
      planted = planted.replace(from, to);
    }
    return planted;
  });
  return exploreRaft(scope, { statesMax: 60_000 }, order, opened);
}

function assertBroken({ isSound, lines }: Report, rule: RegExp): void {
  assert.equal(isSound, false, lines.join("\n"));
  assert.match(lines[1] ?? "", rule);
}

for (const order of ["breadth", "merging"] as const) {
  const how = ` (${order})`;

  test(`an acknowledgement before the disk is found${how}`, async () => {
    const report = await withPlanted(order, "election-disk", "outbox.js", [
      ['case "append":', 'case "appendAccepted":\n            case "append":'],
      ['            case "appendAccepted":\n            case "appendRejected":', '            case "appendRejected":'],
    ]);
    assertBroken(report, /before the disk/);
  });

  test(`a leader that commits an older term by counting is found${how}`, async () => {
    const report = await withPlanted(order, "led-2-terms", "replication.js", [
      [" || index < leader.noopIndex", ""],
      ["assert(core.log.termAt(index) === core.term,", "assert(true,"],
    ]);
    assertBroken(report, /entries of its own term/);
  });

  test(`a vote that a restart forgets is found${how}`, async () => {
    const report = await withPlanted(order, "election-2-crash", "core.js", [
      ["this.votedFor = hardState.votedFor;", "this.votedFor = null;"],
    ]);
    assertBroken(report, /votes once in term 1|at most one leader/);
  });

  test(`a pre-vote for a term that is not new is found${how}`, async () => {
    const report = await withPlanted(order, "election-2-crash", "election.js", [
      ["message.term > core.term && ahead", "ahead"],
    ]);
    assertBroken(report, /pre-vote is granted for a new term only/);
  });

  test(`an answer to an older pre-vote that counts is found${how}`, async () => {
    const report = await withPlanted(order, "log-2-terms", "election.js", [
      ["if (message.granted && message.term !== nextTerm(core.term))", "if (false)"],
    ]);
    assertBroken(report, /begins with/);
  });

  test(`a pre-vote for a log that is behind is found${how}`, async () => {
    const report = await withPlanted(order, "led-2-terms", "election.js", [
      ["message.term > core.term && ahead >= 0", "message.term > core.term"],
    ]);
    assertBroken(report, /no pre-vote is granted to a log that is behind/);
  });
}
