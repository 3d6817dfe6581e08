import assert from "node:assert/strict";
import { test } from "node:test";

import { problemOf } from "../../src/http.js";
import { TurnQueue } from "../../src/http/turn-queue.js";

test("one at a time for each resource, in the order in which they came; a failure passes the turn on; too many are refused", async () => {
  const queue = new TurnQueue(2);
  const order: string[] = [];
  const ends: (() => void)[] = [];
  const call = (name: string) => async (): Promise<string> => {
    order.push(`${name} begins`);
    await new Promise<void>((resolve) => ends.push(resolve));
    order.push(`${name} ends`);
    if (name === "b") throw new Error("b failed");
    return name;
  };
  const [a, b, c] = ["a", "b", "c"].map((name) => queue.take("doc", call(name)));
  await assert.rejects(queue.take("doc", call("d")), (error) => problemOf(error)?.status === 503);
  const other = queue.take("other", async () => "other");
  assert.equal(await other, "other");
  for (const [promise, expected] of [
    [a, "a"],
    [b, null],
    [c, "c"],
  ] as const) {
    while (ends.length === 0) await new Promise((resolve) => setImmediate(resolve));
    ends.shift()?.();
    if (expected === null) await assert.rejects(promise ?? Promise.resolve(), /b failed/);
    else assert.equal(await promise, expected);
  }
  assert.deepEqual(order, ["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]);
  assert.equal(await queue.take("doc", async () => "again"), "again");
});

test("with nobody allowed to wait a busy resource refuses at once", async () => {
  const queue = new TurnQueue(0);
  let end = (): void => {};
  const first = queue.take(
    "doc",
    () =>
      new Promise<void>((resolve) => {
        end = resolve;
      }),
  );
  await assert.rejects(
    queue.take("doc", async () => {}),
    (error) => problemOf(error)?.headers["retry-after"] === "1",
  );
  end();
  await first;
  await queue.take("doc", async () => {});
});
