/** What the search merges loses nothing, and adds nothing: on small scopes it reaches what a search of single clusters reaches. */
import assert from "node:assert/strict";
import test from "node:test";
import { exploreCovering } from "../src/explore/covering-search.js";
import { exploreMerging } from "../src/explore/merging-search.js";
import { RaftModel } from "../src/explore/raft/model.js";
import type { Cluster, ClusterAction } from "../src/explore/raft/model.js";
import { openRaft } from "../src/explore/raft/opened-core.js";
import type { Scope } from "../src/explore/raft/scope.js";
import { scopes } from "../src/explore/raft/scopes.js";
import type { Step } from "../src/explore/search.js";

const bounds = { statesMax: 200_000 };

/** Notes every cluster that it comes to. */
class Watched extends RaftModel {
  readonly met = new Set<string>();

  override *stepsFrom(cluster: Cluster): Generator<Step<Cluster, ClusterAction>> {
    for (const step of super.stepsFrom(cluster)) {
      this.met.add(factsOf(step.state));
      yield step;
    }
  }
}

/** All that rules speak of: roles, terms, logs, commits, disks, and what the observer remembers. */
function factsOf({ nodes, ghost }: Cluster): string {
  const facts = nodes.map(({ role, term, leader, commitIndex, log, disk, pending }) => {
    const stored = disk.entries.map(({ chain }) => chain);
    return [role, term, leader, commitIndex, log.map(({ chain }) => chain), disk.hardState, stored, pending.length];
  });
  return JSON.stringify([facts, ghost.leaders, ghost.committed]);
}

const few: Scope = { ...(scopes["led"] as Scope), entriesMax: 2 };
const smallScopes: Readonly<Record<string, Scope>> = {
  "a leader with two entries": few,
  "a leader, and a crash": { ...few, entriesMax: 1, crashesMax: 1 },
  "a leader with two entries, and a late disk": { ...few, isDiskLate: true, pendingMax: 1 },
  "an election": { ...few, isLed: false, entriesMax: 1, timeoutsMax: 1 },
};

for (const [name, scope] of Object.entries(smallScopes)) {
  test(`merged clusters and prompt heartbeats reach what single clusters reach: ${name}`, async (t) => {
    const opened = await openRaft();
    const plain = new Watched(opened, { ...scope, areHeartbeatsPrompt: false });
    const merged = new Watched(opened, scope);
    const everything = exploreCovering(plain, bounds);
    const result = exploreMerging(merged, bounds);
    t.diagnostic(
      `${everything.distinct} single, ${result.distinct} merged, ${plain.met.size} and ${merged.met.size} facts`,
    );
    assert.equal(everything.isComplete && result.isComplete, true);
    assert.deepEqual(missing(plain.met, merged.met), []);
    assert.deepEqual(missing(merged.met, plain.met), []);
  });
}

/** The first few of what the one has and the other lacks. */
function missing(all: ReadonlySet<string>, those: ReadonlySet<string>): string[] {
  return [...all].filter((facts) => !those.has(facts)).slice(0, 3);
}
