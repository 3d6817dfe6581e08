/** Each rule of the watch, broken by hand in a world that is healthy otherwise: found, and by its own name. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Index, Message, Term } from "@holdfast/raft";
import { doMajoritiesMeet } from "../src/invariants/configurations.js";
import { InvariantError } from "../src/invariants/invariant-error.js";
import type { RuleName } from "../src/invariants/invariant-error.js";
import type { World } from "./invariants-world.js";
import { configurationOf, electionTimeoutMs, healthyWorld, peerOf } from "./invariants-world.js";

const term = (value: number): Term => value as Term;
const index = (value: number): Index => value as Index;

function vote(of: number, granted = true): Message {
  return { kind: "voteAnswer", term: term(of), granted };
}

function accepted(of: number, matchIndex: number): Message {
  return { kind: "appendAccepted", term: term(of), matchIndex: index(matchIndex) };
}

function finds(rule: RuleName, world: World, pattern?: RegExp): void {
  assert.throws(
    () => world.look(),
    (error) => {
      assert.ok(error instanceof InvariantError, String(error));
      assert.equal(error.rule, rule, error.message);
      if (pattern !== undefined) assert.match(error.message, pattern);
      return true;
    },
  );
}

function finding(rule: RuleName, name: string, breach: (world: World) => void, pattern?: RegExp): void {
  it(`${rule}: ${name}`, () => {
    const world = healthyWorld();
    breach(world);
    finds(rule, world, pattern);
  });
}

function allowing(name: string, deed: (world: World) => void): void {
  it(`allowed: ${name}`, () => {
    const world = healthyWorld();
    deed(world);
    world.look();
  });
}

describe("a healthy world", () => {
  it("breaks no rule, and its events are told in order", () => {
    const world = healthyWorld();
    world.look();
    world.watch.assertConverged(["n2", "n3"]);
    world.watch.onStopped("n1");
    assert.deepEqual(world.told, ["n1 leads 1", "n1 commits 1", "n1 commits 2", "n1 commits 3", "n1 led 1"]);
    assert.equal(world.watch.commitPoint, 3);
  });

  allowing("a later leader takes an uncommitted entry's place", (world) => {
    world.node("n3").append("command", "lost", 1);
    world.look();
    world.elect("n2", 2).append("noop");
    world.look();
    world.replicate("n2");
    world.look();
    world.commit("n2");
  });

  allowing("a restart, and everything applied again", (world) => {
    const { raft } = world.restart("n3");
    world.look();
    raft.commitIndex = index(3);
  });
});

describe("elections", () => {
  finding("election-safety", "two leaders in one term", (world) => {
    Object.assign(world.node("n2").raft, { role: "leader", leader: "n2" });
  });

  finding("election-safety", "over a restart", (world) => {
    world.watch.onStopped("n1");
    Object.assign(world.node("n3").raft, { role: "leader", leader: "n3" });
  });

  finding("leader-completeness", "a leader without a committed entry", (world) => {
    const { raft } = world.restart("n3");
    raft.entries = raft.entries.slice(0, 2);
    raft.persistedIndex = index(2);
    world.look("n3");
    world.elect("n3", 2);
  });

  finding("leader-completeness", "a leader with another entry in its place", (world) => {
    const node = world.restart("n3");
    node.raft.entries = node.raft.entries.slice(0, 2);
    node.raft.term = term(2);
    node.append("command", "another", 2);
    world.look("n3");
    world.elect("n3", 3);
  });

  finding("quorum-contact", "a leader that says it has heard nobody", (world) => {
    const { raft } = world.node("n1");
    world.node("n1").nowMs += electionTimeoutMs / 3;
    raft.peers = raft.peers.map(({ id }) => peerOf(id, 3, 4, 3 * electionTimeoutMs));
    world.look("n1");
    world.node("n1").nowMs += electionTimeoutMs / 3;
  });

  finding("quorum-contact", "a leader that says it has heard, and was told nothing", (world) => {
    world.watch.onDelivered("n1", "n2");
    for (let passed = 0; passed < 2.4 * electionTimeoutMs; passed += 100) {
      world.node("n1").nowMs += 100;
      world.look("n1");
    }
    world.node("n1").nowMs += 200;
  });

  allowing("a leader that wakes from a pause, before its turn", (world) => {
    world.watch.onDelivered("n1", "n2");
    world.node("n1").nowMs += 10 * electionTimeoutMs;
  });

  allowing("a leader that hears one of two", (world) => {
    for (let passed = 0; passed < 5 * electionTimeoutMs; passed += 100) {
      world.node("n1").nowMs += 100;
      world.watch.onDelivered("n1", "n2");
      world.look("n1");
    }
  });
});

describe("logs", () => {
  finding("leader-append-only", "a leader drops an entry", (world) => {
    const leader = world.node("n1");
    leader.append("command", "one");
    world.look("n1");
    leader.raft.entries.pop();
  });

  finding("leader-append-only", "a leader changes an entry", (world) => {
    const leader = world.node("n1");
    leader.append("command", "one");
    world.look("n1");
    leader.raft.entries.pop();
    leader.append("command", "two");
  });

  finding("log-matching", "two entries of one index and term", (world) => {
    world.node("n1").append("command", "one");
    world.node("n2").append("command", "two");
  });

  finding("log-matching", "an entry changed in a log that keeps its length", (world) => {
    const { raft } = world.node("n2");
    world.node("n1").append("command", "one");
    world.node("n2").append("command", "one");
    world.look();
    raft.entries = raft.entries.map((entry) => (entry.index === 4 ? { ...entry, chain: entry.chain ^ 1 } : entry));
  });

  finding("log-matching", "on the disk, when it is acknowledged", (world) => {
    const node = world.node("n2");
    node.append("command", "one");
    world.look();
    node.persist();
    node.disk.entries = node.disk.entries.map((entry) => ({ ...entry, chain: entry.chain ^ 1 }));
    node.raft.persistedIndex = index(3);
    world.watch.onSent("n2", "n3", accepted(1, 4));
  });

  finding("contiguity", "a hole", (world) => {
    world.node("n2").append("command", "one");
    const { raft } = world.node("n2");
    raft.entries = raft.entries.map((entry) => (entry.index === 4 ? { ...entry, index: index(5) } : entry));
  });

  finding("contiguity", "an entry of a later term than the node's", (world) => world.node("n2").append("noop", "", 7));

  finding("contiguity", "a disk with entries of a later term than its own", (world) => {
    world.watch.forgive("n2");
    world.node("n2").disk.hardState = { term: term(0), votedFor: null };
    world.restart("n2");
  });

  finding("core", "what the core says of itself", (world) => {
    world.node("n2").raft.lastApplied = index(2);
    world.look("n2");
    Object.assign(world.node("n2").raft, { role: "candidate", votedFor: "n3" });
  });
});

describe("promises", () => {
  const rule = "durable-promises";

  finding(rule, "a vote that is not on the disk", (world) => world.watch.onSent("n2", "n3", vote(2)));

  finding(rule, "a request for votes whose own vote is not on the disk", (world) => {
    world.node("n2").disk.hardState = { term: term(2), votedFor: null };
    const last = { term: term(1), index: index(3) };
    world.watch.onSent("n2", "n3", { kind: "vote", term: term(2), last, transfer: false });
  });

  finding(rule, "a refusal of a term that is not on the disk", (world) =>
    world.watch.onSent("n2", "n3", vote(2, false)),
  );

  finding(
    rule,
    "two votes in one term, in two lives",
    (world) => {
      const { disk } = world.node("n2");
      disk.hardState = { term: term(2), votedFor: "n1" };
      world.watch.onSent("n2", "n1", vote(2));
      // A later term covers both: only who remembers sees it.
      disk.hardState = { term: term(3), votedFor: null };
      world.restart("n2");
      world.watch.onSent("n2", "n3", vote(2));
    },
    /votes for n1 and for n3/,
  );

  finding(rule, "a vote forgotten over a restart", (world) => {
    const { disk } = world.node("n2");
    disk.hardState = { term: term(2), votedFor: "n1" };
    world.watch.onSent("n2", "n1", vote(2));
    disk.hardState = { term: term(2), votedFor: null };
    world.restart("n2");
  });

  finding(
    rule,
    "a durable term that falls over a restart",
    (world) => {
      const { disk } = world.node("n2");
      disk.hardState = { term: term(5), votedFor: null };
      world.restart("n2");
      world.look();
      disk.hardState = { term: term(4), votedFor: null };
      world.restart("n2");
    },
    /falls from 5 to 4/,
  );

  finding(rule, "an acknowledgement beyond the disk", (world) => world.watch.onSent("n2", "n1", accepted(1, 4)));

  finding(rule, "an acknowledgement of a term that is not on the disk", (world) => {
    world.watch.onSent("n2", "n1", accepted(2, 3));
  });

  finding(rule, "an acknowledgement of what the leader doesn't have", (world) => {
    const node = world.node("n2");
    node.append("command", "own");
    node.persist();
    world.watch.onSent("n2", "n1", accepted(1, 4));
  });

  finding(rule, "an installed snapshot that is not on the disk", (world) => {
    const answer = {
      kind: "snapshotAnswer",
      term: term(1),
      snapshotIndex: index(9),
      next: 0,
      installed: true,
    } as const;
    world.watch.onSent("n2", "n1", answer);
  });

  finding(rule, "an acknowledged entry that a restart has lost", (world) => {
    const leader = world.node("n1");
    const node = world.node("n2");
    leader.append("command", "one");
    node.append("command", "one");
    node.persist();
    world.look();
    world.watch.onSent("n2", "n1", accepted(1, 4));
    world.look();
    node.disk.entries.pop();
    world.restart("n2");
  });

  finding(rule, "a log taken for durable that is not on the disk", (world) => {
    const node = world.node("n2");
    node.append("command", "one");
    node.raft.persistedIndex = index(4);
  });

  allowing("a disk that has lied and is forgiven", (world) => {
    const { disk } = world.node("n2");
    world.watch.onSent("n2", "n1", accepted(1, 3));
    disk.hardState = { term: term(5), votedFor: "n3" };
    world.watch.onSent("n2", "n3", vote(5));
    disk.hardState = { term: term(1), votedFor: null };
    disk.entries = disk.entries.slice(0, 2);
    world.watch.forgive("n2");
    world.restart("n2");
  });
});

describe("commits", () => {
  finding("commit-quorum", "an entry that one disk holds", (world) => {
    world.node("n1").append("command", "one");
    world.node("n1").persist();
    world.commit("n1");
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
