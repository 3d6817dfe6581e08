/** Odd arguments everywhere are refused by name, before anything is sent. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { checkClientCommand, encodeCommand, limits } from "@holdfast/wire";
import fc from "fast-check";
import { connectWith } from "../src/connect.js";
import { InvalidArgumentError } from "../src/errors.js";
import { checkAcquire, checkConnectOptions } from "../src/options.js";
import type { AcquireRequest, ConnectOptions, RequestOptions } from "../src/options.js";
import { World } from "./world/world.js";

const client = { endpoints: ["a:1"], ttlMs: 10_000, connectTimeoutMs: 10_000, info: "me", heldLongMs: 0 };

function refusedBy(act: () => unknown): string | null {
  try {
    act();
    return null;
  } catch (error) {
    assert.ok(error instanceof InvalidArgumentError, String(error));
    assert.equal(error.code, "invalid_argument");
    assert.equal(error.retryable, false);
    assert.ok(error.message.startsWith(error.argument), error.message);
    return error.argument;
  }
}

const odd: readonly unknown[] = [
  Number.NaN,
  -1,
  -0,
  2 ** 31,
  1e12,
  0.5,
  "10",
  null,
  {},
  [],
  true,
  Number.NEGATIVE_INFINITY,
];

describe("acquire", () => {
  const cases: readonly (readonly [keyof RequestOptions, readonly unknown[]])[] = [
    ["ttlMs", [...odd, 0, 499, Number.POSITIVE_INFINITY, 3_600_001]],
    ["lockDelayMs", [...odd, 60_001]],
    ["maxHoldMs", [...odd, 1, 499]],
    ["heldLongMs", [...odd, 604_800_001]],
    ["waitMs", [Number.NaN, -1, -0.001, "10", null, {}, true]],
    ["mode", ["", "Exclusive", "slot", null, 1]],
    ["stopOn", ["", "loss", null]],
    ["renew", ["", "never", true]],
    ["info", [1, null, "x".repeat(1_025), "\ud800", "€".repeat(342), "\ufeffx"]],
    ["signal", [null, {}, "now", new AbortController()]],
    ["ifAvailable", [null, 1, "yes"]],
  ];
  for (const [name, values] of cases) {
    test(`${name}`, () => {
      for (const value of values) {
        const options = { [name]: value } as RequestOptions;
        assert.equal(
          refusedBy(() => checkAcquire("request", "a", options, client)),
          name,
          String(value),
        );
      }
    });
  }

  test("names", () => {
    const long = "x".repeat(513);
    const many = Array.from({ length: 65 }, (_, at) => `n${at}`);
    const table: readonly (readonly [unknown, string])[] = [
      ["", "name"],
      [long, "name"],
      ["€".repeat(171), "name"],
      ["\ud800", "name"],
      ["a\udc00b", "name"],
      ["\ufeffa", "name"],
      ["a\nb", "name"],
      ["\u0000", "name"],
      ["\u009f", "name"],
      [undefined, "name"],
      [null, "name"],
      [7, "name"],
      [{ length: 1 }, "name"],
      [[], "names"],
      [many, "names"],
      [new Array(10_000_000), "names"],
      [["a", ""], "names[1]"],
      [["a", 7], "names[1]"],
      [[long], "names[0]"],
      [Object.assign(new Array(3), { 0: "a", 2: "b" }), "names[1]"],
    ];
    for (const [names, argument] of table) {
      assert.equal(
        refusedBy(() => checkAcquire("acquire", names as string, undefined, client)),
        argument,
        String(names).slice(0, 20),
      );
    }
    assert.deepEqual(checkAcquire("acquire", ["b", "a", "b"], undefined, client).names, ["a", "b"]);
    assert.deepEqual(checkAcquire("acquire", "x".repeat(512), undefined, client).names.length, 1);
    // Code units, as the cluster sorts: not by locale, and not by code point.
    assert.deepEqual(checkAcquire("acquire", ["\uff5e", "\u{1f512}", "Z", "a", "ä"], undefined, client).names, [
      "Z",
      "a",
      "ä",
      "\u{1f512}",
      "\uff5e",
    ]);
  });

  test("a misspelt option is refused, not taken for its default", () => {
    const misspelt = { ttl: 10_000 } as RequestOptions;
    assert.equal(
      refusedBy(() => checkAcquire("acquire", "a", misspelt, client)),
      "ttl",
    );
    assert.equal(
      refusedBy(() => checkAcquire("tryAcquire", "a", { waitMs: 1 }, client)),
      "waitMs",
    );
    assert.equal(
      refusedBy(() => checkAcquire("acquire", "a", { ifAvailable: true }, client)),
      "ifAvailable",
    );
    assert.equal(
      refusedBy(() => checkAcquire("acquire", "a", "10" as RequestOptions, client)),
      "options",
    );
    assert.equal(
      refusedBy(() => checkAcquire("acquire", "a", null as unknown as RequestOptions, client)),
      "options",
    );
  });

  test("undefined is the default", () => {
    const options = { ttlMs: undefined, mode: undefined, signal: undefined, waitMs: undefined, info: undefined };
    assert.deepEqual(checkAcquire("acquire", "a", options, client), {
      names: ["a"],
      mode: "exclusive",
      slots: 0,
      wait: true,
      waitMs: 30_000,
      ttlMs: 10_000,
      lockDelayMs: 0,
      maxHoldMs: 0,
      info: "",
      stopOn: "lost",
      isManual: false,
      heldLongMs: 0,
      signal: null,
    } satisfies AcquireRequest);
  });

  test("whatever passes is a command that the wire takes", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary", maxLength: 40 }),
      fc.string({ unit: "grapheme", maxLength: 1_100 }),
    );
    const anything = fc.record(
      {
        ttlMs: fc.oneof({ weight: 5, arbitrary: fc.integer({ min: 400, max: 4_000_000 }) }, fc.integer(), fc.double()),
        lockDelayMs: fc.oneof({ weight: 5, arbitrary: fc.nat(62_000) }, fc.double()),
        maxHoldMs: fc.oneof({ weight: 5, arbitrary: fc.nat(610_000_000) }, fc.double()),
        info: text,
        mode: fc.constantFrom("exclusive", "shared", "exclusive", "shared", "slot"),
      },
      { requiredKeys: [] },
    );
    let passed = 0;
    fc.assert(
      fc.property(fc.oneof(text, fc.array(text, { maxLength: 70 })), anything, (names, options) => {
        let request: AcquireRequest;
        try {
          request = checkAcquire("acquire", names, options as RequestOptions, client);
        } catch (error) {
          return error instanceof InvalidArgumentError;
        }
        passed += 1;
        const { mode, slots, wait, lockDelayMs, maxHoldMs, info } = request;
        const carried = { session: 1, request: 1, settled: 1, seen: [] };
        const asked = { names: request.names, mode, slots, wait, lockDelayMs, maxHoldMs, info };
        const command = { kind: "acquire", ...carried, ...asked } as const;
        assert.equal(checkClientCommand(command), null);
        encodeCommand(command);
        return true;
      }),
      { numRuns: 2_000 },
    );
    assert.ok(passed > 100, `${passed} passed`);
  });
});

describe("connect", () => {
  const defaults = { endpoints: "", info: "host:1" };

  test("its numbers and texts", () => {
    const cases: readonly (readonly [keyof ConnectOptions, readonly unknown[]])[] = [
      ["ttlMs", [...odd, 0]],
      ["connectTimeoutMs", [Number.NaN, 0, -1, 2 ** 31, 1e12, Number.POSITIVE_INFINITY, "1", null]],
      ["heldLongMs", [...odd, 604_800_001]],
      ["metrics", [null, {}, "prometheus"]],
      ["meter", [null, {}, { createCounter: () => undefined }]],
      ["tracer", [null, {}, "tracer"]],
      ["info", [1, null, "x".repeat(1_025), "\udfff"]],
    ];
    for (const [name, values] of cases) {
      for (const value of values) {
        const options = { endpoints: "a:1", [name]: value } as ConnectOptions;
        assert.equal(
          refusedBy(() => checkConnectOptions(options, defaults)),
          name,
          String(value),
        );
      }
    }
    assert.equal(
      refusedBy(() => checkConnectOptions({ endpoints: "a:1", ttl: 1 } as ConnectOptions, defaults)),
      "ttl",
    );
    assert.ok(limits.ttlMsMin >= 500, "the lease's margin of 250 ms leaves half of it");
  });

  test("endpoints", () => {
    const wrong: readonly unknown[] = [
      "a",
      "a:0",
      "a:65536",
      "a:b",
      "http://a:1",
      "a:1/x",
      "a b:1",
      ":1",
      "a:1:2",
      7,
      "256.1.1.1:7000",
    ];
    for (const value of wrong) {
      assert.equal(
        refusedBy(() => checkConnectOptions({ endpoints: [value] as string[] }, defaults)),
        "endpoints[0]",
        String(value),
      );
    }
    for (const value of ["", [], 7, {}, null]) {
      assert.equal(
        refusedBy(() => checkConnectOptions({ endpoints: value } as ConnectOptions, { ...defaults })),
        "endpoints",
      );
    }
    const endpoints = "127.0.0.1:7101, ws://host-2.example:7102/,[::1]:7103,127.0.0.1:7101";
    assert.deepEqual(checkConnectOptions({ endpoints }, defaults).endpoints, [
      "127.0.0.1:7101",
      "host-2.example:7102",
      "[::1]:7103",
    ]);
    assert.deepEqual(checkConnectOptions({}, { ...defaults, endpoints: "a:1,b:2" }).endpoints, ["a:1", "b:2"]);
  });

  test("rejects, and doesn't throw", async () => {
    const world = new World();
    await assert.rejects(connectWith({ endpoints: "nonsense" }, world.ports()), { argument: "endpoints[0]" });
  });
});

describe("every call", () => {
  test("rejects by name, sends nothing and leaves nothing", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const calls: readonly (readonly [string, () => Promise<unknown>])[] = [
      ["name", () => holdfast.acquire("")],
      ["name", () => holdfast.tryAcquire("")],
      ["name", () => holdfast.request("", () => 1)],
      ["body", () => holdfast.request("a", {}, undefined as unknown as () => void)],
      ["body", () => holdfast.request("a", undefined as unknown as () => void)],
      ["options", () => holdfast.request("a", null as unknown as { ifAvailable: true }, () => 1)],
      ["name", () => holdfast.inspect("")],
      ["name", () => holdfast.inspect(7 as unknown as string)],
      ["prefix", () => holdfast.list({ prefix: "x".repeat(513) })],
      ["Prefix", () => holdfast.list({ Prefix: "x" } as object)],
      ["name", () => holdfast.forceRelease("", 1)],
      ["token", () => holdfast.forceRelease("a", 0)],
      ["token", () => holdfast.forceRelease("a", Number.NaN)],
      ["token", () => holdfast.forceRelease("a", 2 ** 53)],
      ["lockDelayMs", () => holdfast.forceRelease("a", 1, { lockDelayMs: 60_001 })],
      ["lockDelayMs", () => holdfast.forceRelease("a", 1, { lockDelayMs: -0 })],
      ["principal", () => holdfast.forceRelease("a", 1, { principal: "x".repeat(257) })],
      ["to", () => holdfast.transfer("")],
      ["to", () => holdfast.transfer("x".repeat(129))],
      ["timeoutMs", () => holdfast.status({ timeoutMs: 0 })],
      ["timeoutMs", () => holdfast.status({ timeoutMs: 2 ** 31 })],
    ];
    for (const [argument, call] of calls) {
      await assert.rejects(call(), { code: "invalid_argument", argument }, argument);
    }
    await world.clock.advance(100);
    assert.deepEqual(
      world.cluster.received.filter(({ message }) => message.kind !== "hello"),
      [],
    );
    assert.equal(world.clock.isKept, false);
  });
});
