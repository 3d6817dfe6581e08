import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkClientCommand, decodeCommand, encodeCommand, limits } from "@holdfast/wire";
import fc from "fast-check";
import {
  isAnswer,
  parseAcquire,
  parseCancel,
  parseCredential,
  parseInspect,
  parseList,
  parseOpen,
  parseRelease,
  parseSetInfo,
  parseWatch,
} from "../../src/api/arguments.js";
import {
  cancelNumber,
  clientNumber,
  closeNumber,
  crossedReleaseNumber,
  requestMax,
  requestNumber,
  requestOf,
  seenMax,
} from "../../src/api/request-numbers.js";
import { Judge } from "./document.js";

const key = "0123456789abcdef".repeat(2);
const drawKey = (): string => key;
const open = (body: unknown): object => parseOpen(body, drawKey);
const acquire = (body: unknown): object => parseAcquire(7, body);
const release = (body: unknown): object => parseRelease(7, body);
const cancel = (body: unknown): object => parseCancel(7, body);
const setInfo = (body: unknown): object => parseSetInfo(7, body);
const right = { request: 1, names: ["a"] };

/** The argument that is called wrong; null: none is. */
function wrong(parsed: object): string | null {
  return isAnswer(parsed) ? (parsed.body as { readonly argument: string }).argument : null;
}

/** What is asked, and what is wrong with it. */
const bodies: readonly [string, (body: unknown) => object, unknown, string | null][] = [
  ["/v1/sessions", open, {}, null],
  ["/v1/sessions", open, { ttlMs: 500, info: "x", key }, null],
  ["/v1/sessions", open, undefined, "body"],
  ["/v1/sessions", open, [], "body"],
  ["/v1/sessions", open, { ttlMs: 499 }, "ttlMs"],
  ["/v1/sessions", open, { ttlMs: "1000" }, "ttlMs"],
  ["/v1/sessions", open, { ttlMs: null }, "ttlMs"],
  ["/v1/sessions", open, { key: "A".repeat(32) }, "key"],
  ["/v1/sessions", open, { info: "x".repeat(1_025) }, "info"],
  ["/v1/sessions", open, { ttlMS: 1_000 }, "ttlMS"],
  ["/v1/sessions", open, { status: 200 }, "status"],
  ["/v1/acquire", acquire, right, null],
  ["/v1/acquire", acquire, { ...right, mode: "slot", slots: 4, waitMs: 0, settled: 1, seen: [2, 3] }, null],
  ["/v1/acquire", acquire, { names: ["a"] }, "request"],
  ["/v1/acquire", acquire, { ...right, request: 0 }, "request"],
  ["/v1/acquire", acquire, { ...right, request: 1.5 }, "request"],
  ["/v1/acquire", acquire, { ...right, request: requestMax + 1 }, "request"],
  ["/v1/acquire", acquire, { ...right, settled: -1 }, "settled"],
  ["/v1/acquire", acquire, { ...right, settled: requestMax + 1 }, "settled"],
  ["/v1/acquire", acquire, { ...right, seen: 1 }, "seen"],
  ["/v1/acquire", acquire, { ...right, seen: [1, 0] }, "seen[1]"],
  ["/v1/acquire", acquire, { ...right, seen: Array.from({ length: seenMax + 1 }, () => 1) }, "seen"],
  ["/v1/acquire", acquire, { request: 1 }, "names"],
  ["/v1/acquire", acquire, { request: 1, names: "a" }, "names"],
  ["/v1/acquire", acquire, { request: 1, names: [] }, "names"],
  ["/v1/acquire", acquire, { request: 1, names: ["a", ""] }, "names[1]"],
  ["/v1/acquire", acquire, { request: 1, names: ["a", 1] }, "names[1]"],
  ["/v1/acquire", acquire, { request: 1, names: Array.from({ length: 65 }, (_, at) => `${at}`) }, "names"],
  ["/v1/acquire", acquire, { ...right, mode: "write" }, "mode"],
  ["/v1/acquire", acquire, { ...right, slots: 1 }, "slots"],
  ["/v1/acquire", acquire, { ...right, mode: "slot" }, "slots"],
  ["/v1/acquire", acquire, { ...right, names: ["a", "b"], mode: "slot", slots: 1 }, "names"],
  ["/v1/acquire", acquire, { ...right, waitMs: -1 }, "waitMs"],
  ["/v1/acquire", acquire, { ...right, waitMs: 3_600_001 }, "waitMs"],
  ["/v1/acquire", acquire, { ...right, lockDelayMs: 60_001 }, "lockDelayMs"],
  ["/v1/acquire", acquire, { ...right, maxHoldMs: -0 }, "maxHoldMs"],
  ["/v1/acquire", acquire, { ...right, info: 1 }, "info"],
  ["/v1/acquire", acquire, { ...right, lockDelayMS: 1 }, "lockDelayMS"],
  ["/v1/acquire", acquire, JSON.parse('{"request":1,"names":["a"],"__proto__":{}}'), "__proto__"],
  ["/v1/release", release, { request: 2, of: 1 }, null],
  ["/v1/release", release, { request: 2, of: 1, afterMs: 60_000 }, null],
  ["/v1/release", release, { request: 2 }, "of"],
  ["/v1/release", release, { request: 2, of: 1, afterMs: 60_001 }, "afterMs"],
  ["/v1/release", release, { of: 1 }, "request"],
  ["/v1/cancel", cancel, { request: 2, of: 1 }, null],
  ["/v1/cancel", cancel, { request: 2, of: "1" }, "of"],
  ["/v1/cancel", cancel, { request: 2, of: 1, afterMs: 1 }, "afterMs"],
  ["/v1/info", setInfo, { request: 2, of: 1, info: "" }, null],
  ["/v1/info", setInfo, { request: 2, of: 1 }, "info"],
  ["/v1/info", setInfo, { request: 2, of: 0, info: "x" }, "of"],
  ["/v1/info", setInfo, { request: 2, of: 1, info: "x".repeat(1_025) }, "info"],
];

describe("bodies", () => {
  const judge = new Judge();
  // What JSON Schema can't say: two arguments that depend on each other, and -0.
  const beyondSchema = ["slots", "names", "maxHoldMs", "__proto__", "info"];

  for (const [path, parse, body, expected] of bodies) {
    it(`${path} ${(JSON.stringify(body) ?? "nothing").slice(0, 80)}: ${expected ?? "right"}`, () => {
      assert.equal(wrong(parse(body)), expected);
      const isAllowed = judge.allows(path, body);
      if (expected === null || !beyondSchema.includes(expected)) assert.equal(isAllowed, expected === null);
    });
  }

  it("whatever comes, what is taken can be sent, and nothing is thrown", () => {
    const names = ["request", "settled", "seen", "of", "names", "mode", "slots", "waitMs", "info", "ttlMs", "key"];
    const value = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom<unknown>(1, 7, "a", ["a", "b", "a"], "shared", "slot", key, 60_000, -0, 2 ** 53, "\ud800"),
    );
    const body = fc.oneof(fc.jsonValue(), fc.dictionary(fc.constantFrom(...names), value));
    fc.assert(
      fc.property(body, fc.constantFrom(open, acquire, release, cancel, setInfo), (given, parse) => {
        const parsed = parse(given);
        if (isAnswer(parsed)) {
          assert.deepEqual([parsed.status, typeof wrong(parsed)], [400, "string"]);
          return;
        }
        const command = "command" in parsed ? (parsed.command as Parameters<typeof encodeCommand>[0]) : parsed;
        assert.equal(checkClientCommand(command as Parameters<typeof checkClientCommand>[0]), null);
        assert.deepEqual(decodeCommand(encodeCommand(command as Parameters<typeof encodeCommand>[0])), command);
      }),
      { numRuns: 500 },
    );
  });
});

describe("queries and headers", () => {
  it("lists", () => {
    const none = { kind: "list", prefix: "", after: "", limit: 100 };
    assert.deepEqual(parseList(""), none);
    assert.deepEqual(parseList("prefix=doc%3A+%2B&after=%C3%BC&limit=7"), {
      ...none,
      prefix: "doc: +",
      after: "ü",
      limit: 7,
    });
    const troubles = [
      "limit=0",
      "limit=1001",
      "limit=",
      "limit=1e3",
      "prefix=%ff",
      "prefix=%00",
      "prefx=a",
      "prefix=a&prefix=b",
    ];
    const expected = ["limit", "limit", "limit", "limit", "query", "prefix", "prefx", "prefix"];
    assert.deepEqual(
      troubles.map((query) => wrong(parseList(query))),
      expected,
    );
    assert.equal(wrong(parseList(`after=${"x".repeat(limits.nameBytesMax + 1)}`)), "after");
  });

  it("watches", () => {
    assert.deepEqual(parseWatch("name=a", undefined), { name: "a", isPrefix: false, after: null });
    assert.deepEqual(parseWatch("prefix=", undefined), { name: "", isPrefix: true, after: null });
    assert.deepEqual(parseWatch("prefix=a&after=5", undefined), { name: "a", isPrefix: true, after: 5 });
    assert.deepEqual(parseWatch("prefix=a&after=5", "9"), { name: "a", isPrefix: true, after: 9 });
    const troubles = ["", "name=a&prefix=b", "name=", "prefix=a&after=-1", "name=a&after=9007199254740992"];
    const expected = ["name", "name", "name", "after", "after"];
    assert.deepEqual(
      troubles.map((query) => wrong(parseWatch(query, undefined))),
      expected,
    );
    assert.equal(wrong(parseWatch("name=a", "x")), "Last-Event-ID");
  });

  it("names in paths", () => {
    assert.deepEqual(parseInspect("a%2Fb+c"), { kind: "inspect", name: "a/b+c" });
    assert.deepEqual(
      ["%", "%ff", "%00", "%EF%BB%BFa"].map((name) => wrong(parseInspect(name))),
      Array(4).fill("name"),
    );
  });

  it("credentials", () => {
    assert.deepEqual(parseCredential(`7.${key}`), { session: 7, key });
    const troubles = [
      undefined,
      "",
      key,
      `07.${key}`,
      `7.${key}0`,
      `7 .${key}`,
      `9007199254740993.${key}`,
      `Bearer 7.${key}`,
    ];
    for (const header of troubles) assert.equal(wrong(parseCredential(header)), "Holdfast-Session", header);
  });
});

describe("numbers of requests", () => {
  it("are apart from each other, and known again", () => {
    const request = fc.integer({ min: 1, max: requestMax });
    fc.assert(
      fc.property(request, request, (a, b) => {
        const own = (number: number): number[] => [
          requestNumber(number),
          cancelNumber(number),
          crossedReleaseNumber(number),
        ];
        for (const number of own(a)) {
          assert.ok(Number.isSafeInteger(number) && number < closeNumber);
          assert.equal(requestOf(number), a);
          if (a !== b) assert.ok(!own(b).includes(number));
        }
        assert.deepEqual(own(a).map(clientNumber), [a, null, null]);
      }),
    );
    assert.equal(clientNumber(closeNumber), null);
  });

  it("what is settled or seen takes the node's own commands along", () => {
    const call = parseRelease(7, { request: 9, of: 8, settled: 4, seen: [6] });
    assert.ok("command" in call);
    const { request, settled, seen, of } = call.command as unknown as Record<string, unknown>;
    assert.deepEqual([request, settled, seen, of], [27, 12, [18, 19, 20], 24]);
    assert.ok(cancelNumber(3) < 12 && crossedReleaseNumber(3) < 12);
  });
});
