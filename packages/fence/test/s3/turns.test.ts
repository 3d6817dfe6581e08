import assert from "node:assert/strict";
import { test } from "node:test";

import { Turns } from "../../src/s3/turns.js";

test("calls on one resource follow each other, those on others don't wait, and a failure passes the turn on", async () => {
  const turns = new Turns();
  const order: string[] = [];
  const ends = new Map<string, () => void>();
  const call = (resource: string, name: string): Promise<string> =>
    turns.take(resource, async () => {
      order.push(`${name} begins`);
      await new Promise<void>((resolve) => ends.set(name, resolve));
      order.push(`${name} ends`);
      if (name === "first") throw new Error("first failed");
      return name;
    });
  const first = call("a", "first");
  const second = call("a", "second");
  const other = call("b", "other");
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(order, ["first begins", "other begins"]);
  ends.get("first")?.();
  await assert.rejects(first, /first failed/);
  await new Promise((resolve) => setImmediate(resolve));
  ends.get("second")?.();
  ends.get("other")?.();
  assert.deepEqual(await Promise.all([second, other]), ["second", "other"]);
  assert.deepEqual(order.slice(2), ["first ends", "second begins", "second ends", "other ends"]);
});

test("a call within a call waits for no longer than a turn may last", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const turns = new Turns();
  let isInside = false;
  const outer = turns.take("a", async () => {
    const inner = turns.take("a", async () => {
      isInside = true;
      return "inner";
    });
    for (let each = 0; each < 5; each += 1) await Promise.resolve();
    assert.equal(isInside, false);
    context.mock.timers.tick(1_000);
    return inner;
  });
  assert.equal(await outer, "inner");
});
