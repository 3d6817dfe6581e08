import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { LeaderNote } from "../../src/lock/leader-note.js";
import { until } from "../until.js";

test("tells once, when there has been no leader for a while", async () => {
  let told = 0;
  const note = new LeaderNote(() => (told += 1), 30);
  note.logger.info({}, "leader found");
  await sleep(60);
  assert.equal(told, 0, "there is one");
  note.logger.info({}, "leader lost");
  const keepAlive = setInterval(() => undefined, 1_000);
  await until(() => told === 1, "told");
  note.logger.info({}, "leader found");
  note.logger.info({}, "leader lost");
  await sleep(60);
  clearInterval(keepAlive);
  assert.equal(told, 1);
});

test("tells nothing once the wait is over", async () => {
  let told = 0;
  const note = new LeaderNote(() => (told += 1), 20);
  note.cancel();
  note.logger.info({}, "leader lost");
  await sleep(50);
  assert.equal(told, 0);
});

test("tells it again in another wait that has no leader", async () => {
  let told = 0;
  const note = new LeaderNote(() => (told += 1), 20);
  note.logger.info({}, "leader found");
  note.cancel();
  note.start();
  await sleep(50);
  assert.equal(told, 0, "there is one");
  note.cancel();
  note.logger.info({}, "leader lost");
  const keepAlive = setInterval(() => undefined, 1_000);
  note.start();
  await until(() => told === 1, "told");
  clearInterval(keepAlive);
});
