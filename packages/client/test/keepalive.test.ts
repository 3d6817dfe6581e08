/** The lease as its client believes it (docs/guarantees.md, P4 and P5), to the millisecond. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LockLostError } from "../src/errors.js";
import type { Holdfast } from "../src/holdfast.js";
import type { Lock } from "../src/lock.js";
import { World } from "./world/world.js";

const ttlMs = 10_000;
const usableMs = 9_750;

async function holder(options: { ttlMs?: number } = {}): Promise<{ world: World; holdfast: Holdfast; lock: Lock }> {
  const world = new World();
  const holdfast = await world.connect({ ttlMs, ...options });
  const lock = await world.within(1_000, holdfast.acquire("doc:42"));
  return { world, holdfast, lock };
}

/** Equal but for rounding. */
function assertClose(actualMs: number, expectedMs: number): void {
  assert.ok(Math.abs(actualMs - expectedMs) < 0.001, `${actualMs} ms, expected ${expectedMs} ms`);
}

/** When openSession was first sent: it takes a millisecond to arrive. */
function openedMs(world: World): number {
  const open = world.cluster.received.find(({ message }) => message.kind === "command");
  assert.ok(open !== undefined);
  return open.atMs - world.network.latencyMs;
}

describe("deadline", () => {
  test("counts from the first sending of openSession, less the margin of 250 ms, and a grant doesn't move it", async () => {
    const world = new World();
    const holdfast = await world.connect({ ttlMs });
    world.cluster.dropRequest = (message) => message.kind === "keepalive";
    const first = await world.within(1_000, holdfast.acquire("a"));
    const opened = openedMs(world);
    await world.clock.advance(2_000);
    const second = await world.within(1_000, holdfast.acquire("b"));
    assert.equal(second.remainingMs(), opened + usableMs - world.clock.monotonicMs());
    assert.equal(second.remainingMs(), first.remainingMs());
    await world.clock.advance(opened + usableMs - 1 - world.clock.monotonicMs());
    assert.equal(second.state, "jeopardy");
    assert.equal(second.remainingMs(), 1);
    await world.clock.advance(1);
    assert.equal(second.state, "lost");
    assert.equal(second.lossReason, "expired");
  });

  test("has a margin of 2 % where that is more", async () => {
    const { world, lock } = await holder({ ttlMs: 60_000 });
    assertClose(lock.remainingMs(), openedMs(world) + 60_000 - 1_200 - world.clock.monotonicMs());
  });

  test("counts a retried openSession from its first sending", async () => {
    const world = new World();
    const holdfast = await world.connect({ ttlMs });
    world.cluster.dropAnswer = (message) => message.kind === "sessionOpened";
    const acquiring = holdfast.acquire("a");
    await world.clock.advance(3_000);
    world.cluster.dropAnswer = () => false;
    world.cluster.cutConnections("n1");
    world.cluster.dropRequest = (message) => message.kind === "keepalive";
    const lock = await world.within(1_000, acquiring);
    assert.ok(world.commands().filter((command) => command.kind === "openSession").length >= 2);
    assert.equal(world.cluster.machine.sessionCount, 1);
    assertClose(lock.remainingMs(), openedMs(world) + usableMs - world.clock.monotonicMs());
  });

  test("counts from the sending of the keepalive that was acknowledged, not from its answer", async () => {
    const { world, lock } = await holder();
    world.cluster.roundMs = 400;
    await world.until(5_000, "a keepalive arrives", () => world.keepalives().length === 1);
    const sentMs = (world.keepalives()[0]?.atMs ?? 0) - world.network.latencyMs;
    assertClose(lock.remainingMs(), openedMs(world) + usableMs - world.clock.monotonicMs());
    await world.clock.advance(401);
    assertClose(lock.remainingMs(), sentMs + usableMs - world.clock.monotonicMs());
  });

  test("an acknowledgement covers all keepalives up to its number, and the last of them counts", async () => {
    const { world, lock } = await holder();
    world.cluster.dropAnswer = (message) => message.kind === "acknowledged";
    await world.until(8_000, "three keepalives arrive", () => world.keepalives().length === 3);
    await world.clock.advance(10);
    world.cluster.dropAnswer = () => false;
    await world.until(2_000, "a fourth", () => world.keepalives().length === 4);
    const sentMs = (world.keepalives()[3]?.atMs ?? 0) - world.network.latencyMs;
    await world.clock.advance(5);
    assert.equal(lock.state, "held");
    assertClose(lock.remainingMs(), sentMs + usableMs - world.clock.monotonicMs());
  });

  // B 14, B 29, C 1, C 33, C 86, A 26: the loss is found by the client alone, at its deadline.
  test("a holder that is cut off says lost before the cluster ends its session", async () => {
    const { world, lock } = await holder();
    world.cluster.expires = true;
    await world.until(5_000, "a keepalive", () => world.keepalives().length === 1);
    await world.clock.advance(10);
    for (const node of world.cluster.nodes) node.reach = "silent";
    let lostMs = 0;
    lock.signal.addEventListener("abort", () => {
      lostMs = world.clock.monotonicMs();
    });
    await world.until(20_000, "the cluster ends the session", () => world.cluster.expired.length > 0);
    const [expired] = world.cluster.expired;
    assert.ok(expired !== undefined && lostMs > 0 && lostMs < expired.atMs, `${lostMs} < ${expired?.atMs}`);
    assert.ok(lock.signal.reason instanceof LockLostError);
    assert.equal(lock.signal.reason.reason, "expired");
  });

  // C 68: an attempt that hangs doesn't outlast the lease.
  test("a server that accepts and never answers doesn't hold up the loss", async () => {
    const { world, lock } = await holder();
    world.cluster.hasQuorum = false;
    await world.clock.advance(20_000);
    assert.equal(lock.state, "lost");
  });

  // A 15, B 17, faults "slow ack": a loss by the clock is final.
  test("a late acknowledgement doesn't bring a lost lock back", async () => {
    const { world, lock } = await holder();
    await world.until(5_000, "a keepalive", () => world.keepalives().length === 1);
    let abortedMs = 0;
    lock.signal.addEventListener("abort", () => {
      abortedMs = world.clock.monotonicMs();
    });
    // Its answer lies in the socket while this process is stuck beyond the deadline; it is read before any timer fires.
    await world.clock.advance(world.cluster.roundMs);
    world.clock.stall(lock.remainingMs() + 1);
    const nowMs = world.clock.monotonicMs();
    await world.clock.advance(50);
    assert.equal(abortedMs, nowMs, "lost at the first message");
    assert.equal(lock.remainingMs(), 0);
    const sessions = [...world.cluster.machine.sessions()];
    assert.equal(sessions.length, 1, "the cluster still has it");
  });

  test("nothing is sent for a session that was lost by the clock: it expires with its lock-delays", async () => {
    const { world, holdfast, lock } = await holder();
    const session = 101;
    world.clock.stall(30_000);
    await world.clock.advance(10);
    assert.equal(lock.state, "lost");
    const count = world.cluster.received.length;
    assert.equal(await lock.release(), "already-lost");
    await world.clock.advance(20_000);
    await world.within(1_000, holdfast.close());
    const later = world.cluster.received.slice(count).filter(({ message }) => message.kind !== "hello");
    assert.deepEqual(later, []);
    assert.ok([...world.cluster.machine.sessions()].some(({ id }) => id === session));
  });
});

describe("schedule", () => {
  // A 34: three tries within a lease, at the least.
  test("a keepalive every third, up to 10 % early, and never late", async () => {
    const { world, lock } = await holder();
    await world.clock.advance(10 * 60_000);
    const times = [openedMs(world), ...world.keepalives().map(({ atMs }) => atMs - world.network.latencyMs)];
    const gaps = times.slice(1).map((atMs, at) => atMs - (times[at] ?? 0));
    assert.ok(gaps.length > 175, `${gaps.length} keepalives`);
    for (const gap of gaps) assert.ok(gap >= ttlMs * 0.3 && gap <= ttlMs / 3 + 1, `a gap of ${gap} ms`);
    assert.ok(Math.max(...gaps) - Math.min(...gaps) > ttlMs * 0.02, "they are spread");
    assert.deepEqual(
      world.keepalives().map(({ number }) => number),
      gaps.map((_, at) => at + 1),
    );
    assert.equal(lock.state, "held");
  });

  test("after a failure it is tried again after 50 ms, doubling to a tenth of the TTL", async () => {
    const { world } = await holder();
    world.cluster.dropAnswer = (message) => message.kind === "acknowledged";
    await world.clock.advance(openedMs(world) + usableMs - world.clock.monotonicMs());
    const times = world.keepalives().map(({ atMs }) => atMs);
    const gaps = times.slice(1).map((atMs, at) => Math.round(atMs - (times[at] ?? 0)));
    // An attempt has failed after a second without an answer.
    assert.deepEqual(gaps, [1_050, 1_100, 1_200, 1_400, 1_800].slice(0, gaps.length));
    assert.ok(gaps.length >= 4, `${gaps.length + 1} tries`);
  });

  test("a refused keepalive is tried again too", async () => {
    const { world, lock } = await holder();
    let refusals = 0;
    world.cluster.dropRequest = (message) => {
      if (message.kind !== "keepalive" || refusals === 3) return false;
      refusals += 1;
      return true;
    };
    await world.clock.advance(ttlMs);
    assert.equal(refusals, 3);
    assert.equal(lock.state, "held");
  });

  test("one goes along with an acquire when a third has passed", async () => {
    const world = new World();
    const holdfast = await world.connect({ ttlMs });
    await world.within(1_000, holdfast.acquire("a"));
    // Its own timer is held up, as in a busy process.
    world.clock.stall(ttlMs / 3 - (world.clock.monotonicMs() - openedMs(world)) + 1);
    const count = world.cluster.received.length;
    const acquiring = holdfast.acquire("b");
    await world.within(1_000, acquiring);
    const kinds = world.cluster.received.slice(count).map(({ message }) => message.kind);
    assert.deepEqual(kinds, ["command", "keepalive"]);
  });

  test("a renewal under way and a release don't disturb each other", async () => {
    // A 17, A 20, C 84: the heartbeat in flight neither revives the lock nor fails the release.
    const { world, holdfast, lock } = await holder();
    world.cluster.roundMs = 300;
    await world.until(5_000, "a keepalive", () => world.keepalives().length === 1);
    assert.equal(await world.within(2_000, lock.release()), "released");
    await world.clock.advance(1_000);
    assert.equal(lock.state, "released");
    const view = await world.within(1_000, holdfast.inspect("doc:42"));
    assert.equal(view, null);
  });
});

describe("jeopardy", () => {
  // B 38, A 28, C 40, C 41: one failed renewal, a dropped socket or a leader change is no loss.
  test("held, jeopardy after the first failed renewal, held again", async () => {
    const { world, lock } = await holder();
    world.cluster.hasQuorum = false;
    await world.until(5_000, "jeopardy", () => lock.state === "jeopardy");
    assert.equal(lock.signal.aborted, false);
    assert.ok(lock.remainingMs() > 5_000);
    world.cluster.restoreQuorum();
    await world.until(2_000, "held", () => lock.state === "held");
    await world.clock.advance(30_000);
    assert.equal(lock.state, "held");
  });

  test('stopOn "jeopardy" aborts the signal then, and the lock is still held', async () => {
    const world = new World();
    const holdfast = await world.connect({ ttlMs });
    const [careful, calm] = await world.within(
      1_000,
      Promise.all([holdfast.acquire("a", { stopOn: "jeopardy" }), holdfast.acquire("b")]),
    );
    world.cluster.hasQuorum = false;
    await world.until(5_000, "jeopardy", () => careful.state === "jeopardy");
    assert.equal(careful.signal.aborted, true);
    assert.equal((careful.signal.reason as { code: string }).code, "no_quorum");
    assert.equal(calm.signal.aborted, false);
    careful.assertHeld();
    world.cluster.restoreQuorum();
    assert.equal(await world.within(1_000, careful.release()), "released");
  });

  test("a socket that breaks and comes back in time is no jeopardy", async () => {
    const { world, lock } = await holder();
    const states = new Set<string>();
    for (let round = 0; round < 50; round += 1) {
      world.cluster.cutConnections("n1");
      await world.clock.advance(173);
      states.add(lock.state);
    }
    assert.deepEqual([...states], ["held"]);
  });

  test("a keepalive goes out at once on resuming", async () => {
    const { world, lock } = await holder();
    await world.clock.advance(1_000);
    const count = world.keepalives().length;
    world.cluster.elect("n2");
    await world.clock.advance(20);
    assert.equal(world.keepalives().length, count + 1);
    assert.ok(lock.remainingMs() > usableMs - 20);
  });
});
