/** The lock that a body's code finds without being handed it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { currentFence, currentLock } from "../src/current-lock.js";
import { World } from "./world/world.js";

describe("currentFence", () => {
  test("is that of the innermost body, through awaits, and of none outside", async () => {
    const world = new World();
    const holdfast = await world.connect();
    assert.equal(currentLock(), null);
    assert.throws(() => currentFence(), { code: "invalid_argument" });
    const pause = (): Promise<void> => new Promise((resolve) => world.clock.setTimer(10, resolve));
    const seen: string[] = [];
    const running = holdfast.request("outer", async (outer) => {
      await pause();
      seen.push(currentFence().resource);
      await holdfast.request("inner", async () => {
        await pause();
        seen.push(currentFence().resource);
      });
      assert.equal(currentLock(), outer);
      return currentFence();
    });
    const beside = holdfast.lead("beside", async () => {
      await pause();
      seen.push(currentFence().resource);
    });
    const [fence] = await world.within(1_000, Promise.all([running, beside]));
    assert.deepEqual(fence.resource, "outer");
    assert.deepEqual(seen.sort(), ["beside", "inner", "outer"]);
    assert.equal(currentLock(), null);
  });

  test("needs a name when the lock has several", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const running = holdfast.request(["a", "b"], () => [
      currentFence("b").resource,
      (() => {
        try {
          return currentFence().resource;
        } catch (error) {
          return (error as { argument?: string }).argument;
        }
      })(),
    ]);
    assert.deepEqual(await world.within(1_000, running), ["b", "name"]);
  });
});
