import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Clock } from "../src/ports.js";
import { SharedTimer } from "../src/shared-timer.js";
import { VirtualClock } from "./world/virtual-clock.js";
import { World } from "./world/world.js";

/** Counts the timers of the clock beneath. */
function counted(): { clock: VirtualClock; timer: SharedTimer; armed: () => number } {
  const clock = new VirtualClock();
  let armed = 0;
  const counting: Pick<Clock, "monotonicMs" | "setTimer"> = {
    monotonicMs: () => clock.monotonicMs(),
    setTimer: (delayMs, run) => {
      armed += 1;
      return clock.setTimer(delayMs, run);
    },
  };
  return { clock, timer: new SharedTimer(counting as Clock, { fraction: () => 0.5 }), armed: () => armed };
}

describe("a shared timer", () => {
  test("does one task at its time, not before", async () => {
    const { clock, timer } = counted();
    const done: number[] = [];
    timer.set(1_000, 500, () => done.push(clock.monotonicMs()));
    const begin = clock.monotonicMs();
    await clock.advance(5_000);
    assert.deepEqual(done, [begin + 1_000]);
  });

  test("does with it what may be early, and the rest at its time", async () => {
    const { clock, timer } = counted();
    const begin = clock.monotonicMs();
    const done: string[] = [];
    const set = (delayMs: number, earlyMs: number): void => {
      timer.set(delayMs, earlyMs, () => done.push(`${delayMs} at ${clock.monotonicMs() - begin}`));
    };
    set(2_000, 0);
    set(1_200, 200);
    set(1_000, 100);
    set(1_300, 299);
    await clock.advance(10_000);
    assert.deepEqual(done, ["1200 at 1000", "1000 at 1000", "1300 at 1300", "2000 at 2000"]);
  });

  test("does nothing that is cancelled, not even by what it does at that moment, and rests then", async () => {
    const { clock, timer, armed } = counted();
    const done: string[] = [];
    const late = timer.set(50, 0, () => done.push("cancelled before"));
    timer.set(100, 0, () => {
      done.push("first");
      second.cancel();
    });
    const second = timer.set(100, 0, () => done.push("cancelled meanwhile"));
    late.cancel();
    await clock.advance(1_000);
    assert.deepEqual(done, ["first"]);
    const before = armed();
    await clock.advance(10_000);
    assert.equal(armed(), before);
  });

  test("arms itself seldom, however many tasks there are", async () => {
    const { clock, timer, armed } = counted();
    let ends = 0;
    const again = (delayMs: number): void => {
      ends += 1;
      timer.set(delayMs, 100, () => again(delayMs));
    };
    for (let at = 0; at < 100; at += 1) again(1_000 + at);
    await clock.advance(10_000);
    assert.ok(ends >= 900, `${ends}`);
    assert.ok(armed() < 20, `${armed()}`);
  });

  test("goes on after a task that throws", async () => {
    const { clock, timer } = counted();
    const done: string[] = [];
    timer.set(100, 0, () => {
      throw new Error("of a listener");
    });
    timer.set(100, 0, () => done.push("second"));
    await assert.rejects(clock.advance(1_000), /of a listener/);
    await clock.advance(1_000);
    assert.deepEqual(done, ["second"]);
  });
});

test("keepalives of a client's sessions share frames", async () => {
  const world = new World();
  const holdfast = await world.connect();
  const sessions = 40;
  const locks = Array.from({ length: sessions }, (_, at) => holdfast.acquire(`lock-${at}`, { ttlMs: 10_000 + at }));
  await world.within(5_000, Promise.all(locks));
  const from = world.cluster.received.length;
  await world.clock.advance(60_000);
  const sent = world.cluster.received.slice(from).filter(({ message }) => message.kind === "keepalive");
  // One every third of a TTL, up to a fifth early (by chance, and along with another), and none of them late.
  assert.ok(sent.length >= sessions * 17 && sent.length <= sessions * 23, `${sent.length}`);
  const moments = new Set(sent.map(({ atMs }) => atMs)).size;
  assert.ok(moments < sent.length / 10, `${moments} moments for ${sent.length} keepalives`);
});
