/** What is published for programs that watch from outside, and what is said of a lock that is held long. */
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { describe, test } from "node:test";
import type { Logger } from "../src/ports.js";
import { World } from "./world/world.js";

type Facts = Record<string, unknown>;

/** What the channels carry while `body` runs, in order. */
async function published(channels: readonly string[], body: (seen: Facts[]) => Promise<void>): Promise<void> {
  const seen: Facts[] = [];
  const note = (facts: unknown): void => void seen.push(facts as Facts);
  for (const name of channels) subscribe(`holdfast:client:${name}`, note);
  try {
    await body(seen);
  } finally {
    for (const name of channels) unsubscribe(`holdfast:client:${name}`, note);
  }
}

test("losses and session states are published, in order", () =>
  published(["session", "lock"], async (seen) => {
    const world = new World();
    const holdfast = await world.connect({ ttlMs: 4_000 });
    const lock = await world.within(100, holdfast.acquire("doc:42"));
    world.cluster.hasQuorum = false;
    await world.until(3_000, "jeopardy", () => lock.state === "jeopardy");
    world.cluster.restoreQuorum();
    await world.until(1_000, "held", () => lock.state === "held");
    for (const node of world.cluster.nodes) node.reach = "silent";
    await world.clock.advance(4_000);
    const session = { session: 101, ttlMs: 4_000, reason: null };
    const states = seen.filter(({ state }) => state !== "jeopardy");
    const [lost] = seen.filter(({ type }) => type === "lost");
    assert.deepEqual(states, [
      { ...session, session: null, state: "opening" },
      { ...session, state: "open" },
      { ...session, state: "recovered" },
      { ...session, state: "ended", reason: "expired" },
      {
        type: "lost",
        names: ["doc:42"],
        mode: "exclusive",
        token: lock.token,
        session: 101,
        heldMs: lost?.["heldMs"],
        reason: "expired",
      },
    ]);
    assert.ok(Number(lost?.["heldMs"]) > 3_000, String(lost?.["heldMs"]));
    assert.equal(seen.length - states.length, 2);
  }));

test("the end of each acquire is published with its outcome, and each release", () =>
  published(["acquire", "lock"], async (seen) => {
    const world = new World();
    const holdfast = await world.connect({ ttlMs: 4_000 });
    const lock = await world.within(100, holdfast.acquire(["b", "a"]));
    assert.equal(await world.within(100, holdfast.tryAcquire("a", { mode: "shared" })), null);
    await assert.rejects(world.within(100, holdfast.acquire("a", { waitMs: 0 })), { code: "lock_held" });
    await assert.rejects(world.within(1_000, holdfast.acquire("a", { waitMs: 500 })), { code: "wait_timeout" });
    const aborted = holdfast.acquire("a", { signal: AbortSignal.abort(new Error("never began")) });
    await assert.rejects(aborted, /never began/);
    const controller = new AbortController();
    const waiting = holdfast.acquire("a", { signal: controller.signal });
    await world.clock.advance(100);
    controller.abort(new Error("enough"));
    await assert.rejects(waiting, /enough/);
    await world.within(100, lock.release());
    assert.deepEqual(
      seen.map(({ type, outcome, names, mode, code, token }) => [type ?? outcome, names, mode, code ?? token]),
      [
        ["granted", ["a", "b"], "exclusive", lock.token],
        ["refused", ["a"], "shared", null],
        ["refused", ["a"], "exclusive", "lock_held"],
        ["timeout", ["a"], "exclusive", "wait_timeout"],
        ["aborted", ["a"], "exclusive", null],
        ["released", ["a", "b"], "exclusive", lock.token],
      ],
    );
    const [granted, , , timeout, , released] = seen;
    assert.equal(granted?.["session"], 101);
    assert.equal(released?.["session"], 101);
    assert.equal(timeout?.["durationMs"], 500);
  }));

describe("a lock that is held long (A 12)", () => {
  function loggingWorld(): { world: World; warnings: Facts[]; logger: Logger } {
    const warnings: Facts[] = [];
    const ignore = (): void => undefined;
    const warn = (facts: object, text: string): void => void warnings.push({ ...facts, text });
    return { world: new World(), warnings, logger: { debug: ignore, info: ignore, error: ignore, warn } };
  }

  test("is told of once a hold, by a line without its name and on the channel, and stays held", () =>
    published(["lock"], async (seen) => {
      const { world, warnings, logger } = loggingWorld();
      const holdfast = await world.connect({ ttlMs: 4_000, logger, heldLongMs: 10_000 });
      const lock = await world.within(100, holdfast.acquire("secret"));
      const quick = await world.within(100, holdfast.acquire("quick"));
      await world.clock.advance(9_000);
      await world.within(100, quick.release());
      assert.equal(warnings.length, 0);
      await world.clock.advance(2_000);
      assert.equal(warnings.length, 1);
      const { heldMs, ...facts } = warnings[0] ?? {};
      assert.deepEqual(facts, {
        token: lock.token,
        session: 101,
        heldLongMs: 10_000,
        text: "a lock is held long",
      });
      assert.ok(Number(heldMs) >= 10_000 && Number(heldMs) <= 11_000, String(heldMs));
      await world.clock.advance(60_000);
      assert.equal(warnings.length, 1);
      assert.equal(lock.state, "held");
      assert.deepEqual(
        seen.map(({ type, names }) => [type, names]),
        [
          ["released", ["quick"]],
          ["held_long", ["secret"]],
        ],
      );
      assert.equal(await world.within(100, lock.release()), "released");
    }));

  test("each acquire can say another time; manual locks are looked at too, elections only if they say so", async () => {
    const { world, warnings, logger } = loggingWorld();
    const holdfast = await world.connect({ ttlMs: 4_000, logger, heldLongMs: 5_000 });
    await world.within(100, holdfast.acquire("never", { heldLongMs: 0 }));
    const manual = await world.within(100, holdfast.acquire("manual", { renew: "manual", heldLongMs: 2_000 }));
    await world.within(100, holdfast.elect("leader").next());
    const told = await world.within(100, holdfast.elect("told", { heldLongMs: 3_500 }).next());
    for (let turn = 0; turn < 20; turn += 1) {
      await world.clock.advance(1_000);
      await world.within(100, manual.renew());
    }
    assert.deepEqual(
      warnings.map(({ token }) => token),
      [manual.token, told.value.token],
    );
  });
});
