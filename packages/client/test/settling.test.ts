/**
 * Every promise settles (P9), whatever is aborted, lost or cut at whatever moment; and afterwards nothing is left behind, neither in
 * the cluster's queues nor here (lessons A 31, A 32, A 42; B 6; C 5).
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { Holdfast } from "../src/holdfast.js";
import { listenerCount } from "./world/listener-count.js";
import { World } from "./world/world.js";

/** What happens, and how long after the one before. */
interface Step {
  readonly afterMs: number;
  readonly act: Act;
  readonly name: string;
  readonly waitMs: number;
  /** When the call's signal aborts; null: never. */
  readonly abortMs: number | null;
  readonly holdMs: number;
}

type Act =
  | "acquire"
  | "tryAcquire"
  | "request"
  | "manual"
  | "inspect"
  | "elect"
  | "kill"
  | "usurp"
  | "force"
  | "leaderless"
  | "cut"
  | "silence"
  | "heal"
  | "expire"
  | "overload"
  | "stall"
  | "suspend"
  | "garble"
  | "loseAnswers";

const acts: readonly Act[] = [
  ...(["acquire", "acquire", "acquire", "acquire", "tryAcquire", "request", "request", "manual", "inspect"] as const),
  ...(["elect", "leaderless", "cut", "silence", "heal", "heal", "expire", "overload"] as const),
  ...(["kill", "usurp", "force"] as const),
  ...(["stall", "suspend", "garble", "loseAnswers"] as const),
];

const step: fc.Arbitrary<Step> = fc.record({
  afterMs: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 5, noNaN: true }), fc.nat(400)),
  act: fc.constantFrom(...acts),
  name: fc.constantFrom("a", "a", "b", "c"),
  waitMs: fc.oneof(fc.nat(20), fc.nat(3_000)),
  abortMs: fc.option(fc.oneof(fc.double({ min: 0, max: 6, noNaN: true }), fc.nat(1_500)), { freq: 1 }),
  holdMs: fc.oneof(fc.nat(3), fc.nat(900)),
});

class Run {
  readonly world: World;
  readonly holdfast: Holdfast;
  open = 0;
  settled = 0;
  private readonly signals: AbortSignal[] = [];
  private leader = 1;

  constructor(world: World, holdfast: Holdfast) {
    this.world = world;
    this.holdfast = holdfast;
  }

  /** Listeners left on the callers' signals. */
  get listeners(): number {
    return this.signals.filter((signal) => listenerCount(signal) > 0).length;
  }

  do(step: Step): void {
    const { cluster, clock } = this.world;
    switch (step.act) {
      case "acquire":
      case "manual":
      case "tryAcquire":
      case "request":
      case "inspect":
        return this.call(step);
      case "elect":
        this.leader = (this.leader % 3) + 1;
        return cluster.elect(`n${this.leader}`);
      case "kill":
        return cluster.kill(`n${this.leader}`);
      case "usurp":
        for (const { id } of cluster.machine.sessions()) cluster.usurp(id);
        return;
      case "force":
        for (const { token } of cluster.machine.lockView(step.name, 1)?.holders ?? []) {
          cluster.apply({ kind: "forceRelease", name: step.name, token, principal: "root", lockDelayMs: 0 });
        }
        return;
      case "leaderless":
        return cluster.elect(null);
      case "cut":
        for (const { id } of cluster.nodes) cluster.cutConnections(id);
        return;
      case "silence":
        cluster.node(`n${(this.leader % 3) + 1}`).reach = "silent";
        return;
      case "heal":
        return this.heal();
      case "expire":
        for (const { id } of cluster.machine.sessions()) cluster.expire(id);
        return;
      case "overload":
        cluster.refuseCommand = (command) => (command.kind === "acquire" ? { code: "overloaded" } : null);
        return;
      case "stall":
        return clock.stall(step.holdMs * 4);
      case "suspend":
        return clock.suspend(step.holdMs * 3);
      case "garble":
        for (const { id } of cluster.nodes) cluster.garble(id);
        return;
      case "loseAnswers":
        cluster.dropAnswer = (message) => message.kind === "outcome";
    }
  }

  heal(): void {
    const { cluster } = this.world;
    for (const { id } of cluster.nodes) cluster.restart(id);
    cluster.refuseCommand = () => null;
    cluster.dropAnswer = () => false;
    cluster.elect(`n${this.leader}`);
    // Answers that were lost on a live connection are lost for good there: a real one loses them only by breaking.
    for (const { id } of cluster.nodes) cluster.cutConnections(id);
  }

  private call(step: Step): void {
    const { world } = this;
    const controller = new AbortController();
    const { signal } = controller;
    this.signals.push(signal);
    if (step.abortMs !== null) world.clock.setTimer(step.abortMs, () => controller.abort(new Error("aborted")));
    this.open += 1;
    this.run(step, signal).then(
      () => this.onSettled(),
      () => this.onSettled(),
    );
  }

  private async run(step: Step, signal: AbortSignal): Promise<void> {
    const { name, waitMs, holdMs } = step;
    const pause = (): Promise<void> => new Promise((resolve) => this.world.clock.setTimer(holdMs, resolve));
    if (step.act === "inspect") await this.holdfast.inspect(name);
    else if (step.act === "request") await this.holdfast.request(name, { waitMs, signal }, pause);
    else {
      const options = step.act === "manual" ? ({ renew: "manual" } as const) : {};
      const taking =
        step.act === "tryAcquire"
          ? this.holdfast.tryAcquire(name, { signal })
          : this.holdfast.acquire([name, "d"], { ...options, waitMs, signal });
      const lock = await taking;
      if (lock === null) return;
      await pause();
      await lock.release();
    }
  }

  private onSettled(): void {
    this.open -= 1;
    this.settled += 1;
  }
}

async function play(steps: readonly Step[], seed: number): Promise<void> {
  const world = new World();
  world.cluster.expires = true;
  const holdfast = await world.connect({ ttlMs: 3_000, connectTimeoutMs: 4_000 }, seed);
  const run = new Run(world, holdfast);
  for (const each of steps) {
    run.do(each);
    await world.clock.advance(each.afterMs);
  }
  run.heal();
  await world.clock.advance(12_000);
  assert.equal(run.open, 0, "every call has settled");
  assert.equal(run.listeners, 0, "no listener is left");
  assert.equal(world.clock.isKept, false);
  // The queues have drained: whatever is still there belongs to sessions that this client gave up, and they have expired.
  assert.equal(world.cluster.machine.lockCount, 0);
  const lock = await world.within(2_000, holdfast.acquire(["a", "b", "c", "d"], { waitMs: 1_000 }));
  assert.equal(lock.state, "held");
  await world.within(5_000, holdfast.close());
  await world.clock.advance(5);
  assert.equal(world.timers.timerCount, 0, "no timer is left");
  assert.equal(world.network.socketCount, 0);
}

describe("settling", () => {
  test("random lives: everything settles, and nothing stays behind", async () => {
    const rejections: unknown[] = [];
    const note = (reason: unknown): void => void rejections.push(reason);
    process.on("unhandledRejection", note);
    try {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), fc.integer({ min: 1, max: 1e6 }), play),
        { numRuns: 150 },
      );
    } finally {
      process.off("unhandledRejection", note);
    }
    assert.deepEqual(rejections, []);
  });

  test("an abort at every tenth of a millisecond of an acquire's way", async () => {
    for (let atMs = 0; atMs <= 8; atMs += 0.1) {
      const world = new World();
      const holdfast = await world.connect();
      const controller = new AbortController();
      world.clock.setTimer(atMs, () => controller.abort());
      const acquiring = holdfast.acquire("a", { signal: controller.signal }).then(
        (lock) => lock.release(),
        () => "aborted",
      );
      await world.within(100, acquiring);
      await world.clock.advance(20);
      assert.equal(world.cluster.machine.lockCount, 0, `aborted after ${atMs} ms`);
      await world.within(100, holdfast.close());
      await world.clock.advance(5);
      assert.equal(world.timers.timerCount, 0);
    }
  });

  // A 42, nodejs 52635: one long-lived signal for a thousand locks.
  test("1,000 acquires and 1,000 aborts leave no timer and no listener", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast.acquire("held"));
    await world.clock.advance(10);
    const longLived = new AbortController().signal;
    const before = world.timers.timerCount;
    for (let round = 0; round < 1_000; round += 1) {
      const controller = new AbortController();
      const waiting = holdfast.acquire("held", { signal: controller.signal }).catch(() => null);
      const lock = await world.within(100, holdfast.acquire("free", { signal: longLived }));
      controller.abort();
      await waiting;
      await world.within(100, lock.release());
    }
    assert.equal(listenerCount(longLived), 0);
    await world.clock.advance(10);
    // One timer for all time limits stays armed for the last of them.
    assert.ok(world.timers.timerCount <= before + 1, `${world.timers.timerCount} timers, ${before} before`);
    assert.equal(world.cluster.machine.lockView("held", 16)?.waiterCount, 0);
    assert.equal(world.cluster.machine.lockCount, 1);
  });
});
