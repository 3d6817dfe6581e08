import assert from "node:assert/strict";
import { test } from "node:test";
import type { Index, LogBase, Message, NodeId, Term } from "../src/index.js";
import { bytesOf, configurationOf, testCodec, textOf } from "./support/codec.js";
import { appendOf, baseOf, entriesOf, entryOf, firstBase, Solo } from "./support/solo.js";

type Chunk = Message & { readonly kind: "snapshotChunk" };

const log = entriesOf("1/1 2/1 3/1 4/1 5/1");

/** The base of a snapshot at an index of `log`. */
function baseAt(index: number): LogBase {
  const entry = log[index - 1];
  return { ...firstBase, position: { index: index as Index, term: 1 as Term }, chain: entry?.chain ?? 0 };
}

function chunkOf(base: LogBase, chunk: number, done = false, term = 1): Chunk {
  return { kind: "snapshotChunk", term: term as Term, base, chunk, bytes: bytesOf(`piece ${chunk}`), done };
}

function answers(solo: Solo): string[] {
  return solo.sentOf("snapshotAnswer").map(({ message, waited }) => {
    const says = message.installed ? "installed" : `next ${message.next}`;
    return `${message.snapshotIndex} ${says}${waited ? "" : " too early"}`;
  });
}

// Receiving.

test("chunks are written one by one, answered when they are durable, and the last one takes the log's place", () => {
  const solo = new Solo({ log: "1/1 2/1", hardState: { term: 1, votedFor: null } });
  const base = baseOf(9, 1, 1234);
  solo.receive("n2", chunkOf(base, 0));
  assert.deepEqual(answers(solo), [], "not durable yet");
  solo.persist();
  assert.deepEqual(answers(solo), ["9 next 1"]);
  solo.receive("n2", chunkOf(base, 1, true));
  const output = solo.outputs.at(-1);
  assert.deepEqual(
    [output?.chunk?.chunk, output?.chunk?.done, output?.truncateFrom, output?.entries.length],
    [1, true, 1, 0],
  );
  assert.deepEqual([solo.raft.lastIndex, solo.raft.persistedIndex, solo.raft.snapshotIndex], [9, 0, 0]);
  assert.equal(
    solo.outputs.some((each) => each.install !== null),
    false,
    "nothing is installed before it is durable",
  );
  solo.persist();
  assert.deepEqual(answers(solo), ["9 installed"]);
  assert.deepEqual(solo.outputs.at(-1)?.install, base);
  assert.deepEqual(
    [solo.raft.persistedIndex, solo.raft.snapshotIndex, solo.raft.lastApplied, solo.raft.commitIndex],
    [9, 9, 9, 9],
  );
});

test("what was committed stays on the disk until the snapshot is complete: only what lies beyond is truncated", () => {
  const solo = new Solo();
  solo
    .receive("n2", appendOf(1, [], log, 3))
    .persist()
    .clear();
  solo.receive("n2", chunkOf(baseOf(9, 1, 1234), 0, true));
  assert.equal(solo.outputs.at(-1)?.truncateFrom, 4);
});

test("while a snapshot waits for the disk nothing is applied, and the host may still ask for what it has applied", () => {
  const solo = new Solo();
  solo
    .receive("n2", appendOf(1, [], log, 3))
    .persist()
    .clear();
  solo.receive("n2", chunkOf(baseOf(9, 1, 1234), 0, true));
  assert.deepEqual(solo.raft.baseAt(3 as Index), baseAt(3));
  assert.equal(
    solo.raft.persistedIndex,
    0,
    "so that no own snapshot of the old log is completed behind the received one",
  );
  const next = entryOf(10, 1, 1234);
  solo.receive("n2", appendOf(1, [], [next], 10, baseOf(9, 1, 1234)));
  assert.deepEqual([solo.applied, solo.raft.commitIndex], [[], 10]);
  solo.persist();
  assert.deepEqual(solo.outputs.at(-1)?.install?.position.index, 9);
  assert.deepEqual(solo.applied, [10]);
});

test("an append in the same turn as the last chunk is as if it were lost", () => {
  const solo = new Solo();
  const base = baseOf(9, 1, 1234);
  solo.stepAll([
    { kind: "received", from: "n2", message: chunkOf(base, 0, true) },
    { kind: "received", from: "n2", message: appendOf(1, [], [entryOf(10, 1, 1234)], 10, base) },
  ]);
  assert.deepEqual([solo.outputs.at(-1)?.entries.length, solo.raft.lastIndex], [0, 9]);
});

test("a repeated chunk is answered with the one that is wanted; a later one isn't taken", () => {
  const solo = new Solo();
  const base = baseOf(9, 1, 1234);
  solo.receive("n2", chunkOf(base, 1)).persist();
  assert.deepEqual(answers(solo), ["9 next 0"]);
  solo.receive("n2", chunkOf(base, 0)).receive("n2", chunkOf(base, 0)).receive("n2", chunkOf(base, 2)).persist();
  assert.deepEqual(answers(solo), ["9 next 1", "9 next 1", "9 next 1"]);
  assert.equal(solo.outputs.filter((output) => output.chunk !== null).length, 1);
});

test("a newer snapshot of the same leader replaces an unfinished one; an older one comes too late", () => {
  const solo = new Solo();
  solo.receive("n2", chunkOf(baseOf(9, 1, 1), 0)).persist();
  solo.receive("n2", chunkOf(baseOf(12, 1, 2), 0)).persist();
  solo.receive("n2", chunkOf(baseOf(9, 1, 1), 1, true)).persist();
  assert.deepEqual(answers(solo), ["9 next 1", "12 next 1"]);
  assert.equal(solo.raft.lastIndex, 0);
  solo.receive("n2", chunkOf(baseOf(12, 1, 2), 1, true)).persist();
  assert.equal(solo.raft.snapshotIndex, 12);
});

test("a new leader's snapshot begins anew, though it be older", () => {
  const solo = new Solo();
  solo.receive("n2", chunkOf(baseOf(9, 1, 1), 0)).persist();
  solo.receive("n3", chunkOf(baseOf(7, 1, 1), 0, true, 2)).persist();
  assert.equal(solo.raft.snapshotIndex, 7);
});

test("a snapshot whose base is in the log erases nothing: it only tells what is committed (etcd #1763)", () => {
  const solo = new Solo();
  solo.receive("n2", appendOf(1, [], log, 1)).persist();
  solo.receive("n2", chunkOf(baseAt(3), 0)).persist();
  assert.deepEqual(answers(solo), ["3 installed"]);
  assert.deepEqual([solo.positions(), solo.raft.commitIndex], ["1/1 2/1 3/1 4/1 5/1", 3]);
  assert.deepEqual(solo.applied, [1, 2, 3], "and is applied entry by entry");
  assert.ok(solo.outputs.every((output) => output.chunk === null && output.install === null));
});

test("a late snapshot behind what is committed, or behind the log's base, takes nothing back", () => {
  const solo = new Solo();
  solo.receive("n2", appendOf(1, [], log, 5)).persist();
  solo.step({ kind: "snapshotTaken", base: solo.raft.baseAt(4 as Index) });
  solo
    .receive("n2", chunkOf(baseAt(2), 0, true))
    .receive("n2", chunkOf(baseAt(5), 0, true))
    .persist();
  assert.deepEqual(answers(solo), ["2 installed", "5 installed"]);
  assert.deepEqual([solo.positions(), solo.raft.snapshotIndex], ["5/1", 4]);
});

test("a snapshot that contradicts what is committed is divergence", () => {
  const solo = new Solo();
  solo.receive("n2", appendOf(1, [], log, 5));
  assert.throws(() => solo.receive("n2", chunkOf(baseOf(3, 1, 99), 0)), /agree before it/);
});

test("conflicting entries that are not committed go with the snapshot", () => {
  const solo = new Solo({ log: "1/1 2/1 3/1 4/1", hardState: { term: 1, votedFor: null } });
  solo.receive("n2", chunkOf(baseOf(3, 2, 99), 0, true, 2)).persist();
  assert.deepEqual([solo.positions(), solo.raft.lastIndex, solo.raft.termAt(3 as Index)], ["", 3, 2]);
  assert.equal(solo.outputs.find((output) => output.chunk !== null)?.truncateFrom, 1);
});

test("a second snapshot waits until the first is installed, then it is taken", () => {
  const solo = new Solo();
  const second = baseOf(12, 1, 5);
  solo.receive("n2", chunkOf(baseOf(9, 1, 1), 0, true)).receive("n2", chunkOf(second, 0, true));
  solo.persist();
  assert.deepEqual(answers(solo), ["9 installed"]);
  solo.receive("n2", chunkOf(second, 0, true)).persist();
  assert.deepEqual(answers(solo), ["12 installed"]);
  assert.deepEqual(
    solo.outputs.flatMap((output) => (output.install === null ? [] : [output.install.position.index])),
    [9, 12],
  );
});

test("the configuration of an installed snapshot is in force", () => {
  const solo = new Solo();
  const configuration = configurationOf(["n1", "n2", "n3", "n4", "n5"]);
  solo.receive("n2", chunkOf(baseOf(9, 1, 1, configuration), 0, true));
  assert.deepEqual([solo.raft.configuration, solo.outputs.at(-1)?.configuration], [configuration, configuration]);
});

// Taking.

test("a snapshot's base has the configuration as of its index, not the newest", () => {
  const [first] = entriesOf("1/1");
  const next = configurationOf(["n1", "n2", "n3", "n4"]);
  const change = entryOf(2, 1, first?.chain ?? 0, "configuration", testCodec.encodeConfiguration(next));
  const solo = new Solo();
  solo.receive("n2", appendOf(1, [], [first, change] as (typeof change)[], 2));
  assert.deepEqual(solo.raft.baseAt(1 as Index).configuration, configurationOf(["n1", "n2", "n3"]));
  assert.deepEqual(solo.raft.baseAt(2 as Index).configuration, next);
});

test("entries are kept behind a snapshot for slow followers", () => {
  const solo = new Solo({ limits: { trailingEntriesMax: 2 } });
  solo.receive("n2", appendOf(1, [], log, 5)).persist();
  solo.step({ kind: "snapshotTaken", base: solo.raft.baseAt(4 as Index) });
  assert.deepEqual([solo.positions(), solo.raft.base, solo.raft.logBase], ["3/1 4/1 5/1", baseAt(4), baseAt(2)]);
});

test("a snapshot that comes late is passed over; of what isn't applied or durable there is none", () => {
  const solo = new Solo();
  solo.receive("n2", appendOf(1, [], log, 4)).persist();
  const older = solo.raft.baseAt(2 as Index);
  solo.step({ kind: "snapshotTaken", base: solo.raft.baseAt(3 as Index) });
  solo.step({ kind: "snapshotTaken", base: older });
  assert.equal(solo.raft.snapshotIndex, 3);
  assert.throws(() => solo.raft.baseAt(5 as Index), /what has been applied/);
  assert.throws(() => solo.raft.baseAt(1 as Index), /what has been applied/, "compacted away");
  assert.throws(() => solo.step({ kind: "snapshotTaken", base: baseAt(5) }), /what has been applied/);
});

test("a restart goes on from the newest snapshot, and passes over what it covers", () => {
  const solo = new Solo({ base: baseAt(3), entries: log, hardState: { term: 1, votedFor: null } });
  assert.deepEqual([solo.positions(), solo.raft.commitIndex, solo.raft.lastApplied], ["4/1 5/1", 3, 3]);
});

// Sending.

/** A leader with a snapshot at 5, and n3 that has said it has nothing. */
function sendingLeader(): Solo {
  const solo = new Solo({ entries: log }).lead().accept("n2", 6);
  solo.step({ kind: "snapshotTaken", base: solo.raft.baseAt(5 as Index) }).clear();
  const hint = { index: 0 as Index, term: 0 as Term };
  return solo.receive("n3", { kind: "appendRejected", term: solo.raft.term, rejected: 5 as Index, hint });
}

function reads(solo: Solo): string[] {
  const asked = solo.outputs.flatMap((output) => output.snapshotReads);
  solo.outputs = [];
  return asked.map(({ to, base, chunk }) => `${to} ${base.position.index} ${chunk}`);
}

function give(solo: Solo, chunk: number, done = false, to: NodeId = "n3", base: LogBase = baseAt(5)): Solo {
  return solo.step({ kind: "snapshotRead", to, base, chunk, bytes: bytesOf(`piece ${chunk}`), done });
}

function want(solo: Solo, next: number, installed = false): Solo {
  return solo.receive("n3", {
    kind: "snapshotAnswer",
    term: solo.raft.term,
    snapshotIndex: 5 as Index,
    next,
    installed,
  });
}

function pieces(solo: Solo): string[] {
  return solo
    .sentOf("snapshotChunk")
    .map(({ to, message }) => `${to} ${textOf(message.bytes)}${message.done ? " done" : ""}`);
}

test("a peer behind the log is sent the snapshot, chunk after chunk, and goes on with the log", () => {
  const solo = sendingLeader();
  assert.deepEqual(reads(solo), ["n3 5 0"]);
  give(solo, 0);
  assert.deepEqual([pieces(solo), reads(solo)], [["n3 piece 0"], []]);
  want(solo, 1);
  assert.deepEqual(reads(solo), ["n3 5 1"]);
  give(solo, 1, true);
  assert.deepEqual(pieces(solo), ["n3 piece 1 done"]);
  solo.clear();
  want(solo, 2, true);
  assert.equal(solo.raft.status().peers[1]?.state, "replicate");
  assert.deepEqual(
    solo.sentOf("append").map(({ to, message }) => [to, message.previous.index, message.entries.length]),
    [["n3", 5, 1]],
  );
});

test("a peer that hasn't been heard for an election timeout gets no chunks", () => {
  const solo = new Solo({ entries: log }).lead().accept("n2", 6);
  solo.step({ kind: "snapshotTaken", base: solo.raft.baseAt(5 as Index) });
  const hint = { index: 0 as Index, term: 0 as Term };
  solo.receive("n3", { kind: "appendRejected", term: solo.raft.term, rejected: 5 as Index, hint });
  give(solo, 0).clear();
  for (let waited = 0; waited < 3_000; waited += 100) solo.pass(100).accept("n2", 6);
  assert.deepEqual(reads(solo), [], "it is silent");
  solo.receive("n3", { kind: "heartbeatAnswer", term: solo.raft.term, round: 0 });
  for (let waited = 0; waited < 9_000; waited += 100) {
    solo.pass(100).accept("n2", 6).receive("n3", { kind: "heartbeatAnswer", term: solo.raft.term, round: 0 });
  }
  assert.ok(reads(solo).length >= 1, "it is heard again");
});

test("an unanswered chunk is read and sent again, with growing patience", () => {
  const solo = sendingLeader();
  give(solo, 0);
  reads(solo);
  const retriesMs: number[] = [];
  for (let waited = 0; waited < 20_000; waited += 100) {
    solo.pass(100).accept("n2", 6).receive("n3", { kind: "heartbeatAnswer", term: solo.raft.term, round: 0 });
    if (reads(solo).length === 0) continue;
    retriesMs.push(waited + 100);
    give(solo, 0);
  }
  assert.deepEqual(retriesMs, [2_000, 6_000, 14_000]);
});

test("the end of the patience with a chunk is a deadline", () => {
  const solo = sendingLeader().pass(30);
  give(solo, 0);
  const deadlineMs = solo.nowMs + 2_000;
  while (solo.raft.nextDeadlineMs() < deadlineMs) solo.toDeadline().accept("n2", 6);
  assert.equal(solo.raft.nextDeadlineMs(), deadlineMs);
});

test("after a link was made anew the wanted chunk is asked for again, and a peer that has lost all may begin anew", () => {
  const solo = sendingLeader();
  give(solo, 0);
  want(solo, 1);
  give(solo, 1);
  want(solo, 2);
  reads(solo);
  want(solo, 1);
  assert.deepEqual(reads(solo), [], "a repeated answer takes nothing back");
  solo.step({ kind: "peerReset", peer: "n3" });
  give(solo, 2);
  assert.deepEqual(pieces(solo).slice(2), [], "what was read for the old link isn't sent");
  solo.pass(400).accept("n2", 6).receive("n3", { kind: "heartbeatAnswer", term: solo.raft.term, round: 0 });
  solo.pass(100);
  assert.deepEqual(reads(solo), ["n3 5 2"]);
  give(solo, 2);
  want(solo, 0);
  assert.deepEqual(reads(solo), ["n3 5 0"]);
  want(solo, 0);
  assert.deepEqual(reads(solo), [], "once");
});

test("when the snapshot is gone the newest one is begun; without a newer one the host isn't asked in a loop", () => {
  const solo = sendingLeader();
  reads(solo);
  const gone = { kind: "snapshotRead", to: "n3", base: baseAt(5), chunk: 0, bytes: null, done: false } as const;
  solo.step(gone);
  assert.deepEqual(reads(solo), []);
  solo.propose("x").persist().accept("n2", 7);
  const newer = solo.raft.baseAt(7 as Index);
  solo.step({ kind: "snapshotTaken", base: newer });
  for (let waited = 0; waited < 2_000; waited += 100) {
    solo.pass(100).accept("n2", 7).receive("n3", { kind: "heartbeatAnswer", term: solo.raft.term, round: 0 });
  }
  assert.deepEqual(reads(solo), ["n3 5 0"]);
  solo.step(gone);
  assert.deepEqual(reads(solo), ["n3 7 0"]);
});

test("entries after a snapshot that is under way are held for the peer, so that it needs no second one", () => {
  const solo = sendingLeader();
  give(solo, 0);
  for (let index = 7; index <= 20; index += 1) solo.propose("x").persist().accept("n2", index);
  solo.step({ kind: "snapshotTaken", base: solo.raft.baseAt(20 as Index) });
  assert.deepEqual([solo.raft.snapshotIndex, solo.raft.logBase.position.index], [20, 5]);
  solo.clear();
  want(solo, 1, true);
  assert.deepEqual(
    solo.sentOf("append").map(({ to, message }) => [to, message.previous.index]),
    [["n3", 5]],
  );
  assert.deepEqual(reads(solo), []);
});

test("late appends that bring the peer to the log make the rest of the snapshot needless", () => {
  const solo = sendingLeader();
  solo.accept("n3", 5);
  assert.notEqual(solo.raft.status().peers[1]?.state, "snapshot");
});

test("chunks leave after heartbeats and appends of the same output", () => {
  const solo = sendingLeader();
  solo.clear();
  solo.stepAll([
    { kind: "snapshotRead", to: "n3", base: baseAt(5), chunk: 0, bytes: bytesOf("x"), done: false },
    { kind: "propose", proposal: { id: 1, payload: bytesOf("x"), reserved: false, decidedInTerm: null } },
    { kind: "confirm", id: 1 },
  ]);
  assert.deepEqual(
    solo.sent.map(({ message }) => message.kind),
    ["heartbeat", "heartbeat", "append", "snapshotChunk"],
  );
});
