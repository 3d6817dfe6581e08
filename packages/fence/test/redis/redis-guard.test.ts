import assert from "node:assert/strict";
import { test } from "node:test";

import { StaleTokenError, UnknownOutcomeError } from "../../src/index.js";
import { redisGuard } from "../../src/redis.js";
import type { RedisClient, RedisEval, RedisGuard, RedisGuardOptions, RedisWrite } from "../../src/redis.js";

const lock = { resource: "doc:42", token: 33 };

interface Call {
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

/** A server that answers every script alike, and writes down what it was asked. */
function guardOver(answer: unknown, options?: RedisGuardOptions): { guard: RedisGuard; calls: Call[] } {
  const calls: Call[] = [];
  const run: RedisEval = async (_script, keys, args) => {
    calls.push({ keys, args });
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return { guard: redisGuard(run, options), calls };
}

test("the fence's key stands first, in the hash slot of the data", async () => {
  const { guard, calls } = guardOver(["ok", "OK"]);
  await guard.set(lock, "doc:42:body", "x", { expireMs: 5 });
  await guard.set(lock, "{doc:42}:body", "x");
  assert.deepEqual(calls, [
    {
      keys: ["holdfast:fence:{doc:42:body}:doc:42", "doc:42:body"],
      args: ["1", "33", "1", "SET", "any", "3", "x", "PX", "5"],
    },
    { keys: ["holdfast:fence:{doc:42}:doc:42", "{doc:42}:body"], args: ["1", "33", "1", "SET", "any", "1", "x"] },
  ]);
  const other = guardOver(["ok", null], { prefix: "f/" });
  assert.equal(await other.guard.get({ resource: "pool#3", token: 2 ** 53 - 1 }, "k"), null);
  assert.deepEqual(other.calls, [{ keys: ["f/{k}:pool#3", "k"], args: ["9007199254740991", "GET"] }]);
});

test("several fences are taken in one order, and a refusal names its own", async () => {
  const { guard, calls } = guardOver(["stale", 2, "34"]);
  const locks = [
    { resource: "b", token: 7 },
    { resource: "a", token: 9 },
  ];
  await assert.rejects(
    guard.write(locks, [["DEL", "{k}"]]),
    (error) =>
      error instanceof StaleTokenError && error.resource === "b" && error.presented === 7 && error.highest === 34,
  );
  assert.deepEqual(calls[0]?.keys, ["holdfast:fence:{k}:a", "holdfast:fence:{k}:b", "{k}"]);
  assert.deepEqual(calls[0]?.args.slice(0, 3), ["2", "9", "7"]);
});

test("clients are told apart by their shape", async () => {
  const seen: unknown[] = [];
  const node = {
    eval: async (_script: string, options: unknown): Promise<unknown> => {
      seen.push(options);
      return ["ok", "OK"];
    },
  };
  const io = {
    call: async (): Promise<unknown> => null,
    eval: async (_script: string, ...rest: unknown[]): Promise<unknown> => {
      seen.push(rest);
      return ["ok", "OK"];
    },
  };
  await redisGuard(node).delete(lock, "k");
  await redisGuard(io).delete(lock, "k");
  const keys = ["holdfast:fence:{k}:doc:42", "k"];
  const args = ["1", "33", "1", "DEL", "any", "0"];
  assert.deepEqual(seen, [{ keys, arguments: args }, [2, ...keys, ...args]]);
  for (const odd of [null, undefined, {}, { eval: 3 }, "redis://"]) {
    assert.throws(() => redisGuard(odd as unknown as RedisClient), { argument: "client" });
  }
});

test("what the server refused comes as it is; everything else leaves the outcome open", async () => {
  class ErrorReply extends Error {}
  class SimpleError extends ErrorReply {}
  const replyError = Object.assign(new Error("NOAUTH"), { name: "ReplyError" });
  for (const refusal of [new ErrorReply("WRONGTYPE"), new SimpleError("READONLY"), replyError]) {
    await assert.rejects(guardOver(refusal).guard.set(lock, "k", "x"), refusal);
  }
  const reset = new Error("Socket closed unexpectedly");
  const outcomeOf = async (call: (guard: RedisGuard) => Promise<unknown>): Promise<unknown> =>
    call(guardOver(reset).guard).catch((error: unknown) => error);
  const rows: readonly (readonly [boolean, (guard: RedisGuard) => Promise<unknown>])[] = [
    [true, (guard) => guard.set(lock, "k", "x")],
    [true, (guard) => guard.setFields(lock, "k", { a: 1 })],
    [true, (guard) => guard.get(lock, "k")],
    [false, (guard) => guard.append(lock, "k", ["x"])],
    [false, (guard) => guard.write(lock, [["SET", "k", "x"] as const, ["LTRIM", "k", 0, 1] as const])],
  ];
  for (const [retryable, call] of rows) {
    const error = await outcomeOf(call);
    assert.ok(error instanceof UnknownOutcomeError, String(error));
    assert.deepEqual([error.retryable, error.cause, error.resource], [retryable, reset, "doc:42"]);
  }
});

test("text may come as bytes, and what is no text is no value", async () => {
  const bytes = (text: string): Buffer => Buffer.from(text);
  assert.equal(await guardOver([bytes("ok"), bytes("é")]).guard.get(lock, "k"), "é");
  assert.deepEqual(await guardOver([bytes("ok"), [bytes("a"), "b"]]).guard.range(lock, "k"), ["a", "b"]);
  assert.deepEqual({ ...(await guardOver(["ok", [bytes("a"), bytes("1")]]).guard.getFields(lock, "k")) }, { a: "1" });
  await assert.rejects(guardOver(["ok", { a: 1 }]).guard.get(lock, "k"), { argument: "client" });
  const stale = guardOver([bytes("stale"), 1, bytes("34")]).guard.set(lock, "k", "x");
  await assert.rejects(stale, (error) => error instanceof StaleTokenError && error.highest === 34);
});

test("an answer that isn't the script's is no success", async () => {
  for (const odd of [null, "OK", [], ["odd"], ["stale", 9, "34"], ["stale", 1, "many"]]) {
    await assert.rejects(guardOver(odd).guard.set(lock, "k", "x"), /client: |holds no token/);
  }
});

test("odd arguments are refused by name before anything is sent", async () => {
  const { guard, calls } = guardOver(["ok", "OK"]);
  const write = (...writes: unknown[]): Promise<unknown> => guard.write(lock, writes as RedisWrite[]);
  const rows: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["lock.resource", () => guard.set({ token: 5 }, "k", "x")],
    ["lock.token", () => guard.get({ resource: "a", token: 1.5 }, "k")],
    ["key", () => guard.get(lock, "")],
    ["key", () => guard.get(lock, "a}b")],
    ["key", () => guard.set(lock, "holdfast:fence:{x}:y", "9")],
    ["value", () => guard.set(lock, "k", undefined as unknown as string)],
    ["value", () => guard.set(lock, "k", "\ud800")],
    ["value", () => guard.set(lock, "k", Number.NaN)],
    ["options.expireMs", () => guard.set(lock, "k", "x", { expireMs: 0 })],
    ["options.ttl", () => guard.set(lock, "k", "x", { ttl: 1 } as object)],
    ["fields", () => guard.setFields(lock, "k", {})],
    ["fields", () => guard.setFields(lock, "k", ["a"] as unknown as Record<string, string>)],
    ["fields.a", () => guard.setFields(lock, "k", { a: null as unknown as string })],
    ["fields", () => guard.deleteFields(lock, "k", [])],
    ["values", () => guard.append(lock, "k", [])],
    ["values[1]", () => guard.append(lock, "k", ["a", {} as string])],
    ["start", () => guard.range(lock, "k", 0.5)],
    ["stop", () => guard.range(lock, "k", 0, Number.NaN)],
    ["locks", () => guard.write([], [["DEL", "k"]])],
    ["writes", () => guard.write(lock, [])],
    ["writes", () => write(...Array.from({ length: 1_001 }, () => ["DEL", "k"]))],
    ["writes[0]", () => write("DEL k")],
    ["writes[0][0]", () => write(["INCRBY", "k", 1])],
    ["writes[0][0]", () => write(["toString", "k", 1])],
    ["writes[0][1]", () => write(["DEL", 5])],
    ["writes[0]", () => write(["DEL", "k", "l"])],
    ["writes[0]", () => write(["SET", "k"])],
    ["writes[0]", () => write(["SET", "k", "x", "NX"])],
    ["writes[0]", () => write(["SET", "k", "x", "PX", "-5"])],
    ["writes[0]", () => write(["HSET", "k", "a", "b", "c"])],
    ["writes[0]", () => write(["LTRIM", "k", "a", "b"])],
    ["writes[0][2]", () => write(["RPUSH", "k", null])],
    ["writes[1][1]", () => write(["SET", "{a}1", "x"], ["SET", "{b}1", "x"])],
  ];
  for (const [argument, call] of rows) await assert.rejects(call(), { code: "invalid_argument", argument }, argument);
  assert.deepEqual(calls, []);
  const makes: readonly (readonly [string, object])[] = [
    ["options.prefix", { prefix: "" }],
    ["options.prefix", { prefix: "a{b}" }],
    ["options.onStale", { onStale: 1 }],
    ["options.fence", { fence: "x" }],
  ];
  for (const [argument, odd] of makes) assert.throws(() => guardOver(null, odd), { argument });
});
