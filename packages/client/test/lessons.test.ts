/** What users of other clients have met (docs/lessons.md), where no test of a part shows it already. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Term } from "../src/election.js";
import { LockLostError } from "../src/errors.js";
import type { LockLossReason } from "../src/errors.js";
import { Stranger } from "./world/stranger.js";
import { outcomeOf, World } from "./world/world.js";

// A 1: a late extension threw in a background task, and processes ended.
test("a renewal that fails, and the loss after it, are thrown and rejected nowhere", async () => {
  const strays: unknown[] = [];
  const note = (error: unknown): void => void strays.push(error);
  process.on("unhandledRejection", note);
  process.on("uncaughtException", note);
  try {
    for (const cut of ["silent", "down"] as const) {
      const world = new World();
      const holdfast = await world.connect({ ttlMs: 3_000 });
      const locks = [
        await world.within(100, holdfast.acquire("a")),
        await world.within(100, holdfast.acquire("b", { renew: "manual" })),
        await world.within(100, holdfast.acquire("c", { stopOn: "jeopardy", maxHoldMs: 2_000 })),
      ];
      for (const node of world.cluster.nodes) {
        if (cut === "down") world.cluster.kill(node.id);
        else node.reach = "silent";
      }
      await world.clock.advance(20_000);
      for (const lock of locks) assert.equal(lock.state, "lost");
      await world.within(20_000, holdfast.close());
    }
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off("unhandledRejection", note);
    process.off("uncaughtException", note);
  }
  assert.deepEqual(strays, []);
});

// A 2: the lease was counted from the first attempt, and the time in the queue ate it.
test("however long it waited, a granted lock begins with at least two thirds of its lease", async () => {
  for (const renew of ["auto", "manual"] as const) {
    for (const waitedMs of [100, 3_100, 9_900, 60_000]) {
      const world = new World();
      const holdfast = await world.connect({ ttlMs: 6_000 });
      const stranger = new Stranger(world.cluster);
      const held = stranger.acquire("queue");
      const waiting = holdfast.acquire("queue", { waitMs: Number.POSITIVE_INFINITY, renew });
      await world.clock.advance(waitedMs);
      stranger.release(held);
      const lock = await world.within(100, waiting);
      // Manual ones are renewed at their grant; the answer is a round trip away.
      await world.clock.advance(10);
      const leftMs = lock.remainingMs();
      assert.ok(leftMs > (6_000 * 2) / 3 - 300, `${renew}, waited ${waitedMs} ms: ${leftMs} ms are left`);
    }
  }
});

// A 21: a version that is no number fences nothing, and a callback that can't tell an outage from a theft helps nobody.
test("one token stands everywhere that a lock is spoken of, and each kind of loss has its own reason", async () => {
  const world = new World();
  const holdfast = await world.connect();
  const changes = holdfast.watch("a");
  await world.within(100, changes.next());
  const lock = await world.within(100, holdfast.acquire("a"));
  const granted = await world.within(100, changes.next());
  const seen = await world.within(100, holdfast.inspect("a"));
  const listed = await world.within(100, holdfast.list());
  const tokens = [
    lock.fence().token,
    lock.grants[0]?.token,
    seen?.holders[0]?.token,
    listed[0]?.holders[0]?.token,
    granted.value?.type === "granted" ? granted.value.token : null,
  ];
  assert.deepEqual(new Set(tokens), new Set([lock.token]));

  const causes: Partial<Record<LockLossReason, (world: World, token: number) => unknown>> = {
    forced: ({ cluster, clock }, token) => {
      cluster.apply({ kind: "forceRelease", name: "a", token, principal: "root", lockDelayMs: 0 });
      return clock.advance(10);
    },
    expired: ({ cluster, clock }) => {
      for (const node of cluster.nodes) node.reach = "silent";
      return clock.advance(11_000);
    },
    max_hold: ({ clock }) => clock.advance(60_000),
    clock_jump: ({ clock }) => clock.suspend(11_000),
    loop_stall: ({ clock }) => clock.stall(11_000),
  };
  for (const [reason, cause] of Object.entries(causes)) {
    const own = new World();
    const client = await own.connect();
    const held = await own.within(100, client.acquire("a", { maxHoldMs: 60_000 }));
    await cause(own, held.token);
    assert.throws(
      () => held.assertHeld(),
      (error) => error instanceof LockLostError && error.reason === reason,
      reason,
    );
  }
});

describe("an election with three candidates", () => {
  interface Candidate {
    readonly terms: Term[];
    readonly end: () => void;
  }

  function candidate(world: World, seed: number): Promise<Candidate> {
    return world.connect({ ttlMs: 4_000 }, seed).then((holdfast) => {
      const terms: Term[] = [];
      const campaign = async (): Promise<void> => {
        for await (const term of holdfast.elect("scheduler")) {
          terms.push(term);
          await new Promise((resolve) => term.signal.addEventListener("abort", resolve, { once: true }));
        }
      };
      campaign().catch(() => undefined);
      return { terms, end: () => void holdfast.close() };
    });
  }

  // A 24: the documented recipe had two leaders after a restart, and the third in line overtook the second.
  test("has one leader at a time, in the order of the line, though the second dies and the first comes back", async () => {
    const world = new World();
    const [first, second, third] = [await candidate(world, 1), await candidate(world, 2), await candidate(world, 3)];
    const all = [first, second, third];
    const leading = (): Candidate[] => all.filter(({ terms }) => terms.at(-1)?.state === "held");
    await world.until(1_000, "the first leads", () => first.terms.length === 1);
    await world.clock.advance(100);
    assert.deepEqual(leading(), [first]);
    // The middle one goes while it waits; the leader is started anew, and stands behind the third.
    second.end();
    await world.clock.advance(100);
    first.end();
    const again = await candidate(world, 4);
    all.push(again);
    await world.until(5_000, "the third leads", () => third.terms.length === 1);
    await world.clock.advance(10_000);
    assert.deepEqual(leading(), [third]);
    assert.deepEqual([second.terms.length, again.terms.length], [0, 0]);
    third.end();
    await world.until(5_000, "the first leads again", () => again.terms.length === 1);
    const tokens = [first, third, again].map(({ terms }) => terms[0]?.token ?? 0);
    assert.deepEqual(
      tokens,
      [...tokens].sort((a, b) => a - b),
    );
    assert.equal(new Set(tokens).size, 3);
    again.end();
    await world.clock.advance(1_000);
  });
});

// A 37: a cancellation came with the next heartbeat, and that was throttled.
test("a forced release is heard a message later, not at the next renewal", async () => {
  const world = new World();
  const holdfast = await world.connect({ ttlMs: 3_600_000 });
  const lock = await world.within(100, holdfast.acquire("a"));
  await world.clock.advance(60_000);
  const keepalives = world.keepalives().length;
  const beganMs = world.clock.monotonicMs();
  world.cluster.apply({ kind: "forceRelease", name: "a", token: lock.token, principal: "root", lockDelayMs: 0 });
  await world.until(1_000, "lost", () => lock.signal.aborted);
  assert.ok(world.clock.monotonicMs() - beganMs <= 5, `${world.clock.monotonicMs() - beganMs} ms`);
  assert.equal(world.keepalives().length, keepalives);
});

// A 38: renewals were moved to a process of their own, and a stuck main loop looked alive.
test("while the loop is stuck nothing is renewed, and the cluster hands the lock on", async () => {
  const world = new World();
  world.cluster.expires = true;
  const holdfast = await world.connect({ ttlMs: 3_000 });
  const lock = await world.within(100, holdfast.acquire("a"));
  await world.clock.advance(1_500);
  const stranger = new Stranger(world.cluster);
  stranger.acquire("a");
  const sent = world.keepalives().length;
  world.clock.stall(4_000);
  const next = outcomeOf(holdfast.acquire("a", { waitMs: 100 }));
  await world.clock.advance(200);
  assert.equal(world.keepalives().length, sent);
  assert.equal(lock.state, "lost");
  assert.equal((next.error as { code?: string }).code, "wait_timeout");
  assert.equal(world.cluster.machine.lockView("a", 16)?.holders[0]?.session, stranger.session);
});
