/** oncePer: a job that clocks start on many hosts, a little apart (lessons A 46). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { outcomeOf, World } from "./world/world.js";

/** The leader's clock has counted the delay to its end. */
function endDelay(world: World, name: string): void {
  const view = world.cluster.machine.lockView(name, 0);
  const [delay] = [...world.cluster.machine.delays()].filter((each) => each.name === name);
  assert.ok(view !== null && delay !== undefined, "a delay closes it");
  world.cluster.apply({ kind: "endLockDelay", name, index: delay.index });
}

describe("oncePer", () => {
  test("runs one of many, and none that comes later in the window", async () => {
    const world = new World();
    const hosts = [await world.connect({}, 1), await world.connect({}, 2), await world.connect({}, 3)];
    let runs = 0;
    const job = (): number => {
      runs += 1;
      return runs;
    };
    const results = await world.within(1_000, Promise.all(hosts.map((host) => host.oncePer("nightly", 60_000, job))));
    assert.deepEqual(results.map(({ ran }) => ran).sort(), [false, false, true]);
    const [delay] = [...world.cluster.machine.delays()];
    assert.ok(delay !== undefined && delay.delayMs > 58_000 && delay.delayMs <= 60_000, "the rest of the window");
    await world.clock.advance(40_000);
    assert.deepEqual(await world.within(1_000, (hosts[1] as (typeof hosts)[0]).oncePer("nightly", 60_000, job)), {
      ran: false,
    });
    endDelay(world, "nightly");
    const next = await world.within(1_000, (hosts[1] as (typeof hosts)[0]).oncePer("nightly", 60_000, job));
    assert.deepEqual(next, { ran: true, value: 2 });
  });

  test("a body longer than its window leaves the lock open", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const running = holdfast.oncePer("minutely", 1_000, async () => {
      await new Promise<void>((resolve) => world.clock.setTimer(3_000, resolve));
    });
    assert.deepEqual(await world.within(10_000, running), { ran: true, value: undefined });
    assert.equal(world.cluster.machine.lockCount, 0);
  });

  test("the window stays closed when the body fails, and when its holder is lost", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const failure = new Error("job");
    const failing = outcomeOf(
      holdfast.oncePer("nightly", 60_000, () => {
        throw failure;
      }),
    );
    await world.clock.advance(100);
    assert.equal(failing.error, failure);
    assert.equal([...world.cluster.machine.delays()].length, 1);
    const other = await world.connect({}, 2);
    const lost = outcomeOf(other.oncePer("weekly", 5_000, () => new Promise(() => undefined)));
    await world.clock.advance(100);
    const [session] = world.cluster.machine.lockView("weekly", 0)?.holders.map((holder) => holder.session) ?? [];
    world.cluster.expire(session as number);
    assert.deepEqual(
      [...world.cluster.machine.delays()].filter(({ name }) => name === "weekly").map(({ delayMs }) => delayMs),
      [5_000],
    );
    assert.equal(lost.isSettled, false, "its body has not ended");
  });

  test("refuses wrong arguments by their names", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const refused = async (call: Promise<unknown>): Promise<string | undefined> => {
      const outcome = outcomeOf(call);
      await world.clock.advance(1);
      return (outcome.error as { argument?: string }).argument;
    };
    assert.equal(await refused(holdfast.oncePer("", 1, () => 1)), "key");
    assert.equal(await refused(holdfast.oncePer("a", 60_001, () => 1)), "windowMs");
    assert.equal(await refused(holdfast.oncePer("a", 0, () => 1)), "windowMs");
    assert.equal(await refused(holdfast.oncePer("a", 1, undefined as never)), "body");
  });
});
