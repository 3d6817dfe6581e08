import assert from "node:assert/strict";
import { test } from "node:test";
import { SimulatedProcess } from "../src/process.js";
import { betweenMagnitudes, Random, streamOf } from "../src/random.js";
import { Scheduler } from "../src/scheduler.js";
import { TraceHash } from "../src/trace-hash.js";

function world(seed = 1): { scheduler: Scheduler; create: (rate?: number) => SimulatedProcess; events: string[] } {
  const scheduler = new Scheduler(new Random(seed), new TraceHash());
  const random = new Random(seed + 1);
  const events: string[] = [];
  const parts = { scheduler, random, onEvent: (process: SimulatedProcess) => events.push(process.id) };
  return { scheduler, events, create: (rate = 1) => new SimulatedProcess({ id: "p", rate }, parts) };
}

test("events run in the order of their times, what they settle before the next one", async () => {
  const { scheduler } = world();
  const seen: string[] = [];
  let open: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => (open = resolve));
  void gate.then(async () => {
    for (let depth = 0; depth < 50; depth += 1) await Promise.resolve();
    seen.push(`settled at ${scheduler.nowMs}`);
  });
  scheduler.at(2, "b", () => seen.push("b"));
  scheduler.at(1, "a", () => open());
  await scheduler.run(10);
  assert.deepEqual(seen, ["settled at 1", "b"]);
  assert.equal(scheduler.nowMs, 10);
});

test("at one moment chance decides, and immediates come last, in their order", async () => {
  const orders = new Set<string>();
  for (let seed = 1; seed <= 20; seed += 1) {
    const { scheduler } = world(seed);
    const seen: string[] = [];
    for (const name of ["x", "y"]) scheduler.at(5, name, () => seen.push(name), 1);
    for (const name of ["a", "b"]) scheduler.at(5, name, () => seen.push(name));
    await scheduler.run(5);
    assert.deepEqual(seen.slice(2), ["x", "y"]);
    orders.add(seen.join());
  }
  assert.deepEqual(orders, new Set(["a,b,x,y", "b,a,x,y"]));
});

test("what an event throws ends the run", async () => {
  const { scheduler } = world();
  scheduler.at(1, "bad", () => {
    throw new Error("broken");
  });
  await assert.rejects(scheduler.run(10), /broken/);
});

test("a fast clock's timers come early in true time, and never before they are due by it", async () => {
  const { scheduler, create } = world();
  const process = create(2);
  const startMs = process.monotonicMs();
  let firedMs = 0;
  let localMs = 0;
  process.setTimer(100, () => {
    firedMs = scheduler.nowMs;
    localMs = process.monotonicMs() - startMs;
  });
  await scheduler.run(1_000);
  assert.ok(firedMs >= 50 && firedMs <= 51.5, String(firedMs));
  assert.ok(localMs >= 100, String(localMs));
});

test("a rate that changes moves the timers under way", async () => {
  const { scheduler, create } = world();
  const process = create(1);
  let firedMs = 0;
  process.setTimer(100, () => (firedMs = scheduler.nowMs));
  await scheduler.run(50);
  process.setRate(0.5);
  await scheduler.run(1_000);
  assert.ok(firedMs >= 150 && firedMs <= 152, String(firedMs));
});

test("nothing of a paused process runs; at its end all comes at once, arrivals in their order", async () => {
  const { scheduler, create, events } = world();
  const process = create();
  const seen: string[] = [];
  process.setTimer(10, () => seen.push("timer"));
  process.pause(100);
  scheduler.at(20, "frame", () => process.deliver(() => seen.push("one")));
  scheduler.at(30, "frame", () => process.deliver(() => seen.push("two")));
  await scheduler.run(99);
  assert.deepEqual([seen, events], [[], []]);
  await scheduler.run(101);
  assert.deepEqual(
    seen.filter((each) => each !== "timer"),
    ["one", "two"],
  );
  assert.equal(seen.length, 3);
  assert.equal(process.thawed, 3);
});

test("a suspend is a pause that only one of the two clocks shows", async () => {
  const { scheduler, create } = world();
  const process = create();
  const [monotonicMs, awareMs] = [process.monotonicMs(), process.suspendAwareMs()];
  let firedMs = 0;
  process.setTimer(50, () => (firedMs = scheduler.nowMs));
  process.suspend(1_000);
  await scheduler.run(1_020);
  assert.equal(Math.round(process.monotonicMs() - monotonicMs), 20);
  assert.equal(Math.round(process.suspendAwareMs() - awareMs), 1_020);
  await scheduler.run(2_000);
  assert.ok(firedMs >= 1_050 && firedMs <= 1_052, String(firedMs));
});

test("a killed process does nothing more, timers and arrivals included", async () => {
  const { scheduler, create } = world();
  const process = create();
  const seen: string[] = [];
  process.setTimer(10, () => seen.push("timer"));
  process.setImmediate(() => seen.push("immediate"));
  process.defer(() => seen.push("deferred"));
  process.kill();
  process.deliver(() => seen.push("arrival"));
  await scheduler.run(100);
  assert.deepEqual(seen, []);
});

test("streams of one seed don't shift one another", () => {
  const alone = Array.from({ length: 5 }, () => 0);
  const one = streamOf(7, "one");
  const draws = alone.map(() => one.bits());
  const other = streamOf(7, "other");
  const again = streamOf(7, "one");
  assert.deepEqual(
    alone.map(() => (other.bits(), again.bits())),
    draws,
  );
  assert.notDeepEqual(
    alone.map(() => other.bits()),
    draws,
  );
});

test("magnitudes are met evenly, from the least to the most", () => {
  assert.equal(betweenMagnitudes(3, 3_000, 0), 3);
  assert.ok(Math.abs(betweenMagnitudes(3, 3_000, 1 - 1e-12) - 3_000) < 1e-6);
  assert.equal(betweenMagnitudes(1, 1_024, 0.5), 32);
  assert.equal(betweenMagnitudes(5, 5, 0.7), 5);
  const random = new Random(1);
  const draws = Array.from({ length: 3_000 }, () => random.logUniform(1, 1_000));
  for (const from of [1, 10, 100]) {
    const count = draws.filter((each) => each >= from && each < 10 * from).length;
    assert.ok(count > 850 && count < 1_150, `${count} from ${from} on`);
  }
});
