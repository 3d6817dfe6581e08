import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Arbitrary } from "fast-check";
import {
  decodeBase,
  decodeClientFrame,
  decodeCommand,
  decodeEntries,
  decodeHardState,
  decodePeerFrame,
  decodeServerFrame,
  decodeSnapshotPiece,
  encodeBase,
  encodeClientFrame,
  encodeClientFrames,
  encodeCommand,
  encodeEntries,
  encodeHardState,
  encodePeerFrame,
  encodeRaftFrames,
  encodeServerFrame,
  encodeServerFrames,
  encodeSnapshotPiece,
  entryCodec,
} from "../src/index.js";
import { clientMessage, command, serverMessage } from "./arbitraries.js";
import { base, configuration, entries, hardState, peerFrame, piece, raftMessage } from "./peer-arbitraries.js";

/** Decodes into whatever memory the codec reuses. */
const noise = new Uint8Array(encodeClientFrame([{ kind: "command", payload: new Uint8Array(4_000).fill(0xee) }]));

/**
 * Decoding gives back the value, and encoding that the bytes. The bytes are overwritten after decoding, and another
 * frame is decoded: the value may point into neither.
 */
function testRoundTrip<T>(
  what: string,
  arbitrary: Arbitrary<T>,
  encode: (value: T) => Uint8Array,
  decode: (bytes: Uint8Array) => T,
): void {
  test(`${what} survive the way there and back`, () => {
    fc.assert(
      fc.property(arbitrary, (value) => {
        const bytes = new Uint8Array(encode(value));
        const received = new Uint8Array(bytes);
        const decoded = decode(received);
        received.fill(0xff);
        decodeClientFrame(noise);
        assert.deepEqual(decoded, value);
        assert.deepEqual(new Uint8Array(encode(decoded)), bytes);
      }),
      { numRuns: 400 },
    );
  });
}

testRoundTrip("commands", command, encodeCommand, decodeCommand);
testRoundTrip("client frames", fc.array(clientMessage, { maxLength: 5 }), encodeClientFrame, decodeClientFrame);
testRoundTrip("server frames", fc.array(serverMessage, { maxLength: 5 }), encodeServerFrame, decodeServerFrame);
testRoundTrip("peer frames", peerFrame, encodePeerFrame, decodePeerFrame);
testRoundTrip("entries", entries, encodeEntries, decodeEntries);
testRoundTrip("hard states", hardState, encodeHardState, decodeHardState);
testRoundTrip("bases", base, encodeBase, decodeBase);
testRoundTrip("configurations", configuration, entryCodec.encodeConfiguration, entryCodec.decodeConfiguration);
testRoundTrip("snapshot pieces", piece, encodeSnapshotPiece, decodeSnapshotPiece);

test("several frames carry what one would", () => {
  fc.assert(
    fc.property(
      fc.array(clientMessage, { maxLength: 5 }),
      fc.array(serverMessage, { maxLength: 5 }),
      (fromClient, fromServer) => {
        assert.deepEqual(encodeClientFrames(fromClient).flatMap(decodeClientFrame), fromClient);
        assert.deepEqual(encodeServerFrames(fromServer).flatMap(decodeServerFrame), fromServer);
      },
    ),
    { numRuns: 50 },
  );
});

test("raft frames carry the messages in order", () => {
  fc.assert(
    fc.property(fc.array(raftMessage, { maxLength: 10 }), (messages) => {
      const decoded = encodeRaftFrames(messages)
        .map(decodePeerFrame)
        .flatMap((frame) => (frame.kind === "raft" ? frame.messages : []));
      assert.deepEqual(decoded, messages);
    }),
    { numRuns: 50 },
  );
});

test("frames of a Buffer inside a larger one decode alike", () => {
  fc.assert(
    fc.property(fc.array(clientMessage, { maxLength: 5 }), fc.nat(5_000), (messages, offset) => {
      const bytes = encodeClientFrame(messages);
      const slab = Buffer.alloc(bytes.length + offset + 100, 0xc1);
      slab.set(bytes, offset);
      const frame = slab.subarray(offset, offset + bytes.length);
      assert.deepEqual(decodeClientFrame(frame), messages);
      assert.deepEqual(Object.keys(frame).length, frame.length, "no property was hung on the caller's buffer");
    }),
    { numRuns: 100 },
  );
});

test("long texts of every script survive, however they are decoded", () => {
  // msgpackr has one path for short texts, one for texts above 64 bytes, one for its native part; 4096 is our own
  // border.
  fc.assert(
    fc.property(fc.string({ unit: "binary", minLength: 0, maxLength: 400 }), fc.nat(12), (text, repeat) => {
      const value = `x${text}`.repeat(repeat + 1);
      assert.deepEqual(decodeSnapshotPiece(encodeSnapshotPiece([value, [value], "a"])), [value, [value], "a"]);
    }),
    { numRuns: 300 },
  );
});

test("frames of every length around that of the reused memory decode alike", () => {
  for (let length = 4_050; length <= 4_110; length++) {
    const messages = [{ kind: "command" as const, payload: new Uint8Array(length).fill(length & 0xff) }];
    assert.deepEqual(decodeClientFrame(new Uint8Array(encodeClientFrame(messages))), messages);
  }
});
