/** The client as its users call it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LockHeldError, LockLostError } from "../src/errors.js";
import type { Lock } from "../src/lock.js";
import { Stranger } from "./world/stranger.js";
import { outcomeOf, World } from "./world/world.js";

describe("acquire", () => {
  // A 27: a lease that nobody renewed.
  test("holds over minutes, releases, and closes without a trace", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("doc:42"));
    assert.equal(lock.state, "held");
    await world.clock.advance(5 * 60_000);
    assert.equal(lock.state, "held");
    assert.equal(await world.within(100, lock.release()), "released");
    await world.within(100, holdfast.close());
    await world.clock.advance(5);
    assert.equal(world.cluster.machine.sessionCount, 0);
    assert.equal(world.network.socketCount, 0);
    assert.equal(world.timers.timerCount, 0);
    assert.equal(world.clock.isKept, false);
  });

  // C 56: one session, however many acquires a cold client is asked for at once.
  test("a hundred acquires of a cold client make one session", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const locks = await world.within(
      200,
      Promise.all(Array.from({ length: 100 }, (_, at) => holdfast.acquire(`lock-${at}`))),
    );
    assert.equal(new Set(locks.map(({ token }) => token)).size, 100);
    assert.equal(world.commands().filter(({ kind }) => kind === "openSession").length, 1);
    assert.equal(world.cluster.machine.sessionCount, 1);
  });

  test("a thousand locks at once; the next says that the session is full, and is granted when others have gone", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const acquireAll = Array.from({ length: 1_000 }, (_, at) => holdfast.acquire(`many-${at}`));
    const locks = await world.within(5_000, Promise.all(acquireAll));
    const refused = outcomeOf(holdfast.acquire("one-more", { waitMs: 1_000 }));
    await world.until(5_000, "it is refused", () => refused.isSettled);
    assert.equal((refused.error as { code?: string }).code, "overloaded");
    assert.match((refused.error as Error).message, /as many locks as one may/);
    await world.within(5_000, Promise.all(locks.slice(300, 500).map((lock) => lock.release())));
    const next = await world.within(
      5_000,
      Promise.all(Array.from({ length: 150 }, (_, at) => holdfast.acquire(`next-${at}`))),
    );
    assert.equal(next.length, 150);
    assert.equal(world.cluster.machine.lockCount, 950);
  });

  test("a session is opened at the first acquire, not before", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.clock.advance(60_000);
    assert.equal(world.cluster.machine.sessionCount, 0);
    await world.within(100, holdfast.acquire("a"));
    assert.equal(world.cluster.machine.sessionCount, 1);
  });

  test("one session for each TTL; one that isn't the client's own ends when it is idle", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const [a, b] = await world.within(
      100,
      Promise.all([
        holdfast.acquire("a", { ttlMs: 4_000 }),
        holdfast.acquire("b", { ttlMs: 4_000 }),
        holdfast.acquire("c"),
      ]),
    );
    assert.deepEqual([...world.cluster.machine.sessions()].map(({ ttlMs }) => ttlMs).sort(), [10_000, 4_000]);
    await world.clock.advance(10_000);
    await world.within(100, Promise.all([a.release(), b.release()]));
    await world.clock.advance(1_500);
    assert.deepEqual(
      [...world.cluster.machine.sessions()].map(({ ttlMs }) => ttlMs),
      [10_000],
    );
    const again = await world.within(100, holdfast.acquire("a", { ttlMs: 4_000 }));
    assert.equal(again.state, "held");
  });

  test("shared locks are held together, and an exclusive one waits for all of them", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const [one, two] = await world.within(
      100,
      Promise.all([holdfast.acquire("a", { mode: "shared" }), holdfast.acquire("a", { mode: "shared" })]),
    );
    assert.equal(one.token, two.token);
    const writer = outcomeOf(holdfast.acquire("a"));
    await world.within(100, one.release());
    await world.clock.advance(50);
    assert.equal(writer.isSettled, false);
    await world.within(100, two.release());
    await world.clock.advance(10);
    assert.ok((writer.value?.token ?? 0) > one.token);
  });

  test("its options reach the cluster", async () => {
    const world = new World();
    const holdfast = await world.connect({ info: "the client" });
    await world.within(
      100,
      Promise.all([
        holdfast.acquire("a", { lockDelayMs: 7_000, maxHoldMs: 60_000, info: "this lock" }),
        holdfast.acquire("b"),
      ]),
    );
    const asked = world.commands().find((command) => command.kind === "acquire");
    assert.ok(asked?.kind === "acquire");
    assert.deepEqual([asked.lockDelayMs, asked.maxHoldMs, asked.wait], [7_000, 60_000, true]);
    assert.equal(world.cluster.machine.lockView("a", 1)?.holders[0]?.info, "this lock");
    assert.equal(world.cluster.machine.lockView("b", 1)?.holders[0]?.info, "the client");
  });

  // A 9: what can never work is said at once, not tried until the attempts are used up.
  test("what the cluster alone finds wrong is refused by name", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const refusal = {
      code: "invalid_argument",
      argument: "ttlMs",
      problem: "must be from 5000 on this cluster",
    } as const;
    world.cluster.refuseCommand = (command) => (command.kind === "openSession" ? refusal : null);
    await assert.rejects(world.within(100, holdfast.acquire("a", { ttlMs: 2_000 })), {
      code: "invalid_argument",
      argument: "ttlMs",
    });
    assert.equal(world.clock.isKept, false);
  });

  test("the TTL that the cluster granted is the one that counts", async () => {
    const world = new World();
    const holdfast = await world.connect({ ttlMs: 10_000 });
    world.cluster.editAnswer = (message) => (message.kind === "sessionOpened" ? { ...message, ttlMs: 3_000 } : message);
    const lock = await world.within(100, holdfast.acquire("a"));
    assert.ok(lock.remainingMs() < 2_750);
    await world.clock.advance(1_001);
    assert.equal(world.keepalives().length, 1);
  });
});

describe("tryAcquire", () => {
  test("a lock, or null when it is held or delayed", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.tryAcquire("a", { lockDelayMs: 5_000 }));
    assert.equal(lock?.state, "held");
    assert.equal(await world.within(100, holdfast.tryAcquire("a")), null);
    world.cluster.expire(101);
    await world.clock.advance(10);
    assert.equal(await world.within(100, holdfast.tryAcquire("a")), null);
    assert.equal(world.clock.isKept, false);
  });

  test("of several names takes all or none", async () => {
    const world = new World();
    const holdfast = await world.connect();
    new Stranger(world.cluster).acquire("b");
    assert.equal(await world.within(100, holdfast.tryAcquire(["a", "b"])), null);
    assert.equal(world.cluster.machine.lockView("a", 1), null);
  });
});

describe("request", () => {
  test("hands the lock to the body, and releases when it has settled", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const seen: string[] = [];
    const result = await world.within(
      2_000,
      holdfast.request("a", { waitMs: 500 }, async (lock) => {
        seen.push(lock.state);
        await new Promise<void>((resolve) => world.clock.setTimer(1_000, resolve));
        seen.push(lock.state);
        return lock.token;
      }),
    );
    assert.ok(result > 0);
    assert.deepEqual(seen, ["held", "held"]);
    assert.equal(world.cluster.machine.lockView("a", 1), null, "free when it has resolved");
    assert.equal(
      await world.within(
        100,
        holdfast.request("a", () => 7),
      ),
      7,
    );
  });

  test("passes on the body's error, and releases", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const failure = new Error("body");
    const failing = outcomeOf(
      holdfast.request("a", () => {
        throw failure;
      }),
    );
    await world.clock.advance(50);
    assert.equal(failing.error, failure);
    assert.equal(world.cluster.machine.lockView("a", 1), null);
  });

  // A 45, C 69: never released before its body has settled, renewed meanwhile; a loss is told afterwards.
  test("a loss doesn't end it before its body has settled, and rejects it then", async () => {
    const world = new World();
    const holdfast = await world.connect();
    let end: () => void = () => undefined;
    let held: Lock | undefined;
    const running = outcomeOf(
      holdfast.request("a", async (lock) => {
        held = lock;
        await new Promise<void>((resolve) => {
          end = resolve;
        });
        return "done";
      }),
    );
    await world.clock.advance(60_000);
    assert.equal(held?.state, "held");
    world.cluster.expire(101);
    await world.clock.advance(100);
    assert.equal(held?.signal.aborted, true);
    assert.equal(running.isSettled, false);
    end();
    await world.clock.advance(10);
    assert.ok(running.error instanceof LockLostError);
    assert.equal(running.error.reason, "expired");
    assert.equal(running.error.cause, undefined);
  });

  test("a body that fails because of the loss is the cause", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const running = outcomeOf(
      holdfast.request("a", (lock) => {
        return new Promise((_, reject) => {
          lock.signal.addEventListener("abort", () => reject(new Error("stopped")));
        });
      }),
    );
    await world.clock.advance(100);
    world.cluster.expire(101);
    await world.clock.advance(100);
    assert.ok(running.error instanceof LockLostError);
    assert.match(String(running.error.cause), /stopped/);
  });

  test("a body that releases by itself is no loss", async () => {
    const world = new World();
    const holdfast = await world.connect();
    assert.equal(
      await world.within(
        100,
        holdfast.request("a", (lock) => lock.release()),
      ),
      "released",
    );
  });

  test("a release that nobody confirms in time is no loss: the body was done before", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const done = await world.within(
      20_000,
      holdfast.request("a", () => {
        for (const node of world.cluster.nodes) node.reach = "silent";
        return "done";
      }),
    );
    assert.equal(done, "done");
  });

  test("ifAvailable hands null when it is held", async () => {
    const world = new World();
    const holdfast = await world.connect();
    new Stranger(world.cluster).acquire("a");
    const options = { ifAvailable: true } as const;
    assert.equal(
      await world.within(
        100,
        holdfast.request("a", options, (lock) => lock === null),
      ),
      true,
    );
    assert.equal(
      await world.within(
        100,
        holdfast.request("b", options, (lock) => lock?.state ?? "none"),
      ),
      "held",
    );
  });

  test("an abort while waiting never runs the body", async () => {
    const world = new World();
    const holdfast = await world.connect();
    new Stranger(world.cluster).acquire("a");
    const controller = new AbortController();
    let ran = false;
    const waiting = outcomeOf(
      holdfast.request("a", { signal: controller.signal }, () => {
        ran = true;
      }),
    );
    await world.clock.advance(10);
    controller.abort(new Error("no more"));
    await world.clock.advance(1_000);
    assert.match(String(waiting.error), /no more/);
    assert.equal(ran, false);
  });
});

describe("errors", () => {
  // A 7: classes, a stable code, retryable, cause; nothing to parse.
  test("say who holds the lock", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const stranger = new Stranger(world.cluster);
    stranger.acquire("a");
    await assert.rejects(world.within(100, holdfast.acquire("a", { waitMs: 0 })), (error) => {
      assert.ok(error instanceof LockHeldError);
      assert.equal(error.name, "LockHeldError");
      assert.equal(error.holder?.session, stranger.session);
      assert.match(error.message, /"a" is not free; held by session \d+ \("a stranger"\) with token \d+/);
      return true;
    });
  });
});
