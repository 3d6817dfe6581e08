/** `holdfast doctor --guard redis://...` on a real server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { examineByCli } from "./doctor-run.js";
import { redisClient, skipWithoutRedis, startRedis } from "./redis-server.js";

test("doctor --guard on Redis: sound, durable, and a policy that throws fences away", {
  skip: skipWithoutRedis(),
}, async () => {
  const redis = await startRedis();
  try {
    const sound = await examineByCli(redis.url);
    assert.deepEqual([sound.code, sound.problems], [0, []], sound.text);
    const client = await redisClient(redis.url);
    assert.equal(await client.sendCommand(["DBSIZE"]), 0, "nothing is left behind");
    await client.sendCommand(["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    await client.sendCommand(["CONFIG", "SET", "appendfsync", "everysec"]);
    client.destroy();
    const forgetful = await examineByCli(redis.url);
    assert.deepEqual([forgetful.code, forgetful.problems], [4, ["eviction"]], forgetful.text);
    assert.match(forgetful.text, /appendfsync is everysec/);
  } finally {
    await redis.stop();
  }
  const gone = await examineByCli(redis.url);
  assert.equal(gone.code, 1);
  assert.match(gone.text, /redis says: .*ECONNREFUSED/);
});
