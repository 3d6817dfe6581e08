/**
 * Offers acquires at a given rate, whether or not those before were answered, and releases what it is granted. Counted is what it offers
 * and what comes of it after a warm-up, in which the queues have filled. `offered` tells whether it kept up with the rate.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { connect, HoldfastError } from "@holdfast/client";

const tickMs = 5;
/** What a late tick may offer at once, at most: as much as is due in so long. */
const catchUpMs = 200;
/** An acquire that isn't granted by then is given up. */
const waitMs = 5_000;
const warmupMs = waitMs;
/** More than so many that have no answer yet would fill this process's memory; nothing is offered then. */
const openMax = 200_000;

/** @typedef {{ endpoints: string[], connections: number, rate: number, seconds: number }} Order */

process.on("message", (/** @type {Order} */ order) => {
  void run(order);
});
process.send?.({ ready: 1 });

/** @param {Order} order */
async function run({ endpoints, connections, rate, seconds }) {
  const shared = await Promise.all(Array.from({ length: connections }, () => connect({ endpoints })));
  const counts = noCounts();
  let open = 0;
  let number = 0;
  let lastMs = performance.now();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    const due = (rate * Math.min(nowMs - lastMs, catchUpMs)) / 1_000;
    lastMs = nowMs;
    for (const end = number + due; number < end && open < openMax; number += 1) {
      open += 1;
      counts.offered += 1;
      void oneCycle(shared[number % connections], `flood-${process.pid}-${number}`, counts).finally(() => {
        open -= 1;
      });
    }
  }, tickMs);
  await sleep(warmupMs);
  Object.assign(counts, noCounts());
  process.send?.({ warm: 1 });
  const startMs = performance.now();
  await sleep(seconds * 1_000);
  clearInterval(timer);
  process.send?.({ ...counts, seconds: (performance.now() - startMs) / 1_000 });
}

/** `lost`: granted, and gone before it was released. */
function noCounts() {
  return { offered: 0, done: 0, overloaded: 0, timedOut: 0, failed: 0, lost: 0 };
}

/**
 * @param {import("@holdfast/client").Holdfast} holdfast
 * @param {string} name
 * @param {ReturnType<typeof noCounts>} counts
 */
async function oneCycle(holdfast, name, counts) {
  try {
    const lock = await holdfast.acquire(name, { waitMs });
    if ((await lock.release()) === "released") counts.done += 1;
    else counts.lost += 1;
  } catch (error) {
    const code = error instanceof HoldfastError ? error.code : null;
    if (code === "overloaded") counts.overloaded += 1;
    else if (code === "wait_timeout") counts.timedOut += 1;
    else counts.failed += 1;
  }
}
