import assert from "node:assert/strict";
import test from "node:test";
import { exploreRaft } from "../src/explore/raft/explore-raft.js";
import type { Report } from "../src/explore/raft/explore-raft.js";
import { openRaft } from "../src/explore/raft/opened-core.js";

const statesMax = 4_000;

for (const scope of ["election-crash", "log", "led-disk", "led-2-terms-crash", "full"]) {
  test(`the core breaks no rule in the first ${statesMax} states of scope ${scope}`, async () => {
    const { isSound, distinct, lines } = await exploreRaft(scope, { statesMax });
    assert.ok(isSound, lines.join("\n"));
    assert.ok(distinct >= statesMax, lines.join("\n"));
  });
}

/** Explores a core in whose compiled file `name` the text `from` was replaced. */
async function withPlanted(scope: string, name: string, changes: readonly [string, string][]): Promise<Report> {
  const opened = await openRaft((file, text) => {
    if (file !== name) return text;
    let planted = text;
    for (const [from, to] of changes) {
      assert.ok(planted.includes(from), `${name} holds ${from}`);
      planted = planted.replace(from, to);
    }
    return planted;
  });
  return exploreRaft(scope, { statesMax: 60_000 }, "breadth", opened);
}

function assertBroken({ isSound, lines }: Report, rule: RegExp): void {
  assert.equal(isSound, false);
  assert.match(lines[1] ?? "", rule);
}

test("an acknowledgement before the disk is found", async () => {
  const report = await withPlanted("election-disk", "outbox.js", [
    ['case "append":', 'case "appendAccepted":\n            case "append":'],
    ['            case "appendAccepted":\n            case "appendRejected":', '            case "appendRejected":'],
  ]);
  assertBroken(report, /before the disk/);
});

test("a leader that commits an older term by counting is found", async () => {
  const report = await withPlanted("led-2-terms", "replication.js", [
    [" || index < leader.noopIndex", ""],
    ["assert(core.log.termAt(index) === core.term,", "assert(true,"],
  ]);
  assertBroken(report, /entries of its own term/);
});

test("a vote that a restart forgets is found", async () => {
  const report = await withPlanted("election-2-crash", "core.js", [
    ["this.votedFor = hardState.votedFor;", "this.votedFor = null;"],
  ]);
  assertBroken(report, /votes once in term 1|at most one leader/);
});

test("a pre-vote for a term that is not new is found", async () => {
  const report = await withPlanted("election-2-crash", "election.js", [["message.term > core.term && ahead", "ahead"]]);
  assertBroken(report, /pre-vote is granted for a new term only/);
});

test("an answer to an older pre-vote that counts is found", async () => {
  const report = await withPlanted("log-2-terms", "election.js", [
    ["if (message.granted && message.term !== nextTerm(core.term))", "if (false)"],
  ]);
  assertBroken(report, /begins with/);
});
