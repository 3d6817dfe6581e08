/** Rules on commits, configurations and states, each broken by hand: found, and by its own name. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { doMajoritiesMeet } from "../src/invariants/configurations.js";
import { InvariantError } from "../src/invariants/invariant-error.js";
import { allowing, finding, finds, index, term } from "./invariants-breach.js";
import { configurationOf, healthyWorld, peerOf } from "./invariants-world.js";

describe("commits", () => {
  finding("commit-quorum", "an entry that one disk holds", (world) => {
    world.node("n1").append("command", "one");
    world.node("n1").persist();
    world.commit("n1");
  });

  finding("commit-quorum", "an entry that one disk holds, in the event in which the node stops", (world) => {
    world.node("n1").append("command", "one");
    world.node("n1").persist();
    world.commit("n1");
    world.node("n1").isStopped = true;
  });

  finding("commit-quorum", "an entry of the leader's that is in its memory only, and on one other disk", (world) => {
    for (const id of ["n1", "n2"]) world.node(id).append("command", "one");
    world.node("n2").persist();
    world.commit("n1");
  });

  finding("commit-quorum", "a follower commits what no leader has", (world) => {
    world.node("n1").append("command", "one");
    world.replicate("n1");
    world.look();
    world.commit("n2");
  });

  finding("commit-quorum", "a committed entry lost by two disks", (world) => {
    for (const id of ["n2", "n3"]) {
      world.node(id).disk.entries.pop();
      world.restart(id);
    }
  });

  finding("commit-own-term", "an older term's entry, by counting", (world) => {
    world.node("n1").append("command", "one");
    world.look();
    world.elect("n1", 2);
    world.replicate("n1");
    world.commit("n1");
  });

  finding("commit-agreement", "another entry than was committed", (world) => {
    const node = world.restart("n3");
    node.raft.entries = node.raft.entries.slice(0, 2);
    node.raft.term = term(2);
    node.append("command", "another", 2);
    world.look("n3");
    node.raft.commitIndex = index(3);
  });

  finding("commit-agreement", "a snapshot beyond what is committed", (world) => {
    const { raft } = world.node("n3");
    const base = { ...raft.logBase, position: { term: term(1), index: index(7) } };
    Object.assign(raft, { logBase: base, base, entries: [], commitIndex: 7, lastApplied: 7, persistedIndex: 7 });
  });

  finding("monotonic", "commitIndex falls", (world) => {
    world.node("n2").raft.commitIndex = index(2);
  });

  finding("monotonic", "matchIndex falls", (world) => {
    const { raft } = world.node("n1");
    raft.peers = raft.peers.map(({ id }) => peerOf(id, 2, 4));
  });

  finding("match-index", "more than the peer's disk holds", (world) => {
    const leader = world.node("n1");
    leader.append("command", "one");
    leader.raft.peers = leader.raft.peers.map(({ id }) => peerOf(id, 4, 5));
  });

  finding("match-index", "of other entries than the peer's disk holds", (world) => {
    const leader = world.node("n1");
    const other = world.node("n2");
    leader.append("command", "one");
    world.look();
    other.append("command", "two");
    other.disk.entries = [...other.raft.entries];
    leader.raft.peers = leader.raft.peers.map(({ id }) => peerOf(id, id === "n2" ? 4 : 3, 5));
  });
});

describe("configurations", () => {
  const rule = "configuration";

  allowing("a change by a joint configuration", (world) => {
    const leader = world.node("n1");
    leader.configure(configurationOf(["n1", "n2"], ["n1", "n2", "n3"]));
    world.look("n1");
  });

  finding(rule, "two that are not committed", (world) => {
    const leader = world.node("n1");
    leader.configure(configurationOf(["n1", "n2"], ["n1", "n2", "n3"]));
    leader.configure(configurationOf(["n1", "n2"], [], ["n3"]));
  });

  finding(rule, "another in force than the last in the log", (world) => {
    const leader = world.node("n1");
    leader.configure(configurationOf(["n1", "n2"], ["n1", "n2", "n3"]));
    leader.raft.configuration = configurationOf(["n1", "n2", "n3"]);
  });

  finding(rule, "another in force than the base's", (world) => {
    world.node("n1").raft.configuration = configurationOf(["n1"]);
    world.node("n1").append("command", "one");
  });

  finding(rule, "majorities that don't meet", (world) => {
    world.node("n1").configure(configurationOf(["n4", "n5", "n6"]));
  });

  finding(rule, "a removed node that votes", (world) => {
    world.node("n1").configure(configurationOf(["n1", "n2", "n3"], [], ["n3"]));
  });

  it("majorities of one changed voter meet, of two they need not", () => {
    const three = configurationOf(["a", "b", "c"]);
    assert.ok(doMajoritiesMeet(three, configurationOf(["a", "b", "c", "d"])));
    assert.ok(!doMajoritiesMeet(three, configurationOf(["a", "b", "c", "d", "e"])));
    assert.ok(!doMajoritiesMeet(three, configurationOf(["a", "d", "e"])));
    assert.ok(doMajoritiesMeet(three, configurationOf(["a", "d", "e"], ["a", "b", "c"])));
  });
});

describe("states", () => {
  const open = (key: string, ttlMs: number) => ({ kind: "openSession", key: key.repeat(32), ttlMs, info: "" }) as const;

  finding("state-machine-safety", "other effects of one entry", (world) => {
    world.node("n1").apply(2, open("a", 2_000));
    world.node("n2").apply(2, open("a", 3_000));
  });

  finding(
    "state-machine-safety",
    "equal effects, another state",
    (world) => {
      // The session that is silent is another.
      for (const [id, key] of [
        ["n1", "a"],
        ["n2", "b"],
      ] as const) {
        const node = world.node(id);
        node.machine.apply(1, open(key, 2_000));
        node.apply(16, { kind: "endLockDelay", name: "none", index: 1 });
      }
    },
    /another state at 16/,
  );

  finding("state-machine-safety", "another state in a later life", (world) => {
    world.node("n3").apply(16, open("a", 2_000));
    const node = world.restart("n3");
    node.machine.apply(1, open("b", 2_000));
    node.apply(16, open("a", 2_000));
  });

  finding("lock-machine", "a table that lost a row", (world) => {
    const { machine } = world.node("n1");
    machine.apply(1, open("a", 2_000));
    machine["state"].sessionCount = 2;
    world.node("n1").apply(16, open("b", 2_000));
  });

  it("bounds: more than the run's limit", () => {
    const world = healthyWorld({ logEntries: 3, queuedFrames: 1 });
    world.look();
    world.node("n1").append("command", "one");
    finds("bounds", world, /4 log entries/);
    const other = healthyWorld({ queuedFrames: 1 });
    other.node("n1").frames.push({}, {});
    finds("bounds", other, /2 queued frames/);
  });

  it("convergence: what differs at rest is named", () => {
    const world = healthyWorld();
    world.node("n3").raft.commitIndex = index(2);
    const isConvergence = (error: unknown): boolean => error instanceof InvariantError && error.rule === "convergence";
    assert.throws(() => world.watch.assertConverged(["n2", "n3"]), isConvergence);
    world.node("n3").raft.commitIndex = index(3);
    world.watch.assertConverged(["n2", "n3"]);
    world.node("n3").machine.apply(9, open("a", 2_000));
    assert.throws(() => world.watch.assertConverged(["n2", "n3"]), /state hash/);
    world.watch.onStopped("n3");
    assert.throws(() => world.watch.assertConverged(["n2", "n3"]), isConvergence);
  });
});
