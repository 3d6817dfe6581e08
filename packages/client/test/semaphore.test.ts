/** Semaphores as their users call them. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Lock } from "../src/lock.js";
import { outcomeOf, World } from "./world/world.js";

describe("a semaphore", () => {
  test("has so many places, each with a token and a fence of its own", async () => {
    const world = new World();
    const gpus = (await world.connect()).semaphore("gpu", { slots: 2 });
    assert.deepEqual([gpus.name, gpus.slots], ["gpu", 2]);
    const first = await world.within(100, gpus.acquire());
    const second = await world.within(100, gpus.acquire());
    assert.deepEqual([first.slot, second.slot].sort(), [0, 1]);
    assert.ok(second.token > first.token);
    assert.equal(first.mode, "slot");
    assert.deepEqual(first.fence(), { resource: `gpu#${first.slot}`, token: first.token });
    assert.equal(await world.within(100, gpus.tryAcquire()), null);
    const third = outcomeOf(gpus.acquire({ waitMs: 5_000 }));
    await world.clock.advance(100);
    assert.equal(third.isSettled, false);
    await world.within(100, first.release());
    await world.until(100, "the third gets the place of the first", () => third.isSettled);
    assert.equal((third.value as Lock).slot, first.slot);
    assert.ok((third.value as Lock).token > second.token);
  });

  test("runs a body in a place", async () => {
    const world = new World();
    const gpus = (await world.connect()).semaphore("gpu", { slots: 1 });
    assert.equal(
      await world.within(
        100,
        gpus.request((lock) => lock.slot),
      ),
      0,
    );
    const held = await world.within(100, gpus.acquire());
    const asked = gpus.request({ ifAvailable: true }, (lock) => (lock === null ? "taken" : "free"));
    assert.equal(await world.within(100, asked), "taken");
    await world.within(100, held.release());
  });

  test("of another number of slots under the same name is refused", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast.semaphore("gpu", { slots: 2 }).acquire());
    const other = outcomeOf(holdfast.semaphore("gpu", { slots: 3 }).acquire());
    await world.clock.advance(100);
    assert.equal((other.error as { code?: string }).code, "slots_differ");
  });

  test("refuses wrong arguments by their names", async () => {
    const world = new World();
    const holdfast = await world.connect();
    for (const slots of [0, 1_025, 1.5, "2", undefined]) {
      assert.throws(() => holdfast.semaphore("gpu", { slots: slots as number }), { argument: "slots" });
    }
    assert.throws(() => holdfast.semaphore("", { slots: 1 }), { argument: "name" });
    assert.throws(() => holdfast.semaphore("gpu", { slots: 1, places: 2 } as never), { argument: "places" });
    const shared = outcomeOf(holdfast.semaphore("gpu", { slots: 1 }).acquire({ mode: "shared" } as never));
    await world.clock.advance(10);
    assert.equal((shared.error as { argument?: string }).argument, "mode");
    assert.equal(world.commands().length, 0);
  });
});
