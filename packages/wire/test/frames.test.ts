/** Client, server and peer frames: what is ignored, what is refused, and where a frame ends. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  decodeClientFrame,
  decodePeerFrame,
  decodeServerFrame,
  encodeClientFrame,
  encodeClientFrames,
  encodePeerFrame,
  encodeServerFrame,
  encodeServerFrames,
  limits,
  WireError,
} from "../src/index.js";
import type { ClientMessage, PeerFrame, ServerMessage } from "../src/index.js";
import { pack, unpack } from "../src/msgpack.js";
import { peerFrames, raftMessages } from "./peer-samples.js";
import { clientMessages, serverMessages } from "./samples.js";
import { codeOf, peerBytes } from "./wire-errors.js";

/** Fields of each peer frame with its kind's number: those that the first release sent, and all that this one knows. */
const peerFieldCounts: Record<PeerFrame["kind"], { readonly first: number; readonly known: number }> = {
  hello: { first: 10, known: 12 },
  refused: { first: 3, known: 3 },
  formed: { first: 4, known: 5 },
  goodbye: { first: 1, known: 1 },
  raft: { first: 2, known: 2 },
};

function peerFieldsOf(frame: PeerFrame): unknown[] {
  return unpack(encodePeerFrame(frame), 4, 1_000);
}

test("fields at the end that a later release adds are ignored, in every message", () => {
  const more = [7, "later", [1, [2]], null];
  for (const message of Object.values(clientMessages).flat()) {
    const fields = unpack(encodeClientFrame([message]), 0, 1_000)[0] as unknown[];
    assert.deepEqual(decodeClientFrame(pack([[...fields, ...more]])), [message]);
  }
  for (const message of Object.values(serverMessages).flat()) {
    const fields = unpack(encodeServerFrame([message]), 0, 1_000)[0] as unknown[];
    assert.deepEqual(decodeServerFrame(pack([[...fields, ...more]])), [message]);
  }
  for (const frame of Object.values(peerFrames).flat()) {
    const fields = peerFieldsOf(frame);
    // Whoever adds a field behind an optional one that it doesn't give writes null there.
    while (fields.length < peerFieldCounts[frame.kind].known) fields.push(null);
    assert.deepEqual(decodePeerFrame(peerBytes([...fields, ...more])), frame);
  }
  for (const message of Object.values(raftMessages)) {
    const fields = unpack(encodePeerFrame({ kind: "raft", messages: [message] }), 4, 1_000)[1] as unknown[][];
    const decoded = decodePeerFrame(peerBytes([5, [[...(fields[0] ?? []), ...more]]]));
    assert.deepEqual(decoded, { kind: "raft", messages: [message] });
  }
});

test("a message with a field less is refused", () => {
  for (const message of Object.values(clientMessages).flat()) {
    const fields = unpack(encodeClientFrame([message]), 0, 1_000)[0] as unknown[];
    assert.throws(() => decodeClientFrame(pack([fields.slice(0, -1)])), WireError);
  }
  for (const message of Object.values(serverMessages).flat()) {
    const fields = unpack(encodeServerFrame([message]), 0, 1_000)[0] as unknown[];
    assert.throws(() => decodeServerFrame(pack([fields.slice(0, -1)])), WireError, message.kind);
  }
  for (const frame of Object.values(peerFrames).flat()) {
    const fields = peerFieldsOf(frame).slice(0, peerFieldCounts[frame.kind].first - 1);
    assert.throws(() => decodePeerFrame(peerBytes(fields)), WireError, frame.kind);
  }
  for (const message of Object.values(raftMessages)) {
    const fields = unpack(encodePeerFrame({ kind: "raft", messages: [message] }), 4, 1_000)[1] as unknown[][];
    assert.throws(() => decodePeerFrame(peerBytes([5, [fields[0]?.slice(0, -1)]])), WireError, message.kind);
  }
});

test("a hello or a status without versions is of a release that runs the first one", () => {
  const first = { min: 1, max: 1 };
  for (const hello of peerFrames.hello) {
    assert.ok(hello.kind === "hello");
    const { peer: _, ...older } = hello;
    const fields = peerFieldsOf(hello).slice(0, peerFieldCounts.hello.first);
    assert.deepEqual(decodePeerFrame(peerBytes(fields)), { ...older, versions: first });
  }
  const answer = serverMessages.answer.find((each) => each.kind === "answer" && each.result.kind === "status");
  assert.ok(answer?.kind === "answer" && answer.result.kind === "status");
  const [kind, number, [result, status]] = unpack(encodeServerFrame([answer]), 0, 1_000)[0] as [
    number,
    number,
    [number, unknown[]],
  ];
  assert.deepEqual(decodeServerFrame(pack([[kind, number, [result, status.slice(0, -1)]]])), [
    {
      ...answer,
      result: { kind: "status", status: { ...answer.result.status, clusterVersion: 1, versions: first } },
    },
  ]);
});

test("a hello without the caller's address, and a formed without the first configuration, are good", () => {
  for (const hello of peerFrames.hello) {
    assert.ok(hello.kind === "hello");
    const { peer: _, ...older } = hello;
    const fields = peerFieldsOf(hello).slice(0, peerFieldCounts.hello.known - 1);
    assert.deepEqual(decodePeerFrame(peerBytes(fields)), older);
  }
  for (const formed of peerFrames.formed) {
    assert.ok(formed.kind === "formed");
    const { firstConfiguration: _, ...older } = formed;
    const fields = peerFieldsOf(formed).slice(0, peerFieldCounts.formed.first);
    assert.deepEqual(decodePeerFrame(peerBytes(fields)), older);
  }
});

test("a range of versions that can't be is refused", () => {
  const [hello] = peerFrames.hello;
  assert.ok(hello !== undefined);
  const fields = peerFieldsOf(hello).slice(0, peerFieldCounts.hello.first);
  for (const versions of [[2, 1], [0, 1], [1], [1, "2"], 1, null]) {
    assert.throws(() => decodePeerFrame(peerBytes([...fields, versions])), WireError, JSON.stringify(versions));
  }
});

/** One more than the highest number among messages of all kinds, as they are encoded. */
function firstUnknownKind(messages: readonly (readonly unknown[])[]): number {
  return 1 + Math.max(...messages.map(([kind]) => kind as number));
}

test("messages of unknown kinds are refused as such", () => {
  const client = unpack(encodeClientFrame(Object.values(clientMessages).flat()), 0, 10_000) as unknown[][];
  for (const kind of [0, firstUnknownKind(client), 99, "hello", null, 1.5, [1]]) {
    assert.equal(
      codeOf(() => decodeClientFrame(pack([[kind, 1, 2, 3]]))),
      "unknown_message",
    );
  }
  const server = unpack(encodeServerFrame(Object.values(serverMessages).flat()), 0, 10_000) as unknown[][];
  for (const kind of [0, firstUnknownKind(server), "welcome", null]) {
    assert.equal(
      codeOf(() => decodeServerFrame(pack([[kind]]))),
      "unknown_message",
    );
  }
  const peer = Object.values(peerFrames).flat().map(peerFieldsOf);
  for (const kind of [0, firstUnknownKind(peer), "raft", null]) {
    assert.equal(
      codeOf(() => decodePeerFrame(peerBytes([kind, 1]))),
      "unknown_message",
    );
  }
  const raft = peerFieldsOf({ kind: "raft", messages: Object.values(raftMessages) })[1] as unknown[][];
  for (const kind of [0, firstUnknownKind(raft), "vote"]) {
    assert.equal(
      codeOf(() => decodePeerFrame(peerBytes([5, [[kind, 1]]]))),
      "unknown_message",
    );
  }
});

test("unknown kinds inside of messages are refused by name", () => {
  const odd: readonly [() => unknown, string][] = [
    [() => decodeClientFrame(pack([[5, 1, [99]]])), "query"],
    [() => decodeServerFrame(pack([[6, 1, 1, 1, [99]]])), "outcome"],
    [() => decodeServerFrame(pack([[7, 1, 1, [99]]])), "rejection"],
    [() => decodeServerFrame(pack([[10, 1, [99, 1]]])), "result"],
    [() => decodeServerFrame(pack([[13, 1, 1, null, null, [99]]])), "refusal"],
    [() => decodeServerFrame(pack([[8, 1, 99]])), "reason"],
    [() => decodePeerFrame(peerBytes([2, 99, "x"])), "code"],
  ];
  for (const [decode, field] of odd) {
    assert.throws(decode, (error) => error instanceof WireError && error.code === "bad_value" && error.field === field);
  }
});

test("a frame that is no array of arrays is refused", () => {
  for (const fields of [[1], ["x"], [null], [[]], [[[]]], [true]]) {
    assert.throws(() => decodeClientFrame(pack(fields)), WireError);
    assert.throws(() => decodeServerFrame(pack(fields)), WireError);
  }
  assert.deepEqual(decodeClientFrame(pack([])), []);
});

test("one bad message refuses its whole frame", () => {
  const good = clientMessages.keepalive.map((message) => unpack(encodeClientFrame([message]), 0, 100)[0]);
  assert.equal(
    codeOf(() => decodeClientFrame(pack([...good, [4, 0, 0]]))),
    "bad_value",
  );
});

const keepalive: ClientMessage = { kind: "keepalive", session: 1, number: 1 };

test("a frame holds so many messages, and not one more", () => {
  const most = new Array<ClientMessage>(limits.messagesPerFrameMax).fill(keepalive);
  assert.equal(decodeClientFrame(encodeClientFrame(most)).length, limits.messagesPerFrameMax);
  assert.equal(
    codeOf(() => encodeClientFrame([...most, keepalive])),
    "too_large",
  );
  assert.equal(
    codeOf(() => decodeClientFrame(pack([...most, keepalive].map(() => [4, 1, 1])))),
    "too_large",
  );
  const frames = encodeClientFrames([...most, keepalive, keepalive]);
  assert.equal(frames.length, 2);
  assert.equal(frames.flatMap(decodeClientFrame).length, most.length + 2);
});

test("a frame of the most messages of the largest kind has few enough items", () => {
  const query: ClientMessage = { kind: "query", id: 1, query: { kind: "list", prefix: "a", after: "b", limit: 1 } };
  const most = new Array<ClientMessage>(limits.messagesPerFrameMax).fill(query);
  assert.equal(decodeClientFrame(encodeClientFrame(most)).length, most.length);
});

test("commands beyond a frame's bytes go into several frames, in order", () => {
  const commands = Array.from({ length: 40 }, (_, at): ClientMessage => {
    const payload = new Uint8Array(limits.commandBytesMax);
    payload[0] = at;
    return { kind: "command", payload };
  });
  assert.equal(
    codeOf(() => encodeClientFrame(commands)),
    "too_large",
  );
  const frames = encodeClientFrames(commands);
  assert.ok(frames.every((frame) => frame.length <= limits.clientFrameBytesMax));
  assert.deepEqual(frames.flatMap(decodeClientFrame), commands);
  const long: ClientMessage = { kind: "command", payload: new Uint8Array(limits.commandBytesMax + 1) };
  assert.equal(
    codeOf(() => encodeClientFrame([long])),
    "too_large",
  );
  assert.equal(
    codeOf(() => encodeClientFrames([long])),
    "too_large",
  );
  assert.equal(
    codeOf(() => decodeClientFrame(pack([[2, new Uint8Array(limits.commandBytesMax + 1)]]))),
    "too_large",
  );
});

test("longer frames than allowed are refused before they are read", () => {
  assert.equal(
    codeOf(() => decodeClientFrame(new Uint8Array(limits.clientFrameBytesMax + 1))),
    "too_large",
  );
  assert.equal(
    codeOf(() => decodeServerFrame(new Uint8Array(limits.serverFrameBytesMax + 1))),
    "too_large",
  );
  assert.equal(
    codeOf(() => decodePeerFrame(new Uint8Array(limits.peerFrameBytesMax + 1))),
    "too_large",
  );
});

test("all that a full session holds is told in one frame", () => {
  // 1,024 acquires of 64 names each; names of 40 bytes.
  const grants = Array.from({ length: limits.namesMax }, (_, at) => ({
    name: `n${at}`.padEnd(40, "x"),
    token: 2 ** 40,
    slot: null,
  }));
  const holds = Array.from({ length: limits.outcomesPerSessionMax }, (_, at) => ({
    request: at + 1,
    grants,
    maxHoldMs: 0,
  }));
  const resumed: ServerMessage = { kind: "resumed", session: 1, ttlMs: 10_000, holds, waiting: [], outcomes: [] };
  assert.deepEqual(decodeServerFrame(encodeServerFrame([resumed])), [resumed]);
});

test("server messages beyond a frame's bytes go into several frames; a single one is refused", () => {
  const info = "x".repeat(1_024);
  const holder = { session: 1, request: 1, token: 1, slot: null, mode: "shared", info } as const;
  const holders = new Array<typeof holder>(1_000).fill(holder);
  const message: ServerMessage = {
    kind: "outcome",
    session: 1,
    request: 1,
    index: 1,
    outcome: { kind: "notHeld", holders },
  };
  const messages = new Array<ServerMessage>(10).fill(message);
  assert.equal(
    codeOf(() => encodeServerFrame(messages)),
    "too_large",
  );
  const frames = encodeServerFrames(messages);
  assert.ok(frames.length < 10 && frames.every((frame) => frame.length <= limits.serverFrameBytesMax));
  assert.equal(frames.flatMap(decodeServerFrame).length, 10);
  const tooLong: ServerMessage = {
    ...message,
    outcome: { kind: "notHeld", holders: new Array<typeof holder>(5_000).fill(holder) },
  };
  assert.equal(
    codeOf(() => encodeServerFrames([message, tooLong])),
    "too_large",
  );
});
