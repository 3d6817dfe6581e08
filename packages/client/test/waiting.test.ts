/** Waiting for a lock, and giving up: at its time, at an abort, at the end of a session. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { HoldfastError, WaitTimeoutError } from "../src/errors.js";
import { listenerCount } from "./world/listener-count.js";
import { Stranger } from "./world/stranger.js";
import { isCommand, outcomeOf, World } from "./world/world.js";

describe("waitMs", () => {
  test("ends waiting to the millisecond, and says who holds it and how many stand before", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const stranger = new Stranger(world.cluster);
    stranger.acquire("a");
    new Stranger(world.cluster, "e".repeat(32)).acquire("a");
    const waiting = outcomeOf(holdfast.acquire("a", { waitMs: 5_000 }));
    const beganMs = world.clock.monotonicMs();
    await world.clock.advance(4_999);
    assert.equal(waiting.isSettled, false);
    await world.clock.advance(1);
    assert.equal(world.clock.monotonicMs() - beganMs, 5_000);
    const { error } = waiting;
    assert.ok(error instanceof WaitTimeoutError);
    assert.equal(error.code, "wait_timeout");
    assert.equal(error.retryable, true);
    assert.equal(error.holder?.session, stranger.session);
    assert.equal(error.holder?.info, "a stranger");
    assert.equal(error.ahead, 1);
    assert.match(error.message, /held by session .* with token .*, with 1 requests before this one/);
    // B 4: no ghost in the queue afterwards.
    await world.clock.advance(10);
    assert.equal(world.cluster.machine.lockView("a", 16)?.waiterCount, 1);
  });

  test("counts the time before the session is open, and a cold start needs no more than it", async () => {
    const world = new World();
    const holdfast = await world.connect();
    new Stranger(world.cluster).acquire("a");
    world.cluster.hasQuorum = false;
    const waiting = outcomeOf(holdfast.acquire("a", { waitMs: 1_000 }));
    await world.clock.advance(900);
    world.cluster.restoreQuorum();
    await world.clock.advance(99);
    assert.equal(waiting.isSettled, false);
    await world.clock.advance(1);
    assert.equal((waiting.error as HoldfastError).code, "wait_timeout");
  });

  test("many limits of all lengths each end at their own time", async () => {
    const world = new World();
    const holdfast = await world.connect();
    new Stranger(world.cluster).acquire("a");
    const beganMs = world.clock.monotonicMs();
    const waits = Array.from({ length: 200 }, (_, at) => 50 + ((at * 7_919) % 3_000));
    const ended: number[] = [];
    const all = waits.map((waitMs) =>
      holdfast.acquire("a", { waitMs }).catch(() => {
        ended.push(world.clock.monotonicMs() - beganMs);
      }),
    );
    await world.within(4_000, Promise.all(all));
    assert.deepEqual(
      ended,
      [...waits].sort((a, b) => a - b),
    );
  });

  test("Infinity waits as long as it takes, and no timer has such a delay", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const stranger = new Stranger(world.cluster);
    const held = stranger.acquire("a");
    const waiting = holdfast.acquire("a", { waitMs: Number.POSITIVE_INFINITY });
    await world.clock.advance(3_600_000);
    stranger.release(held);
    const lock = await world.within(10, waiting);
    assert.equal(lock.state, "held");
  });

  test("0 refuses at once what is held or delayed", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const stranger = new Stranger(world.cluster);
    stranger.acquire("a", { lockDelayMs: 30_000 });
    await assert.rejects(world.within(100, holdfast.acquire("a", { waitMs: 0 })), {
      code: "lock_held",
      retryable: true,
    });
    world.cluster.expire(stranger.session);
    await assert.rejects(world.within(100, holdfast.acquire("a", { waitMs: 0 })), {
      code: "lock_delayed",
      delayMs: 30_000,
    });
    const lock = await world.within(100, holdfast.acquire("b", { waitMs: 0 }));
    assert.equal(lock.state, "held");
  });
});

describe("nobody answers", () => {
  test("no node is reached: unreachable, with what was tried", async () => {
    const world = new World();
    const holdfast = await world.connect();
    for (const { id } of world.cluster.nodes) world.cluster.kill(id);
    const waiting = holdfast.acquire("a", { waitMs: 2_000 });
    await assert.rejects(world.within(2_001, waiting), (error) => {
      assert.ok(error instanceof HoldfastError && error.code === "unreachable" && error.retryable);
      assert.match(String((error.cause as Error).message), /node1:7000: connect ECONNREFUSED/);
      return true;
    });
  });

  test("nodes are reached and none leads: no_quorum", async () => {
    const world = new World();
    const holdfast = await world.connect();
    world.cluster.elect(null);
    await assert.rejects(world.within(2_001, holdfast.acquire("a", { waitMs: 2_000 })), { code: "no_quorum" });
  });

  test("a tryAcquire ends after connectTimeoutMs", async () => {
    const world = new World();
    const holdfast = await world.connect({ connectTimeoutMs: 3_000 });
    world.cluster.hasQuorum = false;
    const trying = outcomeOf(holdfast.tryAcquire("a"));
    await world.clock.advance(2_999);
    assert.equal(trying.isSettled, false);
    await world.clock.advance(1);
    assert.equal((trying.error as HoldfastError).code, "no_quorum");
  });

  test("overloaded is retried, and thrown at the end of the wait", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast.acquire("warm"));
    world.cluster.refuseCommand = (command) => (command.kind === "acquire" ? { code: "overloaded" } : null);
    const hopeless = outcomeOf(holdfast.acquire("a", { waitMs: 2_000 }));
    const lucky = outcomeOf(holdfast.acquire("b", { waitMs: 10_000 }));
    await world.clock.advance(2_000);
    assert.equal((hopeless.error as HoldfastError).code, "overloaded");
    const tries = world.commands().filter((command) => command.kind === "acquire" && command.names[0] === "a");
    assert.ok(tries.length > 3 && tries.length < 40, `${tries.length} tries`);
    assert.equal(new Set(tries.map((command) => (command as { request: number }).request)).size, 1);
    world.cluster.refuseCommand = () => null;
    await world.clock.advance(1_100);
    assert.equal(lucky.value?.state, "held");
    // The one given up left nothing behind, although a copy of it may have reached the log.
    assert.equal(world.cluster.machine.lockView("a", 16), null);
  });

  test("overloaded is understood of a run of requests", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast.acquire("warm"));
    world.cluster.refuseCommand = (command) => (command.kind === "acquire" ? { code: "overloaded" } : null);
    world.cluster.refusesInRuns = true;
    const hopeless = outcomeOf(holdfast.acquire("a", { waitMs: 2_000 }));
    // Of which only the middle ones are asked for here.
    world.cluster.editAnswer = (message) =>
      message.kind === "refusedRun" ? { ...message, from: 1, to: message.to + 100 } : message;
    const lucky = outcomeOf(holdfast.acquire("b", { waitMs: 10_000 }));
    await world.clock.advance(2_000);
    assert.equal((hopeless.error as HoldfastError).code, "overloaded");
    world.cluster.refuseCommand = () => null;
    await world.clock.advance(1_100);
    assert.equal(lucky.value?.state, "held");
  });

  test("overloaded openings too", async () => {
    const world = new World();
    const holdfast = await world.connect();
    world.cluster.refuseCommand = (command) => (command.kind === "openSession" ? { code: "overloaded" } : null);
    await assert.rejects(world.within(2_001, holdfast.acquire("a", { waitMs: 2_000 })), { code: "overloaded" });
    world.cluster.refuseCommand = () => null;
    const lock = await world.within(1_100, holdfast.acquire("a"));
    assert.equal(lock.state, "held");
    assert.equal(world.cluster.machine.sessionCount, 1);
  });
});

describe("signal", () => {
  test("an abort rejects at once with its reason; the cancel goes on behind", async () => {
    const world = new World();
    const holdfast = await world.connect();
    new Stranger(world.cluster).acquire("a");
    const controller = new AbortController();
    const waiting = outcomeOf(holdfast.acquire("a", { signal: controller.signal }));
    await world.clock.advance(100);
    const reason = new Error("changed my mind");
    controller.abort(reason);
    await world.clock.advance(0);
    assert.equal(waiting.error, reason);
    assert.equal(world.cluster.machine.lockView("a", 16)?.waiterCount, 1);
    await world.clock.advance(10);
    assert.equal(world.cluster.machine.lockView("a", 16)?.waiterCount, 0);
  });

  test("an aborted signal rejects before anything is sent", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const reason = { any: "value" };
    const signal = AbortSignal.abort(reason);
    const tried = outcomeOf(holdfast.acquire("a", { signal }));
    await world.clock.advance(100);
    assert.equal(tried.error, reason);
    assert.deepEqual(world.commands(), []);
  });

  // A 42: a signal of the process serves all its waits, and Node warns of more than ten listeners as of a leak.
  test("any number of acquires has one listener at their signal, and each that ends leaves it to the others", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const stranger = new Stranger(world.cluster);
    const held = stranger.acquire("a");
    stranger.acquire("b");
    const controller = new AbortController();
    const { signal } = controller;
    const granted = holdfast.acquire("a", { signal });
    const waiting = Array.from({ length: 50 }, () => outcomeOf(holdfast.acquire("b", { signal })));
    await world.clock.advance(100);
    assert.equal(listenerCount(signal), 1);
    stranger.release(held);
    const lock = await world.within(100, granted);
    assert.equal(listenerCount(signal), 1);
    controller.abort(new Error("all of you"));
    await world.clock.advance(10);
    for (const { error } of waiting) assert.equal((error as Error).message, "all of you");
    assert.equal(lock.state, "held");
    assert.equal(world.cluster.machine.lockView("b", 16)?.waiterCount, 0);
    assert.equal(listenerCount(signal), 0);
  });

  // A 33: documented, and so.
  test("an abort after the grant does nothing", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const controller = new AbortController();
    const lock = await world.within(100, holdfast.acquire("a", { signal: controller.signal }));
    controller.abort();
    await world.clock.advance(1_000);
    assert.equal(lock.state, "held");
    assert.equal(lock.signal.aborted, false);
  });

  // C 67, B 6: the cancel and the grant cross, in either order.
  test("a grant that crosses the abort is released", async () => {
    for (const lateByMs of [0, 0.5, 1, 1.5, 2, 2.5, 3]) {
      const world = new World();
      const holdfast = await world.connect();
      const stranger = new Stranger(world.cluster);
      const held = stranger.acquire("a");
      const controller = new AbortController();
      const waiting = outcomeOf(holdfast.acquire("a", { signal: controller.signal }));
      await world.clock.advance(100);
      controller.abort();
      await world.clock.advance(lateByMs);
      stranger.release(held);
      await world.clock.advance(20);
      assert.equal(waiting.value, undefined);
      assert.equal(world.cluster.machine.lockView("a", 16), null, `the grant ${lateByMs} ms after the abort`);
      const next = await world.within(100, holdfast.acquire("a", { waitMs: 0 }));
      assert.equal(next.state, "held");
    }
  });

  test("a grant that comes back while the abort's cancel is under way is released once", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast.acquire("warm"));
    const controller = new AbortController();
    // The lock is free: the grant is on its way back when the caller gives up.
    const waiting = outcomeOf(holdfast.acquire("a", { signal: controller.signal }));
    await world.clock.advance(2.5);
    controller.abort();
    await world.clock.advance(20);
    assert.ok(waiting.error instanceof Error);
    assert.equal(world.cluster.machine.lockView("a", 16), null);
    const about = world.commands().filter(({ kind }) => kind === "cancel" || kind === "release");
    assert.deepEqual(about.map(({ kind }) => kind).sort(), ["cancel", "release"]);
  });

  test("an abort before the session is open leaves nothing behind", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const controller = new AbortController();
    const waiting = outcomeOf(holdfast.acquire("a", { signal: controller.signal }));
    controller.abort();
    await world.clock.advance(1_000);
    assert.ok(waiting.isSettled);
    assert.deepEqual(
      world.commands().map(({ kind }) => kind),
      ["openSession"],
    );
  });

  test("the cancel survives a leader change, and a cancel may arrive without its acquire", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast.acquire("warm"));
    const controller = new AbortController();
    world.cluster.dropRequest = (message) => isCommand(message, "acquire");
    const waiting = outcomeOf(holdfast.acquire("a", { signal: controller.signal }));
    await world.clock.advance(10);
    world.cluster.kill("n1");
    controller.abort();
    await world.clock.advance(100);
    world.cluster.dropRequest = () => false;
    world.cluster.elect("n2");
    await world.clock.advance(100);
    assert.ok(waiting.isSettled);
    // The first copy comes late, from a socket that was thought dead: it must not be granted.
    const acquire = world.commands().find((command) => command.kind === "acquire" && command.names[0] === "a");
    assert.ok(acquire !== undefined);
    world.cluster.apply(acquire);
    assert.equal(world.cluster.machine.lockView("a", 16), null);
  });
});

describe("a session that ends under waiting acquires", () => {
  // B 1, B 3, B 4, C 1, user wish B 1: the wait ends with the session, and goes on in a fresh one.
  test("they are queued again on a fresh session", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const stranger = new Stranger(world.cluster);
    const held = stranger.acquire("a");
    const waiting = holdfast.acquire("a", { waitMs: 20_000 });
    const own = await world.within(100, holdfast.acquire("b"));
    await world.clock.advance(100);
    world.cluster.expire(sessionOf(world));
    await world.clock.advance(50);
    assert.equal(own.state, "lost");
    assert.equal(own.lossReason, "expired");
    assert.equal(world.cluster.machine.lockView("a", 16)?.waiterCount, 1);
    stranger.release(held);
    const lock = await world.within(100, waiting);
    assert.equal(lock.state, "held");
    // C 2: a new session, a new token; the old handle stays lost.
    assert.ok(lock.token > own.token);
    assert.equal(own.state, "lost");
  });

  test("within what is left of their waitMs", async () => {
    const world = new World();
    const holdfast = await world.connect();
    new Stranger(world.cluster).acquire("a");
    const waiting = outcomeOf(holdfast.acquire("a", { waitMs: 5_000 }));
    await world.clock.advance(3_000);
    world.cluster.expire(sessionOf(world));
    await world.clock.advance(1_999);
    assert.equal(waiting.isSettled, false);
    await world.clock.advance(1);
    assert.ok(waiting.error instanceof WaitTimeoutError);
  });

  // A 23: "lease not found" must not loop.
  test("a cluster that ends each session at once isn't stormed", async () => {
    const world = new World();
    const holdfast = await world.connect();
    world.cluster.refuseCommand = (command) =>
      command.kind === "acquire" ? { code: "session_gone", reason: null } : null;
    const waiting = outcomeOf(holdfast.acquire("a", { waitMs: 10_000 }));
    await world.clock.advance(10_000);
    assert.ok(waiting.isSettled);
    const opened = world.commands().filter(({ kind }) => kind === "openSession").length;
    assert.ok(opened >= 5 && opened < 60, `${opened} sessions opened`);
  });

  test("the loss of the lease by the clock requeues them too", async () => {
    const world = new World();
    const holdfast = await world.connect({ ttlMs: 2_000 });
    const stranger = new Stranger(world.cluster);
    const held = stranger.acquire("a");
    world.cluster.expires = true;
    const waiting = outcomeOf(holdfast.acquire("a", { waitMs: 60_000 }));
    await world.clock.advance(1_000);
    for (const node of world.cluster.nodes) node.reach = "silent";
    await world.clock.advance(10_000);
    for (const node of world.cluster.nodes) world.cluster.restart(node.id);
    await world.clock.advance(10_000);
    assert.equal(waiting.isSettled, false);
    assert.equal(world.cluster.machine.lockView("a", 16)?.waiterCount, 1);
    stranger.release(held);
    await world.clock.advance(10);
    assert.equal(waiting.value?.state, "held");
  });
});

/** The client's session: the one that isn't a stranger's. */
function sessionOf(world: World): number {
  const own = [...world.cluster.machine.sessions()].find(({ info }) => info !== "stranger");
  assert.ok(own !== undefined);
  return own.id;
}
