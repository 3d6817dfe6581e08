/** What a holder can do with its lock. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LockLostError } from "../src/errors.js";
import type { Lock } from "../src/lock.js";
import { Stranger } from "./world/stranger.js";
import { isCommand, outcomeOf, World } from "./world/world.js";

describe("release", () => {
  // A 20, A 29: idempotent, whatever came before.
  test("released, then already-released, also for calls at the same time", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    const results = await world.within(100, Promise.all([lock.release(), lock.release(), lock.release()]));
    assert.deepEqual(results, ["released", "already-released", "already-released"]);
    assert.equal(await lock.release(), "already-released");
    assert.equal(lock.state, "released");
    assert.equal(world.commands().filter(({ kind }) => kind === "release").length, 1);
  });

  // A 4, A 6: a loss is no error of the release, and nothing is sent.
  test("of a lost lock is a local no-op", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    world.cluster.apply({ kind: "forceRelease", name: "a", token: lock.token, principal: "root", lockDelayMs: 0 });
    await world.clock.advance(10);
    const count = world.cluster.received.length;
    assert.equal(await lock.release(), "already-lost");
    assert.equal(await lock.release(), "already-lost");
    await world.clock.advance(10);
    assert.equal(world.cluster.received.length, count);
  });

  test("that crosses a forced release finds it lost, and the next holder keeps its lock", async () => {
    // B 17, C 79, C 85: it names the hold, not the lock.
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    const stranger = new Stranger(world.cluster);
    stranger.acquire("a");
    world.cluster.roundMs = 20;
    const releasing = lock.release();
    await world.clock.advance(5);
    world.cluster.apply({ kind: "forceRelease", name: "a", token: lock.token, principal: "root", lockDelayMs: 0 });
    assert.equal(await world.within(100, releasing), "already-lost");
    assert.equal(lock.state, "lost");
    assert.equal(lock.lossReason, "forced");
    assert.equal(world.cluster.machine.lockView("a", 16)?.holders[0]?.session, stranger.session);
  });

  test("that crosses the end of its session settles, whatever of that end is heard first", async () => {
    for (const lateMs of [0, 0.5, 1, 1.5, 2, 2.5, 3]) {
      const world = new World();
      const holdfast = await world.connect();
      const lock = await world.within(100, holdfast.acquire("a"));
      const releasing = outcomeOf(lock.release());
      await world.clock.advance(lateMs);
      world.cluster.expire(101);
      await world.clock.advance(20);
      assert.ok(releasing.isSettled, `the session ends ${lateMs} ms after the release`);
      assert.equal(lock.state, releasing.value === "released" ? "released" : "lost");
    }
  });

  // A 5: bounded by the lease, not by the acquire's patience.
  test("ends with the lease when nobody answers", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a", { waitMs: Number.POSITIVE_INFINITY }));
    for (const node of world.cluster.nodes) node.reach = "silent";
    const left = lock.remainingMs();
    const releasing = outcomeOf(lock.release());
    assert.equal(world.clock.isKept, true);
    await world.clock.advance(left - 1);
    assert.equal(releasing.isSettled, false);
    await world.clock.advance(1);
    assert.equal(releasing.value, "already-lost");
    assert.equal(world.clock.isKept, false);
  });

  test("ends within a TTL though the session is renewed all the time", async () => {
    const world = new World();
    const holdfast = await world.connect({ ttlMs: 3_000 });
    const lock = await world.within(100, holdfast.acquire("a"));
    world.cluster.dropRequest = (message) => isCommand(message, "release");
    const releasing = outcomeOf(lock.release());
    await world.clock.advance(2_700);
    assert.equal(releasing.isSettled, false);
    await world.clock.advance(300);
    assert.equal(releasing.value, "already-lost");
    assert.equal(lock.state, "lost");
    assert.equal(world.clock.isKept, false);
    // Another lock of the session is held on.
    world.cluster.dropRequest = () => false;
    const other = await world.within(100, holdfast.acquire("b"));
    assert.equal(await world.within(100, other.release()), "released");
  });

  // A 19, A 46: for a while nobody else gets it.
  test("afterMs keeps the name closed", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    assert.equal(await world.within(100, lock.release({ afterMs: 5_000 })), "released");
    assert.equal(await world.within(100, holdfast.tryAcquire("a")), null);
  });

  test("a wrong afterMs is refused by name, and the lock is still held", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    await assert.rejects(lock.release({ afterMs: -1 }), { code: "invalid_argument", argument: "afterMs" });
    await assert.rejects(lock.release({ after: 1 } as object), { code: "invalid_argument", argument: "after" });
    assert.equal(lock.state, "held");
    // A node with lower limits than this client knows says the same.
    const refusal = { code: "invalid_argument", argument: "afterMs", problem: "is too long" } as const;
    world.cluster.refuseCommand = (command) => (command.kind === "release" ? refusal : null);
    await assert.rejects(world.within(100, lock.release({ afterMs: 1 })), { code: "invalid_argument" });
    assert.equal(lock.state, "held");
    world.cluster.refuseCommand = () => null;
    assert.equal(await world.within(100, lock.release()), "released");
  });

  test("works as a disposal where the symbol exists", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    assert.equal(typeof Symbol.asyncDispose, "symbol");
    await world.within(100, lock[Symbol.asyncDispose]());
    assert.equal(lock.state, "released");
    await world.within(100, lock[Symbol.asyncDispose]());
  });
});

describe("signal", () => {
  test("aborts once, with the loss", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    let aborts = 0;
    lock.signal.addEventListener("abort", () => {
      aborts += 1;
    });
    world.cluster.expire(101);
    await world.clock.advance(10);
    assert.equal(aborts, 1);
    const { reason } = lock.signal;
    assert.ok(reason instanceof LockLostError);
    assert.deepEqual(
      [reason.code, reason.reason, reason.names, reason.retryable],
      ["lock_lost", "expired", ["a"], false],
    );
  });

  test("asked for after the loss is aborted, and after a release it is not", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const [lost, released] = await world.within(100, Promise.all([holdfast.acquire("a"), holdfast.acquire("b")]));
    await world.within(100, released.release());
    world.cluster.expire(101);
    await world.clock.advance(10);
    assert.equal(lost.signal.aborted, true);
    assert.equal(released.signal.aborted, false);
    assert.equal(lost.signal, lost.signal);
  });

  test("a listener may do anything: release, acquire, close", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const [a, b] = await world.within(100, Promise.all([holdfast.acquire("a"), holdfast.acquire("b")]));
    const seen: unknown[] = [];
    a.signal.addEventListener("abort", () => {
      seen.push(a.state, b.state, b.lossReason);
      void a.release().then((result) => seen.push(result));
      void holdfast.acquire("c").catch((error: unknown) => seen.push((error as { code: string }).code));
      void holdfast.close();
    });
    world.clock.suspend(60_000);
    assert.equal(b.state, "lost");
    await world.clock.advance(100);
    // Whatever is lost together is lost before anybody hears of it.
    assert.deepEqual(seen, ["lost", "lost", "clock_jump", "already-lost", "connection_closed"]);
  });
});

describe("maxHoldMs", () => {
  // A 12: a hung body isn't extended for ever; P5: the holder knows first.
  test("is lost before the cluster ends it, counted from before the grant", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const stranger = new Stranger(world.cluster);
    const held = stranger.acquire("a");
    const waiting = holdfast.acquire("a", { maxHoldMs: 5_000, waitMs: 60_000 });
    await world.clock.advance(20_000);
    stranger.release(held);
    const grantedMs = world.clock.monotonicMs();
    const lock = await world.within(100, waiting);
    // The last keepalive before the grant is up to a third of the TTL old, and counting from it is safe.
    await world.until(5_000, "lost", () => lock.state === "lost");
    assert.equal(lock.lossReason, "max_hold");
    const heldMs = world.clock.monotonicMs() - grantedMs;
    assert.ok(heldMs > 1_000 && heldMs < 4_750, `${heldMs} ms`);
    const other = await world.within(100, holdfast.acquire("b"));
    assert.equal(other.state, "held", "the session is not lost");
    assert.equal(await lock.release(), "already-lost");
  });

  test("counts from the acquire's own sending where that is later", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast.acquire("warm"));
    await world.clock.advance(2_000);
    const sentMs = world.clock.monotonicMs();
    const lock = await world.within(100, holdfast.acquire("a", { maxHoldMs: 5_000 }));
    assert.equal(lock.remainingMs(), sentMs + 4_750 - world.clock.monotonicMs());
    await world.clock.advance(sentMs + 4_750 - world.clock.monotonicMs() - 1);
    assert.equal(lock.state, "held");
    await world.clock.advance(1);
    assert.equal(lock.signal.aborted, true);
  });

  test("a grant made while no connection was there counts from before it, not from the resume", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const stranger = new Stranger(world.cluster);
    const held = stranger.acquire("a");
    const waiting = outcomeOf(holdfast.acquire("a", { maxHoldMs: 6_000, waitMs: 60_000 }));
    await world.clock.advance(100);
    world.cluster.acknowledgesEarly = true;
    for (const node of world.cluster.nodes) node.reach = "down";
    world.cluster.cutConnections("n1");
    await world.clock.advance(10);
    stranger.release(held);
    const grantedMs = world.clock.monotonicMs();
    await world.clock.advance(2_000);
    for (const { id } of world.cluster.nodes) world.cluster.restart(id);
    await world.until(3_000, "the grant is known", () => waiting.isSettled);
    // The keepalive sent on resuming was acknowledged before the grant was told, and is younger than it.
    assert.ok((waiting.value?.remainingMs() ?? 0) <= grantedMs + 5_750 - world.clock.monotonicMs());
    await world.until(6_000, "lost", () => waiting.value?.state === "lost");
    assert.ok(world.clock.monotonicMs() <= grantedMs + 5_750);
  });

  test("a suspend counts", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a", { maxHoldMs: 3_000 }));
    world.clock.suspend(2_900);
    assert.equal(lock.state, "lost");
    assert.equal(lock.lossReason, "max_hold");
  });

  test("a release in time ends its timer", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast.acquire("warm"));
    await world.clock.advance(100);
    const before = world.timers.timerCount;
    const lock = await world.within(100, holdfast.acquire("a", { maxHoldMs: 60_000 }));
    await world.within(100, lock.release());
    await world.clock.advance(5);
    assert.equal(world.timers.timerCount, before);
  });
});

describe("what it says", () => {
  test("one name", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("doc:42"));
    assert.equal(lock.name, "doc:42");
    assert.deepEqual(lock.names, ["doc:42"]);
    assert.deepEqual(lock.fence(), { resource: "doc:42", token: lock.token });
    assert.deepEqual(lock.fence("doc:42"), lock.fence());
    assert.equal(lock.slot, null);
    assert.throws(() => lock.fence("doc:43"), { code: "invalid_argument", argument: "name" });
  });

  // A 8, A 9: one command, sorted, without duplicates.
  test("several names: all or none, one token, fence by name", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const [ab, ba] = [outcomeOf(holdfast.acquire(["b", "a", "b"])), outcomeOf(holdfast.acquire(["a", "b"]))];
    await world.clock.advance(100);
    assert.ok(ab.value !== undefined && !ba.isSettled);
    assert.deepEqual(ab.value.names, ["a", "b"]);
    assert.deepEqual(ab.value.fence("a"), { resource: "a", token: ab.value.token });
    assert.throws(() => ab.value?.name, { argument: "name" });
    assert.throws(() => ab.value?.fence(), { argument: "name" });
    await world.within(100, ab.value.release());
    await world.clock.advance(10);
    assert.equal(ba.value?.state, "held");
  });

  test("shared locks on several names have a token each", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const first = await world.within(100, holdfast.acquire("b", { mode: "shared" }));
    const both = await world.within(100, holdfast.acquire(["a", "b"], { mode: "shared" }));
    assert.equal(both.mode, "shared");
    assert.equal(both.fence("b").token, first.token);
    assert.notEqual(both.fence("a").token, first.token);
    assert.throws(() => both.token, { code: "invalid_argument", argument: "name" });
  });

  test("assertHeld", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock: Lock = await world.within(100, holdfast.acquire("a"));
    lock.assertHeld();
    lock.assertHeld(9_000);
    assert.throws(
      () => lock.assertHeld(9_999),
      (error) => {
        assert.ok(error instanceof LockLostError && error.reason === "expired");
        assert.match(String((error.cause as Error).message), /ms of the lease are left, 9999 were asked for/);
        return true;
      },
    );
    assert.equal(lock.state, "held");
    assert.throws(() => lock.assertHeld(Number.NaN), { code: "invalid_argument", argument: "minMs" });
    await world.within(100, lock.release());
    assert.throws(() => lock.assertHeld(), { code: "already_released" });
    await assert.rejects(lock.renew(), { code: "already_released" });
    assert.equal(lock.remainingMs(), 0);
  });
});
