/** What is Redis's own: types, expiry, clients, hash slots, lost answers. The common promises are in redis-store.test.ts. */
import assert from "node:assert/strict";
import { connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { StaleTokenError, UnknownOutcomeError } from "@holdfast/fence";
import { redisGuard } from "@holdfast/fence/redis";
import type { IoredisClient, RedisGuard, RedisWrite } from "@holdfast/fence/redis";
import { until } from "../harness/until.js";
import { driver } from "./drivers.js";
import { redisClient, skipWithoutRedis, startRedis } from "./redis-server.js";
import type { TestRedis, TestRedisClient } from "./redis-server.js";

interface Parts {
  redis: TestRedis;
  client: TestRedisClient;
  guard: RedisGuard;
}

const lock = { resource: "doc", token: 33 };
const newer = { resource: "doc", token: 34 };

function useRedis(isCluster: boolean): Parts {
  const parts = {} as Parts;
  before(async () => {
    parts.redis = await startRedis({ isCluster });
    parts.client = await redisClient(parts.redis.url);
    parts.guard = redisGuard(parts.client);
  });
  after(async () => {
    if (parts.client?.isOpen) parts.client.destroy();
    await parts.redis?.stop();
  });
  return parts;
}

describe("the guard on one Redis", { skip: skipWithoutRedis(), timeout: 120_000 }, () => {
  const parts = useRedis(false);
  valueTests(parts);
  refusalTests(parts);
  clientTests(parts);
  lostAnswerTests(parts);
});

describe("the guard on a Redis cluster", { skip: skipWithoutRedis(), timeout: 120_000 }, () => {
  slotTests(useRedis(true));
});

function valueTests(parts: Parts): void {
  test("strings, hashes and lists are written and read, guarded", async () => {
    const { guard } = parts;
    assert.deepEqual(
      [await guard.get(lock, "v:s"), await guard.getFields(lock, "v:h"), await guard.range(lock, "v:l")],
      [null, Object.create(null), []],
    );
    await guard.set(lock, "v:s", "text");
    await guard.setFields(lock, "v:h", { title: "t", count: 3, constructor: "own" });
    await guard.setFields(lock, "v:h", { count: 4 });
    await guard.deleteFields(lock, "v:h", ["title"]);
    assert.equal(await guard.append(lock, "v:l", ["a", "b", 3]), 3);
    const fields = { count: "4", constructor: "own" };
    assert.equal(await guard.get(lock, "v:s"), "text");
    assert.deepEqual({ ...(await guard.getFields(lock, "v:h")) }, fields);
    assert.deepEqual(await guard.range(lock, "v:l", 1), ["b", "3"]);
    assert.deepEqual(await guard.range(lock, "v:l", -3, 0), ["a"]);
    // Each key has the resource's fence in its own hash slot, so each is closed by a use of its own.
    await guard.getFields(newer, "v:h");
    await assert.rejects(guard.setFields(lock, "v:h", { count: 5 }), StaleTokenError);
    await assert.rejects(guard.deleteFields(lock, "v:h", ["count"]), StaleTokenError);
    await guard.range(newer, "v:l");
    await assert.rejects(guard.append(lock, "v:l", ["late"]), StaleTokenError);
    await guard.delete(newer, "v:s");
    await assert.rejects(guard.set(lock, "v:s", "late"), StaleTokenError);
    assert.equal(await guard.get(newer, "v:s"), null);
  });

  test("data may expire; its fence doesn't", async () => {
    const { guard, client } = parts;
    await guard.set(newer, "e:1", "x", { expireMs: 1 });
    await until("the data has expired", async () => (await client.sendCommand(["EXISTS", "e:1"])) === 0);
    assert.equal(await client.sendCommand(["TTL", "holdfast:fence:{e:1}:doc"]), -1);
    await assert.rejects(guard.set(lock, "e:1", "late"), StaleTokenError);
  });

  test("several writes are one step", async () => {
    const { guard } = parts;
    const writes: readonly RedisWrite[] = [
      ["SET", "{w}:s", "1"],
      ["RPUSH", "{w}:l", "a", "b", "c"],
      ["LTRIM", "{w}:l", -2, -1],
      ["LPUSH", "{w}:l", "z"],
      ["SADD", "{w}:set", "m", "n"],
      ["SREM", "{w}:set", "n"],
      ["DEL", "{w}:s"],
      ["HSET", "{w}:s", "now", "a hash"],
    ];
    assert.deepEqual(await guard.write(lock, writes), ["OK", 3, "OK", 3, 2, 1, 1, 1]);
    assert.deepEqual(await guard.range(lock, "{w}:l"), ["z", "b", "c"]);
    assert.deepEqual({ ...(await guard.getFields(lock, "{w}:s")) }, { now: "a hash" });
    const many = Array.from({ length: 4_000 }, (_, at) => `line ${at}`);
    assert.equal(await guard.append(lock, "w:many", many), 4_000);
    await assert.rejects(guard.append(lock, "w:many", [...many, "more"]), { argument: "writes[0]" });
  });
}

function refusalTests(parts: Parts): void {
  test("a key of another type, anywhere among the writes, leaves all as it was, the fence too", async () => {
    const { guard, client } = parts;
    await guard.set(lock, "{t}:text", "text");
    const wrong: readonly (readonly RedisWrite[])[] = [
      [
        ["SET", "{t}:first", "x"],
        ["HSET", "{t}:text", "a", "b"],
      ],
      [
        ["RPUSH", "{t}:fresh", "x"],
        ["HSET", "{t}:fresh", "a", "b"],
      ],
    ];
    for (const writes of wrong) await assert.rejects(guard.write(newer, writes), { code: "incompatible" });
    assert.deepEqual(await client.sendCommand(["EXISTS", "{t}:first", "{t}:fresh"]), 0);
    assert.equal(await client.sendCommand(["GET", "holdfast:fence:{t}:doc"]), "33");
    await assert.rejects(guard.range(newer, "{t}:text"), /WRONGTYPE/);
    assert.equal(await client.sendCommand(["GET", "holdfast:fence:{t}:doc"]), "33");
  });

  test("a fence key that holds no token is an error and no hole", async () => {
    const { guard, client } = parts;
    const fence = "holdfast:fence:{o}:doc";
    for (const odd of ["", "abc", "-1", "1.5", "1e3", " 5", "99999999999999999999"]) {
      await client.sendCommand(["SET", fence, odd]);
      for (const call of [() => guard.set(lock, "o", "x"), () => guard.get(lock, "o")]) {
        await assert.rejects(call, { code: "incompatible", resource: "doc" }, odd);
      }
    }
    await client.sendCommand(["DEL", fence]);
    await client.sendCommand(["RPUSH", fence, "5"]);
    await assert.rejects(guard.set(lock, "o", "x"), { code: "incompatible" });
    assert.equal(await client.sendCommand(["EXISTS", "o"]), 0);
  });

  test("a server out of memory changes nothing", async () => {
    const { guard, client } = parts;
    await guard.set(lock, "{m}:a", "before");
    await client.sendCommand(["CONFIG", "SET", "maxmemory", "1"]);
    try {
      const writes: readonly RedisWrite[] = [
        ["DEL", "{m}:a"],
        ["SET", "{m}:b", "x"],
      ];
      await assert.rejects(
        guard.write(newer, writes),
        (error) => !(error instanceof UnknownOutcomeError) && /OOM/.test(String(error)),
      );
    } finally {
      await client.sendCommand(["CONFIG", "SET", "maxmemory", "0"]);
    }
    assert.equal(await client.sendCommand(["GET", "{m}:a"]), "before");
    assert.equal(await client.sendCommand(["GET", "holdfast:fence:{m}:doc"]), "33");
  });
}

function clientTests(parts: Parts): void {
  test("ioredis and a function of one's own serve as well", async () => {
    const { Redis } = driver("ioredis") as {
      readonly Redis: new (url: string) => IoredisClient & { disconnect(): void };
    };
    const ioredis = new Redis(parts.redis.url);
    try {
      const guard = redisGuard(ioredis);
      await guard.setFields(newer, "c:1", { a: "b" });
      assert.deepEqual({ ...(await guard.getFields(newer, "c:1")) }, { a: "b" });
      await assert.rejects(guard.setFields(lock, "c:1", { a: "late" }), StaleTokenError);
      await assert.rejects(
        guard.range(newer, "c:1"),
        (error) => /WRONGTYPE/.test(String(error)) && !(error instanceof UnknownOutcomeError),
      );
    } finally {
      ioredis.disconnect();
    }
    const own = redisGuard((script, keys, args) =>
      parts.client.sendCommand(["EVAL", script, String(keys.length), ...keys, ...args]),
    );
    await assert.rejects(own.setFields(lock, "c:1", { a: "late" }), StaleTokenError);
    assert.deepEqual({ ...(await own.getFields(newer, "c:1")) }, { a: "b" });
  });
}

function lostAnswerTests(parts: Parts): void {
  test("a connection lost before the answer leaves the outcome open, and says what may be repeated", async () => {
    const { guard, redis } = parts;
    const proxy = await losingProxy(Number(new URL(redis.url).port));
    const client = await redisClient(`redis://127.0.0.1:${proxy.port}`);
    try {
      const through = redisGuard(client);
      proxy.loseAnswers();
      const answer = await through.append(newer, "l:1", ["once"]).catch((error: unknown) => error);
      assert.ok(
        answer instanceof UnknownOutcomeError && !answer.retryable && answer.resource === "doc",
        String(answer),
      );
      assert.deepEqual(await guard.range(newer, "l:1"), ["once"], "it had taken effect");
      const closed = await through.set(newer, "l:2", "x").catch((error: unknown) => error);
      assert.ok(closed instanceof UnknownOutcomeError && closed.retryable, String(closed));
    } finally {
      if (client.isOpen) client.destroy();
      proxy.stop();
    }
  });
}

interface LosingProxy {
  readonly port: number;
  /** From now on requests go through, and at the first answer both sides are cut. */
  loseAnswers(): void;
  stop(): void;
}

async function losingProxy(target: number): Promise<LosingProxy> {
  let isLosing = false;
  const server = createServer((near) => {
    const far = connect(target, "127.0.0.1");
    near.on("data", (bytes) => far.write(bytes));
    far.on("data", (bytes) => {
      if (isLosing) near.destroy();
      else near.write(bytes);
    });
    near.on("error", () => {}).on("close", () => far.destroy());
    far.on("error", () => {}).on("close", () => near.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    loseAnswers: () => {
      isLosing = true;
    },
    stop: () => server.close(),
  };
}

function slotTests(parts: Parts): void {
  test("a fence lies in the hash slot of its data, whatever the key looks like", async () => {
    const { guard, client } = parts;
    for (const key of ["plain", "{a}", "x{a}y{b}", "{a}}", "x{{a}y", "{", "a{b", "{}{a", "名前", "a b"]) {
      if (key === "{}{a") {
        await assert.rejects(guard.set(lock, key, "x"), { code: "invalid_argument", argument: "key" });
        continue;
      }
      await guard.set(newer, key, `value of ${key}`);
      await assert.rejects(guard.set(lock, key, "late"), StaleTokenError, key);
      assert.equal(await client.sendCommand(["GET", key]), `value of ${key}`);
    }
    for (const key of ["{}", "a}", "}{"]) {
      await assert.rejects(guard.set(lock, key, "x"), { code: "invalid_argument", argument: "key" }, key);
    }
    await guard.write(
      [newer, { resource: "other", token: 7 }],
      [
        ["SET", "{a}:1", "x"],
        ["RPUSH", "{a}:2", "y"],
      ],
    );
  });
}
