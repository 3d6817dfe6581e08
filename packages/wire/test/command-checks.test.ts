/** Odd arguments, each refused by its name: each row is valid but for one fault. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Command } from "@holdfast/lock";
import {
  checkClientCommand,
  checkClientMessage,
  checkName,
  checkNames,
  decodeCommand,
  encodeClientFrame,
  encodeCommand,
  limits,
  WireError,
} from "../src/index.js";
import type { ClientMessage } from "../src/index.js";
import { command } from "./arbitraries.js";
import { commands, slotAcquire } from "./samples.js";
import fc from "fast-check";

const loneHigh = "a\uD800b";
const loneLow = "a\uDC00";
const reversed = "\uDC00\uD800";

/** Command, fault, argument that the refusal must name. Faults may be of any type: callers may have no types. */
const faults: readonly [Command["kind"], Record<string, unknown>, string][] = [
  ["openSession", { key: "" }, "key"],
  ["openSession", { key: "00112233445566778899AABBCCDDEEFF" }, "key"],
  ["openSession", { key: "0".repeat(33) }, "key"],
  ["openSession", { key: "g".repeat(32) }, "key"],
  ["openSession", { key: 5 }, "key"],
  ["openSession", { ttlMs: 0 }, "ttlMs"],
  ["openSession", { ttlMs: -1 }, "ttlMs"],
  ["openSession", { ttlMs: -0 }, "ttlMs"],
  ["openSession", { ttlMs: Number.NaN }, "ttlMs"],
  ["openSession", { ttlMs: Number.POSITIVE_INFINITY }, "ttlMs"],
  ["openSession", { ttlMs: 1_000.5 }, "ttlMs"],
  ["openSession", { ttlMs: 2 ** 31 }, "ttlMs"],
  ["openSession", { ttlMs: 1e12 }, "ttlMs"],
  ["openSession", { ttlMs: "10000" }, "ttlMs"],
  ["openSession", { ttlMs: null }, "ttlMs"],
  ["openSession", { ttlMs: undefined }, "ttlMs"],
  ["openSession", { ttlMs: limits.ttlMsMin - 1 }, "ttlMs"],
  ["openSession", { ttlMs: limits.ttlMsMax + 1 }, "ttlMs"],
  ["openSession", { info: "x".repeat(1_025) }, "info"],
  ["openSession", { info: "é".repeat(513) }, "info"],
  ["openSession", { info: loneHigh }, "info"],
  ["openSession", { info: "line\nbreak" }, "info"],
  ["openSession", { info: { host: "a" } }, "info"],
  ["acquire", { names: "doc:42" }, "names"],
  ["acquire", { names: [] }, "names"],
  ["acquire", { names: null }, "names"],
  ["acquire", { names: [""] }, "names[0]"],
  ["acquire", { names: ["a", "b", ""] }, "names[2]"],
  ["acquire", { names: ["a", "b", 3] }, "names[2]"],
  ["acquire", { names: ["x".repeat(513)] }, "names[0]"],
  ["acquire", { names: ["a", "é".repeat(257)] }, "names[1]"],
  ["acquire", { names: ["a", "😀".repeat(129)] }, "names[1]"],
  ["acquire", { names: [loneHigh] }, "names[0]"],
  ["acquire", { names: [loneLow] }, "names[0]"],
  ["acquire", { names: [reversed] }, "names[0]"],
  ["acquire", { names: ["a\u0000b"] }, "names[0]"],
  ["acquire", { names: ["a\u001f"] }, "names[0]"],
  ["acquire", { names: ["a\u007f"] }, "names[0]"],
  ["acquire", { names: ["a\u0080"] }, "names[0]"],
  ["acquire", { names: ["a\u009f"] }, "names[0]"],
  ["acquire", { names: ["\uFEFFa"] }, "names[0]"],
  ["acquire", { names: ["b", "a"] }, "names[1]"],
  ["acquire", { names: ["a", "a"] }, "names[1]"],
  ["acquire", { names: Array.from({ length: 65 }, (_, at) => `n${String(at).padStart(3, "0")}`) }, "names"],
  ["acquire", { mode: "Exclusive" }, "mode"],
  ["acquire", { mode: undefined }, "mode"],
  ["acquire", { slots: 1 }, "slots"],
  ["acquire", { mode: "slot", names: ["a"], slots: 0 }, "slots"],
  ["acquire", { mode: "slot", names: ["a"], slots: -1 }, "slots"],
  ["acquire", { mode: "slot", names: ["a"], slots: 1_025 }, "slots"],
  ["acquire", { mode: "slot", names: ["a"], slots: 1.5 }, "slots"],
  ["acquire", { mode: "slot", names: ["a", "b"], slots: 2 }, "names"],
  ["acquire", { wait: 1 }, "wait"],
  ["acquire", { wait: undefined }, "wait"],
  ["acquire", { lockDelayMs: -1 }, "lockDelayMs"],
  ["acquire", { lockDelayMs: -0 }, "lockDelayMs"],
  ["acquire", { lockDelayMs: 60_001 }, "lockDelayMs"],
  ["acquire", { lockDelayMs: Number.NaN }, "lockDelayMs"],
  ["acquire", { maxHoldMs: -1 }, "maxHoldMs"],
  ["acquire", { maxHoldMs: 2 ** 31 }, "maxHoldMs"],
  ["acquire", { maxHoldMs: 1e12 }, "maxHoldMs"],
  ["acquire", { maxHoldMs: limits.maxHoldMsMax + 1 }, "maxHoldMs"],
  ["acquire", { info: "x".repeat(1_025) }, "info"],
  ["acquire", { session: 0 }, "session"],
  ["acquire", { session: 2 ** 53 }, "session"],
  ["acquire", { request: 0 }, "request"],
  ["acquire", { request: 1.5 }, "request"],
  ["acquire", { settled: -1 }, "settled"],
  ["acquire", { seen: null }, "seen"],
  ["acquire", { seen: [301, 0] }, "seen[1]"],
  ["acquire", { seen: Array.from({ length: 65 }, (_, at) => at + 1) }, "seen"],
  ["release", { of: 0 }, "of"],
  ["release", { afterMs: -1 }, "afterMs"],
  ["release", { afterMs: 60_001 }, "afterMs"],
  ["release", { request: undefined }, "request"],
  ["cancel", { of: Number.NaN }, "of"],
  ["cancel", { session: -5 }, "session"],
  ["setInfo", { of: -1 }, "of"],
  ["setInfo", { info: "x".repeat(1_025) }, "info"],
  ["setInfo", { info: undefined }, "info"],
  ["closeSession", { session: "70000" }, "session"],
  ["closeSession", { seen: "301" }, "seen"],
];

function withFault(kind: Command["kind"], fault: Record<string, unknown>): Command {
  return { ...commands[kind], ...fault };
}

function show(fault: Record<string, unknown>): string {
  return Object.entries(fault)
    .map(([field, value]) => {
      const shown =
        typeof value === "number" || value === undefined ? String(value) : JSON.stringify(value).slice(0, 24);
      return `${field}=${Object.is(value, -0) ? "-0" : shown}`;
    })
    .join(" ");
}

for (const [kind, fault, argument] of faults) {
  test(`${kind} with ${show(fault)} is refused for ${argument}`, () => {
    const refusal = checkClientCommand(withFault(kind, fault));
    assert.ok(refusal !== null && refusal.code === "invalid_argument");
    assert.equal(refusal.argument, argument);
    assert.ok(refusal.problem.length > 0);
  });
}

/** Command and values that are just within the limits. */
const edges: readonly [Command["kind"], Record<string, unknown>][] = [
  ["openSession", { ttlMs: limits.ttlMsMin }],
  ["openSession", { ttlMs: limits.ttlMsMax }],
  ["openSession", { info: "" }],
  ["openSession", { info: "x".repeat(1_024) }],
  ["openSession", { info: "é".repeat(512) }],
  ["acquire", { names: ["x"] }],
  ["acquire", { names: ["x".repeat(512)] }],
  ["acquire", { names: ["é".repeat(256)] }],
  ["acquire", { names: ["😀".repeat(128)] }],
  ["acquire", { names: [" ", "a b", "a\u00a0", "a\uFEFF", "ä", "\u{10FFFF}", "\uFFFD"] }],
  ["acquire", { names: Array.from({ length: 64 }, (_, at) => `n${String(at).padStart(3, "0")}`) }],
  ["acquire", { lockDelayMs: 0, maxHoldMs: 0 }],
  ["acquire", { lockDelayMs: 60_000, maxHoldMs: limits.maxHoldMsMax }],
  ["acquire", { mode: "slot", names: ["a"], slots: 1 }],
  ["acquire", { mode: "slot", names: ["a"], slots: 1_024 }],
  ["acquire", { session: Number.MAX_SAFE_INTEGER, request: Number.MAX_SAFE_INTEGER, settled: 0 }],
  ["acquire", { seen: Array.from({ length: 64 }, (_, at) => at + 1) }],
  ["release", { afterMs: 0 }],
  ["release", { afterMs: 60_000 }],
  ["setInfo", { info: "x".repeat(1_024) }],
];

for (const [kind, values] of edges) {
  test(`${kind} with ${show(values)} is allowed, and survives the wire`, () => {
    // Sorted by code unit, where U+FFFD stands behind the surrogates of U+10FFFF.
    if (Array.isArray(values["names"])) values["names"].sort();
    const allowed = withFault(kind, values);
    assert.equal(checkClientCommand(allowed), null);
    assert.deepEqual(decodeCommand(encodeCommand(allowed)), allowed);
  });
}

test("the largest acquire that is allowed fits in a command", () => {
  const names = Array.from({ length: limits.namesMax }, (_, at) => String(at).padStart(3, "0") + "x".repeat(509));
  const seen = Array.from({ length: limits.seenMax }, (_, at) => Number.MAX_SAFE_INTEGER - 100 + at);
  const largest = withFault("acquire", {
    names,
    seen,
    info: "x".repeat(1_024),
    session: 2 ** 52,
    request: 2 ** 52,
    settled: 2 ** 52,
  });
  assert.equal(checkClientCommand(largest), null);
  assert.ok(encodeCommand(largest).length <= limits.commandBytesMax);
});

test("only the six commands of clients are allowed", () => {
  const allowed = Object.values(commands).filter((each) => checkClientCommand(each) === null);
  assert.deepEqual(allowed.map((each) => each.kind).sort(), [
    "acquire",
    "cancel",
    "closeSession",
    "openSession",
    "release",
    "setInfo",
  ]);
  assert.equal(checkClientCommand(slotAcquire), null);
  for (const odd of [null, undefined, 5, "acquire", {}, { kind: 3 }, { kind: "grant" }]) {
    const refusal = checkClientCommand(odd as unknown as Command);
    assert.equal(refusal?.code, "invalid_argument");
  }
});

test("ten million names are refused before anything is made of them", () => {
  const names = new Array<string>(10_000_000).fill("n");
  const begin = process.hrtime.bigint();
  for (const refusal of [checkNames(names), checkClientCommand(withFault("acquire", { names }))]) {
    assert.deepEqual(refusal, { code: "invalid_argument", argument: "names", problem: "has more than 64 names" });
  }
  assert.ok(Number(process.hrtime.bigint() - begin) / 1e6 < 50, "without a walk over the list");
});

test("a name of ten million letters is refused without a walk", () => {
  const begin = process.hrtime.bigint();
  assert.deepEqual(checkName("x".repeat(10_000_000)), {
    code: "invalid_argument",
    argument: "name",
    problem: "is longer than 512 bytes",
  });
  assert.ok(Number(process.hrtime.bigint() - begin) / 1e6 < 50);
});

test("names are checked in the caller's order", () => {
  assert.equal(checkNames(["b", "a", "a"]), null);
  const refusal = checkNames(["b", "a", "\u0007"]);
  assert.deepEqual(refusal, { code: "invalid_argument", argument: "names[2]", problem: "has a control character" });
});

test("a refusal never quotes the value", () => {
  const secret = "s3cret";
  for (const value of [`${secret}\n`, secret.repeat(200), `${secret}\uD800`]) {
    assert.ok(!JSON.stringify(checkName(value)).includes(secret));
  }
});

test("every command can be checked, and what is allowed can be encoded", () => {
  fc.assert(
    fc.property(command, (each) => {
      const refusal = checkClientCommand(each);
      assert.ok(refusal === null || refusal.code === "invalid_argument");
    }),
    { numRuns: 500 },
  );
  // Whatever an untyped caller hands over: refused, or good to encode.
  fc.assert(
    fc.property(fc.constantFrom(...Object.values(commands)), fc.nat(11), fc.anything(), (good, at, value) => {
      const fields = Object.keys(good);
      const odd = { ...good, [fields[at % fields.length] ?? "kind"]: value } as unknown as Command;
      if (checkClientCommand(odd) === null) assert.deepEqual(decodeCommand(encodeCommand(odd)), odd);
    }),
    { numRuns: 3_000 },
  );
});

/** Messages of a client that are no commands, with the argument that is refused. */
const oddMessages: readonly [object, string][] = [
  [{ kind: "query", id: 1, query: { kind: "inspect", name: "" } }, "name"],
  [{ kind: "query", id: 1, query: { kind: "inspect", name: "x".repeat(513) } }, "name"],
  [{ kind: "query", id: 1, query: { kind: "inspect", name: loneHigh } }, "name"],
  [{ kind: "query", id: 1, query: { kind: "list", prefix: "x".repeat(513), after: "", limit: 1 } }, "prefix"],
  [{ kind: "query", id: 1, query: { kind: "list", prefix: "", after: loneLow, limit: 1 } }, "after"],
  [{ kind: "query", id: 1, query: { kind: "list", prefix: "", after: "", limit: 0 } }, "limit"],
  [{ kind: "query", id: 1, query: { kind: "list", prefix: "", after: "", limit: 1_001 } }, "limit"],
  [{ kind: "query", id: 1, query: { kind: "sessions", limit: Number.NaN } }, "limit"],
  [{ kind: "forceRelease", id: 1, name: "", token: 1, principal: "", lockDelayMs: 0 }, "name"],
  [{ kind: "forceRelease", id: 1, name: "a", token: 0, principal: "", lockDelayMs: 0 }, "token"],
  [{ kind: "forceRelease", id: 1, name: "a", token: 1, principal: "x".repeat(257), lockDelayMs: 0 }, "principal"],
  [{ kind: "forceRelease", id: 1, name: "a", token: 1, principal: "", lockDelayMs: 60_001 }, "lockDelayMs"],
  [{ kind: "transfer", id: 1, to: "" }, "to"],
  [{ kind: "rotateKey", id: 1, principal: "x".repeat(257) }, "principal"],
  [{ kind: "query", id: 1, query: { kind: "sequencer", session: 1, key: "short", of: 1, name: "a" } }, "key"],
  [{ kind: "query", id: 1, query: { kind: "check", sequencer: "x".repeat(1_025) } }, "sequencer"],
  [{ kind: "hello", protocol: 1, features: [], clusterId: null, seenIndex: 0, info: "\u0000" }, "info"],
  [
    {
      kind: "hello",
      protocol: 1,
      features: Array.from({ length: 65 }, () => "f"),
      clusterId: null,
      seenIndex: 0,
      info: "",
    },
    "features",
  ],
];

for (const [odd, argument] of oddMessages) {
  test(`${JSON.stringify(odd).slice(0, 90)} is refused for ${argument}`, () => {
    const message = odd as ClientMessage;
    const refusal = checkClientMessage(message);
    assert.ok(refusal !== null && refusal.code === "invalid_argument");
    assert.equal(refusal.argument, argument);
    assert.throws(
      () => encodeClientFrame([message]),
      (error) => error instanceof WireError && error.field === argument,
    );
  });
}
