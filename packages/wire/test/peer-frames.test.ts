/** What is refused of a peer's frame, and how appends and snapshot chunks fill frames. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Entry, Message } from "@holdfast/raft";
import { decodePeerFrame, encodePeerFrame, encodeRaftFrames, limits } from "../src/index.js";
import { base, indexOf, peerFrames, positionOf, termOf } from "./peer-samples.js";
import { codeOf, peerBytes } from "./wire-errors.js";

test("a flipped bit anywhere in a peer frame is seen", () => {
  for (const frame of Object.values(peerFrames).flat()) {
    const bytes = new Uint8Array(encodePeerFrame(frame));
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const byte = bytes[bit >> 3] as number;
      bytes[bit >> 3] = byte ^ (1 << (bit & 7));
      assert.equal(
        codeOf(() => decodePeerFrame(bytes)),
        "bad_checksum",
      );
      bytes[bit >> 3] = byte;
    }
  }
});

test("peer frames shorter than a checksum are refused", () => {
  for (let length = 0; length <= 4; length++)
    assert.equal(
      codeOf(() => decodePeerFrame(new Uint8Array(length))),
      "truncated",
    );
});

function appendOf(count: number, payloadBytes: number): Extract<Message, { kind: "append" }> {
  const entries = Array.from(
    { length: count },
    (_, at): Entry => ({
      index: indexOf(2 ** 40 + at),
      term: termOf(2 ** 40),
      kind: "command",
      payload: new Uint8Array(payloadBytes).fill(at),
      chain: 0xffffffff - at,
    }),
  );
  return {
    kind: "append",
    term: termOf(2 ** 40),
    previous: positionOf(2 ** 40, 2 ** 40 - 1),
    previousChain: 0xffffffff,
    entries,
    commitIndex: indexOf(2 ** 40),
  };
}

test("a full append fits in a frame", () => {
  const full = appendOf(limits.appendEntriesMax, limits.appendBytesMax / limits.appendEntriesMax);
  const bytes = encodePeerFrame({ kind: "raft", messages: [full] });
  assert.deepEqual(decodePeerFrame(bytes), { kind: "raft", messages: [full] });
  const tooMany = appendOf(limits.appendEntriesMax + 1, 1);
  assert.equal(
    codeOf(() => encodePeerFrame({ kind: "raft", messages: [tooMany] })),
    "too_large",
  );
});

test("a whole window of appends goes into several frames, in order", () => {
  const window = Array.from({ length: limits.appendsInFlightMax }, (_, at) => ({
    ...appendOf(16, limits.appendBytesMax / 16),
    commitIndex: indexOf(at),
  }));
  assert.equal(
    codeOf(() => encodePeerFrame({ kind: "raft", messages: window })),
    "too_large",
  );
  const frames = encodeRaftFrames(window);
  assert.ok(frames.length > 1 && frames.length <= window.length);
  const decoded = frames.map(decodePeerFrame).flatMap((frame) => (frame.kind === "raft" ? frame.messages : []));
  assert.deepEqual(decoded, window);
});

test("appends of many small entries are split by their items", () => {
  const window = new Array<Message>(8).fill(appendOf(limits.appendEntriesMax, 8));
  const frames = encodeRaftFrames(window);
  assert.ok(frames.length > 1);
  assert.equal(
    frames.map(decodePeerFrame).flatMap((frame) => (frame.kind === "raft" ? frame.messages : [])).length,
    window.length,
  );
  assert.deepEqual(encodeRaftFrames([]), []);
});

test("a snapshot chunk with the largest configuration fits, and is counted right", () => {
  const member = (at: number): { id: string; instance: string; peer: string; client: string } => ({
    id: `n${at}`.padEnd(limits.idBytesMax, "x"),
    instance: "i".repeat(limits.idBytesMax),
    peer: "p".repeat(limits.addressBytesMax),
    client: "c".repeat(limits.addressBytesMax),
  });
  const members = Array.from({ length: limits.membersMax }, (_, at) => member(at));
  const removed = Array.from({ length: limits.removedMax }, (_, at) => `r${at}`.padEnd(limits.idBytesMax, "x"));
  const chunk: Message = {
    kind: "snapshotChunk",
    term: termOf(1),
    base: { ...base, configuration: { voters: members, outgoing: members, learners: members, removed } },
    chunk: 0,
    bytes: new Uint8Array(limits.snapshotChunkBytes),
    done: false,
  };
  const frames = encodeRaftFrames(new Array<Message>(20).fill(chunk));
  assert.ok(frames.length > 1);
  for (const frame of frames) assert.equal(decodePeerFrame(frame).kind, "raft");
});

test("payloads and entries of an append must match", () => {
  const heads = [1, 2, 3, 7, 1, 2, 1, 8];
  const append = (fields: unknown[], payloads: unknown): Uint8Array =>
    peerBytes([5, [[5, 1, 1, 1, 0, 0, fields, payloads]]]);
  const decoded = decodePeerFrame(append(heads, new Uint8Array([1, 2, 3, 4])));
  assert.ok(decoded.kind === "raft" && decoded.messages[0]?.kind === "append");
  assert.deepEqual(
    decoded.messages[0].entries.map((entry) => [...entry.payload]),
    [[1, 2, 3], [4]],
  );
  assert.equal(
    codeOf(() => decodePeerFrame(append(heads, new Uint8Array(3)))),
    "bad_value",
  );
  assert.equal(
    codeOf(() => decodePeerFrame(append(heads, new Uint8Array(5)))),
    "bad_shape",
  );
  assert.equal(
    codeOf(() => decodePeerFrame(append(heads.slice(1), new Uint8Array(4)))),
    "bad_shape",
  );
  assert.equal(
    codeOf(() => decodePeerFrame(append(heads, "abcd"))),
    "bad_value",
  );
  assert.equal(
    codeOf(() => decodePeerFrame(append([1, 2, -1, 7], new Uint8Array(0)))),
    "bad_value",
  );
});

test("entries with a gap, or behind another position, are a broken invariant of the sender", () => {
  const append = appendOf(3, 1);
  const gap = { ...append, entries: append.entries.filter((_, at) => at !== 1) };
  const shifted = { ...append, previous: positionOf(1, 1) };
  for (const message of [gap, shifted]) {
    assert.throws(() => encodePeerFrame({ kind: "raft", messages: [message] }), /broken invariant/);
  }
});
