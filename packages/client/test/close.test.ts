/** close(): everything settles, everything is released, nothing stays. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LockLostError } from "../src/errors.js";
import type { HoldfastError } from "../src/errors.js";
import { Stranger } from "./world/stranger.js";
import { outcomeOf, World } from "./world/world.js";

const closed = { code: "connection_closed", retryable: false };

describe("close", () => {
  // A 18: what a process holds is free when it ends in good order.
  test("releases everything in one command, and tells the holders", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const locks = await world.within(100, Promise.all(["a", "b", "c"].map((name) => holdfast.acquire(name))));
    const aborted = locks.map((lock) => lock.signal);
    await world.within(100, holdfast.close());
    assert.deepEqual(
      world.cluster.applied.map(({ command }) => command.kind),
      ["openSession", "acquire", "acquire", "acquire", "closeSession"],
    );
    for (const lock of locks) assert.equal(lock.lossReason, "closed");
    for (const { reason } of aborted) assert.ok(reason instanceof LockLostError && reason.reason === "closed");
    assert.equal(world.cluster.machine.lockCount, 0);
    assert.equal(await locks[0]?.release(), "already-lost");
    await world.clock.advance(5);
    assert.equal(world.timers.timerCount, 0);
    assert.equal(world.network.socketCount, 0);
  });

  // A 32: no promise is left behind.
  test("every promise settles: waiting, asked, queued, renewing, releasing, questions", async () => {
    const world = new World();
    const holdfast = await world.connect();
    new Stranger(world.cluster).acquire("held");
    const lock = await world.within(100, holdfast.acquire("a"));
    const other = await world.within(100, holdfast.acquire("b", { renew: "manual" }));
    const waiting = outcomeOf(holdfast.acquire("held"));
    await world.clock.advance(10);
    world.cluster.hasQuorum = false;
    const asked = outcomeOf(holdfast.acquire("c"));
    const tried = outcomeOf(holdfast.tryAcquire("d"));
    const coldTtl = outcomeOf(holdfast.acquire("e", { ttlMs: 3_000 }));
    const body = outcomeOf(holdfast.request("f", () => 1));
    const question = outcomeOf(holdfast.inspect("a"));
    const order = outcomeOf(holdfast.transfer());
    const renewing = outcomeOf(other.renew());
    const releasing = outcomeOf(lock.release());
    await world.clock.advance(10);
    const closing = outcomeOf(holdfast.close());
    await world.clock.advance(0);
    for (const one of [waiting, asked, tried, coldTtl, body, question, order]) {
      assert.equal((one.error as HoldfastError | undefined)?.code, "connection_closed");
    }
    await world.clock.advance(20_000);
    assert.equal(closing.isSettled, true, "bounded, though nobody answers");
    assert.equal(closing.error, undefined);
    assert.equal(releasing.value, "already-lost");
    assert.equal((renewing.error as HoldfastError).code, "lock_lost");
    assert.equal(world.timers.timerCount, 0);
    assert.equal(world.clock.isKept, false);
  });

  test("a release under way is confirmed by the close", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    const [result] = await world.within(100, Promise.all([lock.release(), holdfast.close()]));
    assert.equal(result, "released");
  });

  test("a waiting acquire is cancelled, and nobody behind it is held up", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const stranger = new Stranger(world.cluster);
    const held = stranger.acquire("a");
    const waiting = outcomeOf(holdfast.acquire("a"));
    await world.clock.advance(10);
    const next = new Stranger(world.cluster, "e".repeat(32));
    next.acquire("a");
    await world.within(100, holdfast.close());
    assert.equal((waiting.error as HoldfastError).code, "connection_closed");
    stranger.release(held);
    assert.equal(world.cluster.machine.lockView("a", 1)?.holders[0]?.session, next.session);
  });

  test("calls after it are refused; a second close awaits the first", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, Promise.all([holdfast.close(), holdfast.close()]));
    await holdfast.close();
    await assert.rejects(holdfast.acquire("a"), closed);
    await assert.rejects(holdfast.tryAcquire("a"), closed);
    await assert.rejects(
      holdfast.request("a", () => 1),
      closed,
    );
    await assert.rejects(holdfast.inspect("a"), closed);
    await assert.rejects(holdfast.list(), closed);
    await assert.rejects(holdfast.sessions(), closed);
    await assert.rejects(holdfast.status(), closed);
    await assert.rejects(holdfast.transfer(), closed);
    await assert.rejects(holdfast.forceRelease("a", 1), closed);
  });

  test("works as a disposal", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast[Symbol.asyncDispose]());
    await assert.rejects(holdfast.acquire("a"), closed);
  });

  test("goes through at a new leader when the old one dies", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast.acquire("a"));
    world.cluster.kill("n1");
    const closing = holdfast.close();
    await world.clock.advance(300);
    world.cluster.elect("n2");
    await world.within(500, closing);
    assert.equal(world.cluster.machine.sessionCount, 0);
  });

  test("a session that is just being opened is given up", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const acquiring = outcomeOf(holdfast.acquire("a"));
    await world.within(10, holdfast.close());
    assert.equal((acquiring.error as HoldfastError).code, "connection_closed");
    await world.clock.advance(10);
    assert.equal(world.timers.timerCount, 0);
  });
});

describe("drainMs", () => {
  test("running bodies may end, and no new ones begin", async () => {
    const world = new World();
    const holdfast = await world.connect();
    let end: () => void = () => undefined;
    const running = outcomeOf(
      holdfast.request("a", async (lock) => {
        await new Promise<void>((resolve) => {
          end = resolve;
        });
        return lock.state;
      }),
    );
    await world.clock.advance(100);
    const closing = outcomeOf(holdfast.close({ drainMs: 60_000 }));
    await world.clock.advance(30_000);
    assert.equal(closing.isSettled, false);
    await assert.rejects(holdfast.acquire("b"), closed);
    end();
    await world.clock.advance(10);
    assert.equal(running.value, "held");
    assert.equal(closing.isSettled, true);
  });

  test("ends at its time, with the locks lost", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    const closing = outcomeOf(holdfast.close({ drainMs: 5_000 }));
    await world.clock.advance(4_999);
    assert.equal(lock.state, "held");
    await world.clock.advance(10);
    assert.equal(lock.lossReason, "closed");
    assert.equal(closing.isSettled, true);
  });

  test("with nothing held it doesn't wait, and a lost lock holds nothing up", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    const closing = outcomeOf(holdfast.close({ drainMs: Number.POSITIVE_INFINITY }));
    await world.clock.advance(1_000);
    assert.equal(closing.isSettled, false);
    world.cluster.apply({ kind: "forceRelease", name: "a", token: lock.token, principal: "root", lockDelayMs: 0 });
    await world.clock.advance(20);
    assert.equal(closing.isSettled, true);
  });

  test("a wrong one is refused by name, and nothing is closed", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await assert.rejects(holdfast.close({ drainMs: -1 }), { code: "invalid_argument", argument: "drainMs" });
    await assert.rejects(holdfast.close({ drain: 1 } as object), { code: "invalid_argument", argument: "drain" });
    const lock = await world.within(100, holdfast.acquire("a"));
    assert.equal(lock.state, "held");
  });
});
