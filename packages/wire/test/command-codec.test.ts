import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Command } from "@holdfast/lock";
import { acquireIn, decodeCommand, encodeCommand, limits, UnknownCommandError, WireError } from "../src/index.js";
import { pack } from "../src/msgpack.js";
import { command } from "./arbitraries.js";
import { commands } from "./samples.js";
import { refusalOf } from "./wire-errors.js";

function decodeFields(...fields: unknown[]): Command {
  return decodeCommand(pack(fields));
}

test("a command with a field more or less is refused: an entry means the same to every node", () => {
  for (const command of Object.values(commands)) {
    const bytes = encodeCommand(command);
    const length = (bytes[0] as number) - 0x90;
    const more = new Uint8Array([0x90 + length + 1, ...bytes.subarray(1), 0x00]);
    assert.equal(refusalOf(() => decodeCommand(more)).code, "bad_shape", command.kind);
    const fewer = decodable(command).slice(0, -1);
    assert.equal(refusalOf(() => decodeFields(...fewer)).code, "bad_shape", command.kind);
  }
});

/** The fields of an encoded command, read a second way: by encoding it inside of an array of our own test. */
function decodable(command: Command): unknown[] {
  const fields: Record<Command["kind"], (command: never) => unknown[]> = {
    openSession: (c: Extract<Command, { kind: "openSession" }>) => [1, c.key, c.ttlMs, c.info],
    closeSession: (c: Extract<Command, { kind: "closeSession" }>) => [2, c.session, c.request, c.settled, c.seen],
    acquire: (c: Extract<Command, { kind: "acquire" }>) => [
      3,
      c.session,
      c.request,
      c.settled,
      c.seen,
      c.names,
      2,
      c.slots,
      c.wait,
      c.lockDelayMs,
      c.maxHoldMs,
      c.info,
    ],
    release: (c: Extract<Command, { kind: "release" }>) => [
      4,
      c.session,
      c.request,
      c.settled,
      c.seen,
      c.of,
      c.afterMs,
    ],
    cancel: (c: Extract<Command, { kind: "cancel" }>) => [5, c.session, c.request, c.settled, c.seen, c.of],
    setInfo: (c: Extract<Command, { kind: "setInfo" }>) => [6, c.session, c.request, c.settled, c.seen, c.of, c.info],
    expireSessions: (c: Extract<Command, { kind: "expireSessions" }>) => [7, c.ids],
    suspectSessions: (c: Extract<Command, { kind: "suspectSessions" }>) => [8, c.ids, c.eighths],
    renewSuspects: (c: Extract<Command, { kind: "renewSuspects" }>) => [9, c.ids],
    forceRelease: (c: Extract<Command, { kind: "forceRelease" }>) => [10, c.name, c.token, c.principal, c.lockDelayMs],
    endLockDelay: (c: Extract<Command, { kind: "endLockDelay" }>) => [11, c.name, c.index],
    endHold: (c: Extract<Command, { kind: "endHold" }>) => [12, c.session, c.of, c.token],
    setClusterVersion: (c: Extract<Command, { kind: "setClusterVersion" }>) => [13, c.version],
    setSigningKey: (c: Extract<Command, { kind: "setSigningKey" }>) => [
      14,
      c.id,
      c.publicKey,
      c.seed,
      c.replaces,
      c.principal,
    ],
  };
  return fields[command.kind](command as never);
}

test("the fields stand in the order that is written down", () => {
  for (const command of Object.values(commands)) {
    assert.deepEqual(decodeFields(...decodable(command)), command);
  }
});

test("an acquire is known, and whose it is, by its first bytes", () => {
  fc.assert(
    fc.property(command, (value) => {
      const payload = encodeCommand(value);
      const expected = value.kind === "acquire" ? { session: value.session, request: value.request } : null;
      // Numbers beyond 32 bits come as floating point, and are left to the decoder.
      const isShort = expected !== null && Math.max(expected.session, expected.request) < 2 ** 32;
      assert.deepEqual(acquireIn(payload), isShort ? expected : null);
      for (const end of [0, 1, 2, 3]) assert.equal(acquireIn(payload.subarray(0, end)), null);
    }),
  );
  const head = [0x9c, 0x03];
  assert.deepEqual(acquireIn(new Uint8Array([...head, 0xcf, 0, 0, 0, 1, 0, 0, 0, 0, 0xcd, 1, 0])), {
    session: 2 ** 32,
    request: 256,
  });
  assert.equal(acquireIn(new Uint8Array([...head, 0xcf, 1, 0, 0, 0, 0, 0, 0, 0, 1])), null, "beyond the safe integers");
  assert.equal(acquireIn(new Uint8Array([...head, 0, 1])), null, "no session");
  assert.equal(acquireIn(new Uint8Array([...head, 1, 0xcd, 1])), null, "cut short");
});

test("a command of an unknown kind is an error of its own: a node stops on it", () => {
  for (const kind of [0, 15, 200, 2 ** 40]) {
    assert.throws(
      () => decodeFields(kind, 1, 2),
      (error) => error instanceof UnknownCommandError && error.code === "unknown_command" && error.commandKind === kind,
    );
  }
  for (const kind of [null, "acquire", 1.5, -1, [3]]) {
    assert.throws(
      () => decodeFields(kind, 1, 2),
      (error) => error instanceof WireError && !(error instanceof UnknownCommandError),
    );
  }
  assert.equal(refusalOf(() => decodeFields()).code, "bad_value");
});

const acquire = decodable(commands.acquire);

/** Position, value, refused field. */
const badFields: readonly [number, unknown, string][] = [
  [1, 0, "session"],
  [1, -1, "session"],
  [1, 2 ** 53, "session"],
  [1, 0.5, "session"],
  [1, Number.NaN, "session"],
  [1, "1", "session"],
  [1, null, "session"],
  [1, true, "session"],
  [2, 0, "request"],
  [3, -1, "settled"],
  [4, null, "seen"],
  [4, [1, 0], "seen"],
  [4, [1, "2"], "seen"],
  [5, "a", "names"],
  [5, [], "names"],
  [5, ["b", "a"], "names[1]"],
  [5, ["a", "a"], "names[1]"],
  [5, ["a", 5], "names[1]"],
  [6, 0, "mode"],
  [6, 4, "mode"],
  [6, "shared", "mode"],
  [7, 1, "slots"],
  [8, 1, "wait"],
  [8, null, "wait"],
  [9, -1, "lockDelayMs"],
  [9, -0.5, "lockDelayMs"],
  [10, 1.5, "maxHoldMs"],
  [11, 5, "info"],
  [11, null, "info"],
];

for (const [position, value, field] of badFields) {
  test(`an acquire with ${JSON.stringify(value)} for ${field} is refused`, () => {
    const fields = [...acquire];
    fields[position] = value;
    assert.equal(refusalOf(() => decodeFields(...fields)).field, field);
  });
}

test("a semaphore's acquire has one name and a place at least", () => {
  const fields = [...acquire];
  fields[6] = 3;
  fields[7] = 2;
  assert.equal(refusalOf(() => decodeFields(...fields)).field, "names");
  fields[5] = ["gpu"];
  assert.equal((decodeFields(...fields) as { slots: number }).slots, 2);
  fields[7] = 0;
  assert.equal(refusalOf(() => decodeFields(...fields)).field, "slots");
});

test("an unknown command of a session says whose it is, so that only that request is refused", () => {
  const requestIn = (...fields: unknown[]): unknown => {
    try {
      return decodeFields(...fields);
    } catch (error) {
      assert.ok(error instanceof UnknownCommandError);
      return error.request;
    }
  };
  assert.deepEqual(requestIn(200, 7, 3, 1, []), { session: 7, request: 3 });
  for (const fields of [[200], [200, 7], [200, "7", 3], [200, 7, [3]], [200, 0, 1], [200, 1, 1.5]]) {
    assert.equal(requestIn(...fields), null, JSON.stringify(fields));
  }
});

test("-0 and integers as 64-bit ones", () => {
  // release [.., afterMs]: as a double 0 and -0. msgpackr writes -0 as 0, other languages' clients may not.
  const withAfter = (hex: string): Uint8Array => new Uint8Array(Buffer.from(`97040102019001${hex}`, "hex"));
  assert.equal((decodeCommand(withAfter("cb0000000000000000")) as { afterMs: number }).afterMs, 0);
  assert.equal(refusalOf(() => decodeCommand(withAfter("cb8000000000000000"))).field, "afterMs");
  // endLockDelay ["d", index]: as a double -0, as uint64 5, as uint64 2^53, as int64 -1.
  const withIndex = (hex: string): Uint8Array => new Uint8Array(Buffer.from(`930ba164${hex}`, "hex"));
  assert.equal(refusalOf(() => decodeCommand(withIndex("cb8000000000000000"))).field, "index");
  assert.deepEqual(decodeCommand(withIndex("cf0000000000000005")), { kind: "endLockDelay", name: "d", index: 5 });
  assert.deepEqual(decodeCommand(withIndex("cf001fffffffffffff")), {
    kind: "endLockDelay",
    name: "d",
    index: Number.MAX_SAFE_INTEGER,
  });
  assert.equal(refusalOf(() => decodeCommand(withIndex("cf0020000000000000"))).field, "index");
  assert.equal(refusalOf(() => decodeCommand(withIndex("cf0020000000000001"))).field, "index");
  assert.equal(refusalOf(() => decodeCommand(withIndex("cfffffffffffffffff"))).field, "index");
  assert.equal(refusalOf(() => decodeCommand(withIndex("d3ffffffffffffffff"))).field, "index");
});

test("encoding refuses what decoding would", () => {
  const odd: readonly [object, string][] = [
    [{ ...commands.acquire, names: ["a\uD800"] }, "names[0]"],
    [{ ...commands.acquire, names: ["b", "a"] }, "names[1]"],
    [{ ...commands.acquire, names: [] }, "names"],
    [{ ...commands.acquire, mode: "mine" }, "mode"],
    [{ ...commands.acquire, session: Number.NaN }, "session"],
    [{ ...commands.acquire, info: "\uDC00" }, "info"],
    [{ ...commands.acquire, info: undefined }, "info"],
    [{ ...commands.release, afterMs: -1 }, "afterMs"],
    [{ ...commands.suspectSessions, eighths: 9 }, "eighths"],
    [{ ...commands.suspectSessions, eighths: 0 }, "eighths"],
    [{ ...commands.expireSessions, ids: [0] }, "ids"],
    [{ ...commands.openSession, key: "short" }, "key"],
    [{ ...commands.setClusterVersion, version: 0 }, "version"],
    [{ ...commands.setSigningKey, id: "0123456789ABCDEF" }, "id"],
    [{ ...commands.setSigningKey, publicKey: "AAAA" }, "publicKey"],
    [{ ...commands.setSigningKey, seed: "=".repeat(43) }, "seed"],
    [{ ...commands.setSigningKey, replaces: "" }, "replaces"],
  ];
  for (const [command, field] of odd) assert.equal(refusalOf(() => encodeCommand(command as Command)).field, field);
});

test("a command's bytes end at the limit, both ways", () => {
  // Each id takes 9 bytes, all else 5.
  const fits = new Array<number>(Math.floor((limits.commandBytesMax - 5) / 9)).fill(2 ** 40);
  const bytes = encodeCommand({ kind: "expireSessions", ids: fits });
  assert.ok(bytes.length > limits.commandBytesMax - 9 && bytes.length <= limits.commandBytesMax);
  assert.deepEqual(decodeCommand(bytes), { kind: "expireSessions", ids: fits });
  const tooMany = [...fits, 2 ** 40];
  assert.equal(refusalOf(() => encodeCommand({ kind: "expireSessions", ids: tooMany })).code, "too_large");
  assert.equal(refusalOf(() => decodeCommand(new Uint8Array(limits.commandBytesMax + 1))).code, "too_large");
});

test("an encoded command keeps nothing else alive", () => {
  for (const command of Object.values(commands)) {
    const bytes = encodeCommand(command);
    assert.equal(bytes.buffer.byteLength, bytes.length);
    assert.equal(Object.getPrototypeOf(bytes), Uint8Array.prototype);
  }
});
