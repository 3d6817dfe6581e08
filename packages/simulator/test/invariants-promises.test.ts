/** Rules on elections, logs and promises, each broken by hand: found, and by its own name. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Message } from "@holdfast/raft";
import { allowing, finding, index, term } from "./invariants-breach.js";
import { electionTimeoutMs, healthyWorld, peerOf } from "./invariants-world.js";

function vote(of: number, granted = true): Message {
  return { kind: "voteAnswer", term: term(of), granted };
}

function accepted(of: number, matchIndex: number): Message {
  return { kind: "appendAccepted", term: term(of), matchIndex: index(matchIndex) };
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
