/** What a configuration entry in the own log does to a leader; here it is appended by hand. Requests for changes: membership.test.ts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Core } from "../src/core.js";
import { advanceMembership } from "../src/membership.js";
import { fillAppends, maybeCommit } from "../src/replication.js";
import { sendTimeoutNow } from "../src/transfer.js";
import type { Leader } from "../src/role.js";
import type { Configuration, Index, Term } from "../src/index.js";
import { generousLimits } from "./support/cluster.js";
import { configurationOf, testCodec } from "./support/codec.js";
import { SeededRandom } from "./support/random.js";
import { baseOf, entryOf } from "./support/solo.js";

function leadingCore(configuration: Configuration): { core: Core; leader: Leader } {
  const core = new Core(
    { id: "n1", electionTimeoutMsMin: 500, heartbeatMs: 100, diskStallMs: 1_000, limits: generousLimits },
    { random: new SeededRandom(1), codec: testCodec },
    { hardState: { term: 0 as Term, votedFor: null }, base: baseOf(0, 0, 7, configuration), entries: [] },
  );
  core.advanceTime(1_000);
  core.becomeCandidate("by hand");
  persist(core);
  return { core, leader: core.becomeLeader("by hand") };
}

/** Everything written so far is durable. */
function persist(core: Core): void {
  core.log.takeUnsaved();
  core.writes.onTaken(1, core.nowMs, core.takeHardState(), core.log.lastIndex, null);
  core.writes.onPersisted(1);
}

function change(core: Core, configuration: Configuration): void {
  const payload = testCodec.encodeConfiguration(configuration);
  core.append(entryOf(core.log.lastIndex + 1, core.term, core.log.lastChain, "configuration", payload));
}

function acknowledge(core: Core, leader: Leader, id: string): void {
  fillAppends(core, leader);
  leader.peers.get(id)?.onAccepted(core.log.lastIndex, core.nowMs);
  maybeCommit(core, leader);
}

test("a leader whose removal is appended leads on without counting itself, and steps down when it is committed (thesis 4.2.2)", () => {
  const { core, leader } = leadingCore(configurationOf(["n1", "n2", "n3"]));
  change(core, configurationOf(["n2", "n3"], [], [], ["n1"]));
  persist(core);
  assert.equal(core.isVoter, false);
  acknowledge(core, leader, "n2");
  assert.equal(core.commitIndex, 0, "of n2 and n3 both are needed");
  advanceMembership(core);
  assert.equal(core.role.kind, "leader");
  acknowledge(core, leader, "n3");
  assert.equal(core.commitIndex, 2 as Index);
  advanceMembership(core);
  assert.equal(leader.transfer?.target, "n2", "it hands over first");
  sendTimeoutNow(core, leader);
  advanceMembership(core);
  assert.equal(core.roleName, "learner");
  assert.equal(core.electionDeadlineMs, Number.POSITIVE_INFINITY);
});

test("peers come and go with the configuration, and are replicated to from then on", () => {
  const { core, leader } = leadingCore(configurationOf(["n1", "n2", "n3"]));
  change(core, configurationOf(["n1", "n2", "n4"], ["n1", "n2", "n3"], ["n5"]));
  assert.deepEqual([...leader.peers.keys()].toSorted(), ["n2", "n3", "n4", "n5"]);
  const known = leader.peers.get("n2");
  change(core, configurationOf(["n1", "n2", "n4"], [], ["n5"]));
  const members = [...leader.peers.values()].filter((peer) => peer.leaving === null).map((peer) => peer.id);
  assert.deepEqual(members.toSorted(), ["n2", "n4", "n5"]);
  assert.equal(leader.peers.get("n3")?.leaving?.index, 3, "who left is sent to until it can know");
  assert.equal(leader.peers.get("n2"), known, "what is known of a peer is kept");
});
