/** What 100,000 acquires that are given up, and locks that are given back beside them, leave behind: nothing (lessons A 31, A 32, A 42). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Holdfast } from "../src/holdfast.js";
import { listenerCount } from "./world/listener-count.js";
import { World } from "./world/world.js";

const cycles = 100_000;
const atOnce = 100;
/** Of the heap, over four fifths of all cycles: some 26 bytes each. A listener, a timer or an entry of a map is more. */
const growthBytesMax = 2 ** 21;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Twice: what the first collection finalizes goes with the second. */
function heapBytes(): number {
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

/** The fake cluster remembers all that it has heard, for other tests. */
function forget({ cluster, network }: World): void {
  cluster.received.length = 0;
  cluster.applied.length = 0;
  cluster.watches.forgetHistory();
  network.dialled.length = 0;
}

/** Some wait in the cluster's queue when they are given up, some are on their way, some have not been sent; a few are granted meanwhile. */
async function cycle(world: World, holdfast: Holdfast, longLived: AbortSignal, round: number): Promise<void> {
  const controller = new AbortController();
  const given: Promise<unknown>[] = [];
  const granted: Promise<unknown>[] = [];
  for (let at = 0; at < atOnce; at += 1) {
    given.push(holdfast.acquire("held", { signal: controller.signal }).catch(() => null));
    if (at % 5 > 0) continue;
    const own = holdfast.acquire(`free ${at}`, { signal: longLived });
    granted.push(own.then((lock) => lock.release()));
  }
  await world.clock.advance(round % 5);
  controller.abort();
  await world.within(1_000, Promise.all(given));
  await world.within(1_000, Promise.all(granted));
  await world.clock.advance(5);
}

test("no listener, timer, socket or entry stays, and the heap is flat", async () => {
  const world = new World();
  const holdfast = await world.connect();
  const longLived = new AbortController().signal;
  await world.within(100, holdfast.acquire("held"));
  await world.clock.advance(10);
  const timers = world.timers.timerCount;
  let bytes = 0;
  for (let round = 0; round < cycles / atOnce; round += 1) {
    await cycle(world, holdfast, longLived, round);
    forget(world);
    if (round === cycles / atOnce / 5) bytes = heapBytes();
  }
  const growth = heapBytes() - bytes;
  assert.ok(growth < growthBytesMax, `the heap has grown by ${growth} bytes`);
  assert.equal(listenerCount(longLived), 0);
  // One timer for all time limits stays armed for the last of them.
  assert.ok(world.timers.timerCount <= timers + 1, `${world.timers.timerCount} timers, ${timers} before`);
  assert.equal(world.network.socketCount, 1);
  assert.equal(world.cluster.machine.lockView("held", 16)?.waiterCount, 0);
  assert.equal(world.cluster.machine.lockCount, 1);
  await world.within(1_000, holdfast.close());
  await world.clock.advance(5);
  assert.equal(world.timers.timerCount, 0);
  assert.equal(world.network.socketCount, 0);
});
