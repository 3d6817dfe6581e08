/**
 * Damaged frames: each either decodes to a value that can be encoded again and means the same then, or is refused with
 * a WireError. Another error, or a value that doesn't survive, fails. HOLDFAST_SEED repeats a run.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import {
  checkClientCommand,
  checkClientMessage,
  crc32c,
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
  encodeCommand,
  encodeEntries,
  encodeHardState,
  encodePeerFrame,
  encodeServerFrame,
  encodeSnapshotPiece,
  entryCodec,
  WireError,
} from "../src/index.js";
import { base, configuration, entries, peerFrames, raftMessages, snapshotPiece, termOf } from "./peer-samples.js";
import { clientMessages, commands, hexOf, serverMessages, slotAcquire } from "./samples.js";

const seed = Number(process.env["HOLDFAST_SEED"] ?? Math.floor(Math.random() * 0xffffffff)) >>> 0;
let state = seed === 0 ? 1 : seed;

/** From 0 to below - 1 (xorshift32). */
function draw(below: number): number {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % below;
}

/** First bytes that change how what follows is read. */
const telling = [
  0x80, 0x90, 0x91, 0x9f, 0xa0, 0xa3, 0xbf, 0xc0, 0xc1, 0xc4, 0xc6, 0xc7, 0xca, 0xcb, 0xcf, 0xd3, 0xd4, 0xd9, 0xdb,
  0xdc, 0xdd, 0xde, 0xff, 0, 1, 2,
];

function mutate(bytes: Uint8Array, other: Uint8Array): Uint8Array {
  const at = draw(bytes.length + 1);
  const to = at + draw(bytes.length - at + 1);
  switch (draw(7)) {
    case 0: {
      const flipped = new Uint8Array(bytes);
      flipped[at % bytes.length] = (bytes[at % bytes.length] ?? 0) ^ (1 << draw(8));
      return flipped;
    }
    case 1: {
      const replaced = new Uint8Array(bytes);
      replaced[at % bytes.length] = telling[draw(telling.length)] ?? 0;
      return replaced;
    }
    case 2:
      return new Uint8Array([...bytes.subarray(0, at), telling[draw(telling.length)] ?? 0, ...bytes.subarray(at)]);
    case 3:
      return bytes.slice(0, at);
    case 4:
      return new Uint8Array([...bytes.subarray(0, at), ...bytes.subarray(Math.min(at + 1 + draw(4), bytes.length))]);
    case 5:
      return new Uint8Array([...bytes.subarray(0, to), ...bytes.subarray(at)]);
    default:
      return new Uint8Array([...bytes.subarray(0, at), ...other.subarray(draw(other.length))]);
  }
}

interface Target {
  readonly what: string;
  readonly samples: readonly Uint8Array[];
  decode(bytes: Uint8Array): unknown;
  encode(value: unknown): Uint8Array;
  /** Makes the checksum right again, so that the damage is not seen at the door. */
  repair(bytes: Uint8Array): void;
}

function noRepair(): void {}

function repairAt(checksumAt: number): (bytes: Uint8Array) => void {
  return (bytes) => {
    if (bytes.length < checksumAt + 4) return;
    new DataView(bytes.buffer, bytes.byteOffset).setUint32(checksumAt, crc32c(bytes.subarray(checksumAt + 4)));
  };
}

function target<T>(
  what: string,
  values: readonly T[],
  encode: (value: T) => Uint8Array,
  decode: (bytes: Uint8Array) => T,
  repair: (bytes: Uint8Array) => void = noRepair,
): Target {
  const samples = values.map((value) => new Uint8Array(encode(value)));
  return { what, samples, decode, encode: (value) => encode(value as T), repair };
}

const targets: readonly Target[] = [
  target("commands", [...Object.values(commands), slotAcquire], encodeCommand, (bytes) => {
    const command = decodeCommand(bytes);
    checkClientCommand(command);
    return command;
  }),
  target(
    "client frames",
    [...Object.values(clientMessages), Object.values(clientMessages).flat()],
    encodeClientFrame,
    (bytes) => {
      const messages = decodeClientFrame(bytes);
      for (const message of messages) assert.equal(checkClientMessage(message), null);
      return messages;
    },
  ),
  target(
    "server frames",
    [...Object.values(serverMessages), Object.values(serverMessages).flat()],
    encodeServerFrame,
    decodeServerFrame,
  ),
  target(
    "peer frames",
    [...Object.values(peerFrames).flat(), { kind: "raft", messages: Object.values(raftMessages) }],
    encodePeerFrame,
    decodePeerFrame,
    repairAt(0),
  ),
  target("blocks", [entries, entries.slice(1)], encodeEntries, decodeEntries, repairAt(1)),
  target("hard states", [{ term: termOf(4), votedFor: "n1" }], encodeHardState, decodeHardState, repairAt(1)),
  target("bases", [base], encodeBase, decodeBase, repairAt(1)),
  target("snapshot pieces", [snapshotPiece], encodeSnapshotPiece, decodeSnapshotPiece, repairAt(1)),
  target("configurations", [configuration], entryCodec.encodeConfiguration, entryCodec.decodeConfiguration),
];

/** True when the bytes decoded. */
function judge(each: Target, bytes: Uint8Array): boolean {
  let value: unknown;
  try {
    value = each.decode(bytes);
  } catch (error) {
    if (error instanceof WireError) return false;
    throw new Error(`seed ${seed}: ${each.what} ${hexOf(bytes)}: ${String(error)}`, { cause: error });
  }
  const again = each.decode(new Uint8Array(each.encode(value)));
  assert.ok(isDeepStrictEqual(again, value), `seed ${seed}: ${each.what} ${hexOf(bytes)} changed its meaning`);
  return true;
}

const mutationsEach = 4_000;

for (const each of targets) {
  test(`${mutationsEach} damaged ${each.what} (seed ${seed})`, () => {
    let decoded = 0;
    for (let run = 0; run < mutationsEach; run++) {
      const sample = each.samples[draw(each.samples.length)] ?? new Uint8Array();
      const other = each.samples[draw(each.samples.length)] ?? new Uint8Array();
      let bytes = mutate(sample, other);
      if (draw(3) === 0) bytes = mutate(bytes.length === 0 ? sample : bytes, other);
      each.repair(bytes);
      if (judge(each, bytes)) decoded++;
    }
    // Else the damage is seen so early that nothing behind it is tried.
    assert.ok(decoded > mutationsEach / 100, `${decoded} decoded`);
    assert.ok(decoded < mutationsEach, `${decoded} decoded`);
  });
}

test(`random bytes (seed ${seed})`, () => {
  for (let run = 0; run < 5_000; run++) {
    const bytes = Uint8Array.from({ length: 1 + draw(60) }, () => draw(256));
    for (const each of targets) {
      each.repair(bytes);
      judge(each, bytes);
    }
  }
});

test("no error tells what was in the bytes", () => {
  const secret = "s3cret-pässword";
  const samples = [
    encodeCommand({ kind: "forceRelease", name: secret, token: 1, principal: secret, lockDelayMs: 0 }),
    encodeClientFrame([
      { kind: "hello", protocol: 1, features: [secret], clusterId: secret, seenIndex: 0, info: secret },
    ]),
    encodeServerFrame([
      {
        kind: "refused",
        session: null,
        request: null,
        id: null,
        key: null,
        refusal: { code: "incompatible", problem: secret },
      },
    ]),
  ].map((bytes) => new Uint8Array(bytes));
  const decoders = [decodeCommand, decodeClientFrame, decodeServerFrame];
  let refused = 0;
  for (let run = 0; run < 5_000; run++) {
    const bytes = mutate(samples[run % 3] ?? new Uint8Array(), samples[draw(3)] ?? new Uint8Array());
    try {
      decoders[run % 3]?.(bytes);
    } catch (error) {
      assert.ok(error instanceof WireError);
      refused++;
      assert.ok(
        !/s3c|ret-|ssword/.test(
          `${error.message} ${error.field} ${error.problem} ${error.stack} ${String(error.cause)}`,
        ),
      );
    }
  }
  assert.ok(refused > 1_000);
});
