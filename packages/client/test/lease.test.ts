/** Clocks that jump or stand still, and locks that are renewed by hand. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { LockLostError } from "../src/errors.js";
import type { Lock } from "../src/lock.js";
import { Stranger } from "./world/stranger.js";
import { outcomeOf, World } from "./world/world.js";

const ttlMs = 10_000;

async function holder(): Promise<{ world: World; lock: Lock }> {
  const world = new World();
  const holdfast = await world.connect({ ttlMs });
  const lock = await world.within(1_000, holdfast.acquire("doc:42"));
  return { world, lock };
}

describe("clocks", () => {
  // A 14, B 15: the reason names the stall.
  test("a stuck loop finds out at its next look, before any timer", async () => {
    const { world, lock } = await holder();
    await world.clock.advance(2_000);
    world.clock.stall(12_000);
    assert.throws(() => lock.assertHeld(), { code: "lock_lost", reason: "loop_stall" });
    assert.equal(lock.signal.aborted, true);
    assert.equal(lock.remainingMs(), 0);
  });

  test("a stuck loop that nobody asks finds out at its next turn", async () => {
    const { world, lock } = await holder();
    let reason: unknown = null;
    lock.signal.addEventListener("abort", () => {
      reason = (lock.signal.reason as LockLostError).reason;
    });
    world.clock.stall(12_000);
    await world.clock.advance(0);
    assert.equal(reason, "loop_stall");
  });

  test("a loop stuck for two thirds of the TTL keeps its lock", async () => {
    const { world, lock } = await holder();
    for (let round = 0; round < 10; round += 1) {
      await world.clock.advance(3_331);
      assert.equal(lock.state, "held");
      world.clock.stall((ttlMs * 2) / 3 - 300);
      await world.clock.advance(10);
      assert.equal(lock.state, "held", `round ${round}`);
    }
  });

  test("a stall with a keepalive in flight is no failed renewal", async () => {
    const world = new World();
    const holdfast = await world.connect({ ttlMs });
    const lock = await world.within(1_000, holdfast.acquire("a", { stopOn: "jeopardy" }));
    world.cluster.roundMs = 50;
    await world.until(5_000, "a keepalive", () => world.keepalives().length === 1);
    world.clock.stall(3_000);
    await world.clock.advance(200);
    assert.equal(lock.signal.aborted, false);
    assert.equal(lock.state, "held");
  });

  // A 43: the monotonic clock stands still while the machine is suspended.
  test("a suspend is found by the other clock", async () => {
    const { world, lock } = await holder();
    await world.clock.advance(1_000);
    world.clock.suspend(9_000);
    assert.equal(lock.state, "lost");
    assert.equal(lock.lossReason, "clock_jump");
  });

  // os.uptime() has steps of 10 ms: seen just before a step and just after another it is ahead.
  test("a clock with steps is no suspend, wherever in them the lease begins and ends", async () => {
    for (const stepMs of [10, 20]) {
      for (let offsetMs = 0; offsetMs < stepMs; offsetMs += 1) {
        const world = new World();
        world.clock.suspendAwareStepMs = stepMs;
        await world.clock.advance(offsetMs + 0.5);
        const holdfast = await world.connect({ ttlMs });
        const lock = await world.within(1_000, holdfast.acquire("doc:42"));
        for (const node of world.cluster.nodes) node.reach = "silent";
        await world.clock.advance(2 * ttlMs);
        assert.equal(lock.lossReason, "expired", `step ${stepMs}, offset ${offsetMs}`);
      }
    }
  });

  test("an outage in which the machine is suspended for a moment is one", async () => {
    for (const [suspendedMs, reason] of [
      [90, "expired"],
      [200, "clock_jump"],
    ] as const) {
      const { world, lock } = await holder();
      for (const node of world.cluster.nodes) node.reach = "silent";
      world.clock.suspend(suspendedMs);
      await world.clock.advance(2 * ttlMs);
      assert.equal(lock.lossReason, reason);
    }
  });

  test("a suspend that nobody asks about is found within a second of running", async () => {
    const { world, lock } = await holder();
    await world.clock.advance(1_000);
    world.clock.suspend(3_600_000);
    for (const node of world.cluster.nodes) node.reach = "silent";
    await world.clock.advance(1_000);
    assert.equal(lock.signal.aborted, true);
  });

  test("a short suspend shortens what remains", async () => {
    const { world, lock } = await holder();
    const before = lock.remainingMs();
    world.clock.suspend(4_000);
    assert.equal(lock.remainingMs(), before - 4_000);
    await world.clock.advance(5_000);
    assert.equal(lock.state, "held");
  });
});

describe("manual renewal", () => {
  // A 17: frozen timers of a serverless function must neither renew nor keep anything alive.
  test("nothing renews it but renew()", async () => {
    const world = new World();
    const holdfast = await world.connect({ ttlMs });
    const lock = await world.within(1_000, holdfast.acquire("a", { renew: "manual" }));
    await world.clock.advance(9_000);
    assert.equal(world.keepalives().length, 0);
    await world.within(1_000, lock.renew());
    assert.ok(lock.remainingMs() > 9_700);
    await world.clock.advance(9_600);
    assert.equal(lock.state, "held");
    await world.clock.advance(300);
    assert.equal(lock.state, "lost");
    await assert.rejects(lock.renew(), { code: "lock_lost", reason: "expired" });
  });

  test("has a session of its own, that ends with its release", async () => {
    const world = new World();
    const holdfast = await world.connect({ ttlMs });
    const [manual, other] = await world.within(
      1_000,
      Promise.all([holdfast.acquire("a", { renew: "manual" }), holdfast.acquire("b")]),
    );
    assert.equal(world.cluster.machine.sessionCount, 2);
    assert.equal(await world.within(1_000, manual.release()), "released");
    await world.clock.advance(20);
    assert.equal(world.cluster.machine.sessionCount, 1);
    assert.equal(other.state, "held");
  });

  // A 35 (rabbitmq): a lease must not lapse while its acquire waits.
  test("is renewed while it waits for the lock", async () => {
    const world = new World();
    const stranger = new Stranger(world.cluster);
    const held = stranger.acquire("a");
    world.cluster.expires = true;
    const holdfast = await world.connect({ ttlMs: 2_000 });
    const acquiring = holdfast.acquire("a", { renew: "manual", waitMs: 60_000 });
    await world.clock.advance(30_000);
    stranger.release(held);
    const lock = await world.within(1_000, acquiring);
    await world.clock.advance(10);
    assert.ok(lock.remainingMs() > 1_700, "a whole lease from the grant on");
    assert.equal(world.cluster.expired.length, 0);
  });

  test("renew() rejects when the lease ends first, and when the lock is released meanwhile", async () => {
    const world = new World();
    const holdfast = await world.connect({ ttlMs });
    const [first, second] = await world.within(
      1_000,
      Promise.all([holdfast.acquire("a", { renew: "manual" }), holdfast.acquire("b", { renew: "manual" })]),
    );
    world.cluster.dropAnswer = (message) => message.kind === "acknowledged";
    const renewing = outcomeOf(first.renew());
    const disturbed = outcomeOf(second.renew());
    await world.within(1_000, second.release());
    await world.clock.advance(10);
    assert.equal((disturbed.error as { code: string }).code, "already_released");
    await world.clock.advance(10_000);
    assert.equal((renewing.error as { reason: string }).reason, "expired");
    assert.equal(world.clock.isKept, false);
  });

  test("renew() is tried again at a new leader", async () => {
    const world = new World();
    const holdfast = await world.connect({ ttlMs });
    const lock = await world.within(1_000, holdfast.acquire("a", { renew: "manual" }));
    await world.clock.advance(5_000);
    world.cluster.kill("n1");
    const renewing = lock.renew();
    await world.clock.advance(300);
    world.cluster.elect("n3");
    await world.within(1_000, renewing);
    assert.ok(lock.remainingMs() > 9_000);
  });
});
