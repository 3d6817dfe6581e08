import assert from "node:assert/strict";
import { test } from "node:test";
import { checkInvariants, InvariantError, Raft } from "../src/index.js";
import type { Index, Output, RaftLimits, RaftOptions, Restored, Term } from "../src/index.js";
import { generousLimits } from "./support/cluster.js";
import { bytesOf, configurationOf, testCodec } from "./support/codec.js";
import { SeededRandom } from "./support/random.js";
import {
  appendOf,
  baseOf,
  entriesOf,
  entryOf,
  firstBase,
  heartbeatOf,
  preVoteOf,
  Solo,
  voteOf,
} from "./support/solo.js";

const options: RaftOptions = {
  id: "n1",
  electionTimeoutMsMin: 500,
  heartbeatMs: 100,
  diskStallMs: 1_000,
  limits: generousLimits,
};
const restored: Restored = {
  hardState: { term: 3 as Term, votedFor: null },
  base: firstBase,
  entries: entriesOf("1/1 2/3"),
};

function raftOf(optionChanges: Partial<RaftOptions>, restoredChanges: Partial<Restored> = {}): Raft {
  const parts = { random: new SeededRandom(1), codec: testCodec };
  return new Raft({ ...options, ...optionChanges }, parts, { ...restored, ...restoredChanges });
}

test("what storage gives back is checked: gaps, chain values, terms", () => {
  assert.equal(raftOf({}).lastIndex, 2);
  const [first, second] = entriesOf("1/1 2/3");
  const bad = (changes: Partial<Restored>, rule: RegExp): void => assert.throws(() => raftOf({}, changes), rule);
  bad({ entries: [second] as (typeof restored.entries)[0][] }, /chained|gap/);
  bad({ entries: [{ ...first, payload: bytesOf("flipped") }] as (typeof restored.entries)[0][] }, /chained/);
  bad({ hardState: { term: 2 as Term, votedFor: null } }, /later term than the hard state/);
  bad({ base: baseOf(0, 0, 8) }, /chained/);
});

test("options are checked at the door", () => {
  const bad = (changes: Partial<RaftOptions>): void => assert.throws(() => raftOf(changes), InvariantError);
  bad({ electionTimeoutMsMin: 0 });
  bad({ heartbeatMs: 500 });
  bad({ heartbeatMs: Number.NaN });
  bad({ diskStallMs: -1 });
  for (const name of Object.keys(generousLimits) as (keyof RaftLimits)[]) {
    bad({ limits: { ...generousLimits, [name]: -1 } });
    bad({ limits: { ...generousLimits, [name]: 1.5 } });
  }
  raftOf({ limits: { ...generousLimits, trailingEntriesMax: 0, reservedBytesMax: 0 } });
});

test("output numbers rise by one, and there is no output when there is nothing to do", () => {
  const solo = new Solo().lead();
  solo.propose("a").propose("b").persist().accept("n2", 3);
  assert.deepEqual(
    solo.outputs.map(({ number }) => number),
    solo.outputs.map((_, at) => at + 1),
  );
  assert.deepEqual([solo.raft.hasOutput(), solo.raft.takeOutput()], [false, null]);
});

test("what promises waits for the disk, what doesn't goes at once", () => {
  const kinds = (list: Output["send"]): string[] => list.map(({ message }) => message.kind);
  const solo = new Solo();
  solo.receive("n2", preVoteOf(1, "0/0"));
  assert.deepEqual(kinds(solo.outputs.at(-1)?.send ?? []), ["preVoteAnswer"]);
  solo.receive("n2", voteOf(1, "0/0"));
  assert.deepEqual(kinds(solo.outputs.at(-1)?.sendAfterPersist ?? []), ["voteAnswer"]);
  solo.receive("n2", appendOf(1, [], entriesOf("1/1")));
  assert.deepEqual(kinds(solo.outputs.at(-1)?.sendAfterPersist ?? []), ["appendAccepted"]);
  solo.receive("n2", heartbeatOf(1));
  assert.deepEqual(kinds(solo.outputs.at(-1)?.send ?? []), ["heartbeatAnswer"]);
});

test("an answer to a heartbeat waits with a hard state of the same output", () => {
  const solo = new Solo();
  solo.receive("n2", heartbeatOf(4));
  const output = solo.outputs.at(-1);
  assert.deepEqual([output?.hardState?.term, output?.send.length], [4, 0]);
  assert.equal(output?.sendAfterPersist[0]?.message.kind, "heartbeatAnswer");
});

test("an acknowledgement with nothing to write still waits its turn behind the write that it rests on", () => {
  const solo = new Solo();
  const log = entriesOf("1/1");
  solo.receive("n2", appendOf(1, [], log)).receive("n2", appendOf(1, [], log));
  const output = solo.outputs.at(-1);
  assert.deepEqual([output?.entries.length, output?.send.length, output?.sendAfterPersist.length], [0, 0, 1]);
});

test("acknowledgements of one turn to one leader are one", () => {
  const log = entriesOf("1/1 2/1");
  const solo = new Solo();
  solo.stepAll([
    { kind: "received", from: "n2", message: appendOf(1, [], log.slice(0, 1)) },
    { kind: "received", from: "n2", message: appendOf(1, log.slice(0, 1), log.slice(1)) },
  ]);
  assert.deepEqual(
    solo.outputs.at(-1)?.sendAfterPersist.map(({ message }) => message),
    [{ kind: "appendAccepted", term: 1, matchIndex: 2 }],
  );
});

test("there are no idle ticks: the deadline is the election's, and a leader's are heartbeat, quorum, disk and transfer", () => {
  const solo = new Solo();
  const deadline = solo.raft.nextDeadlineMs();
  for (let at = solo.nowMs; at < deadline - 1; at += 50) {
    solo.nowMs = at;
    solo.step({ kind: "tick" });
  }
  assert.deepEqual([solo.outputs.length, solo.raft.nextDeadlineMs()], [0, deadline]);
  const leader = new Solo().lead();
  assert.equal(leader.raft.nextDeadlineMs(), leader.nowMs + 100);
  leader.step({ kind: "transfer", to: "n2" });
  leader.pass(100);
  assert.equal(leader.raft.nextDeadlineMs(), leader.nowMs + 100, "heartbeats go on");
  const alone = new Solo({ configuration: configurationOf(["n1"]) }).persist().persist();
  assert.equal(alone.raft.nextDeadlineMs(), Number.POSITIVE_INFINITY, "a sole voter has nobody to wait for");
  alone.propose("x");
  assert.equal(alone.raft.nextDeadlineMs(), alone.nowMs + 1_000, "but its disk");
});

test("a leader's deadlines between heartbeats: a quorum that goes silent, and the end of a transfer", () => {
  const hearing = (solo: Solo, untilMs: number): Solo => {
    while (solo.raft.nextDeadlineMs() < untilMs) solo.toDeadline().accept("n2", 1);
    return solo;
  };
  const silent = new Solo().lead();
  const heardMs = silent.nowMs;
  silent.accept("n2", 1);
  for (let beat = 0; beat < 4; beat += 1) silent.pass(100);
  // A round puts the heartbeats out of step with the timeout.
  silent.pass(50).step({ kind: "confirm", id: 1 });
  assert.equal(silent.raft.nextDeadlineMs(), heardMs + 500);
  const transferring = new Solo().lead().accept("n2", 1).pass(50);
  transferring.step({ kind: "transfer", to: "n3" });
  const deadlineMs = transferring.nowMs + 500;
  assert.equal(hearing(transferring, deadlineMs).raft.nextDeadlineMs(), deadlineMs);
});

test("deadlines with fractions of a millisecond are met when they come", () => {
  for (const offset of [0.1, 0.7, 1 / 3]) {
    const solo = new Solo();
    solo.nowMs += offset;
    solo.lead().accept("n2", 1).propose("x");
    for (let ticks = 0; solo.raft.role === "leader"; ticks += 1) {
      const deadlineMs = solo.raft.nextDeadlineMs();
      solo.toDeadline().accept("n2", 1);
      assert.ok(solo.raft.role !== "leader" || solo.raft.nextDeadlineMs() > deadlineMs, "no deadline is met in vain");
      assert.ok(ticks < 100);
    }
  }
});

test("time never falls, whatever events say", () => {
  const solo = new Solo();
  const deadline = solo.raft.nextDeadlineMs();
  solo.nowMs = 10;
  solo.receive("n2", heartbeatOf(1));
  assert.ok(solo.raft.nextDeadlineMs() >= 1_500 && deadline >= 1_500);
});

test("role changes are told once each, with a reason", () => {
  const solo = new Solo().lead();
  solo.pass(100).pass(100);
  assert.deepEqual(
    solo.outputs.flatMap((output) => output.roleChanges.map(({ role, term, leader }) => `${role} ${term} ${leader}`)),
    ["preCandidate 0 null", "candidate 1 null", "leader 1 n1"],
  );
  assert.ok(solo.outputs.every((output) => output.roleChanges.every(({ reason }) => reason.length > 0)));
});

test("the status shows what a leader knows of its peers", () => {
  const solo = new Solo().lead().accept("n2", 1);
  solo.propose("x").pass(100);
  const status = solo.raft.status();
  assert.deepEqual(status.peers[0], {
    id: "n2",
    membership: "voter",
    state: "replicate",
    matchIndex: 1,
    nextIndex: 3,
    behindEntries: 1,
    isCaughtUp: true,
    inFlight: 1,
    heardMsAgo: 100,
    snapshot: null,
  });
  assert.deepEqual([status.uncommittedBytes, status.persistedIndex, status.last], [41, 1, { index: 2, term: 1 }]);
});

test("the checker of invariants finds a broken step", () => {
  const solo = new Solo({ log: "1/1 2/1" });
  const status = solo.raft.status();
  const broken: [Partial<typeof status>, RegExp][] = [
    [{ term: 9 as Term }, /term never falls/],
    [{ commitIndex: 9 as Index }, /commitIndex never falls/],
    [{ lastApplied: 9 as Index }, /lastApplied never falls/],
    [{ votedFor: "n3" }, /vote never changes/],
    [
      { commitIndex: 0 as Index, last: { index: 0 as Index, term: 0 as Term }, lastChain: 123 },
      /committed entries stay/,
    ],
  ];
  for (const [changes, rule] of broken) {
    assert.throws(() => checkInvariants({ ...status, ...changes }, solo.raft), rule);
  }
  const leader = new Solo().lead();
  const before = { ...leader.raft.status(), lastChain: 5 };
  assert.throws(() => checkInvariants(before, leader.raft), /a leader only appends/);
  // What was proposed has yet to be sent, and this one won't say so.
  const settled = leader.accept("n2", 1).accept("n3", 1);
  const proposal = { id: 1, payload: bytesOf("x"), reserved: false, decidedInTerm: null };
  settled.raft.step({ kind: "propose", nowMs: settled.nowMs, proposal });
  const forgetful = new Proxy(settled.raft, {
    get(raft, name) {
      if (name === "hasOutput") return () => false;
      const value: unknown = Reflect.get(raft, name, raft);
      return typeof value === "function" ? (value.bind(raft) as unknown) : value;
    },
  });
  assert.doesNotThrow(() => checkInvariants(null, settled.raft));
  assert.throws(() => checkInvariants(null, forgetful), /what a peer lacks is under way to it/);
});

test("a log may begin above 1, and go on to large indexes", () => {
  const base = baseOf(2 ** 52, 0, 5);
  const solo = new Solo({ base }).lead().accept("n2", 2 ** 52 + 1);
  assert.deepEqual([solo.raft.commitIndex, solo.raft.lastApplied], [2 ** 52 + 1, 2 ** 52 + 1]);
  assert.deepEqual(solo.applied, [2 ** 52 + 1]);
  const [entry] = solo.outputs.flatMap((output) => output.committed);
  assert.equal(entry?.chain, entryOf(2 ** 52 + 1, 1, 5, "noop", new Uint8Array(0)).chain);
});
