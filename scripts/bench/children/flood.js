/**
 * Offers acquires at a given rate, whether or not those before were answered, and releases what it is granted. What it offers is counted,
 * and what comes of it while it offers.
 */
import { connect, HoldfastError } from "@holdfast/client";

const tickMs = 5;
/** What a late tick may offer at once, at most: as much as is due in so long. */
const catchUpMs = 200;
/** An acquire that isn't granted by then is given up. */
const waitMs = 500;
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
  const counts = { offered: 0, done: 0, overloaded: 0, failed: 0, lost: 0 };
  const startMs = performance.now();
  let open = 0;
  await new Promise((/** @type {(value?: undefined) => void} */ resolve) => {
    const timer = setInterval(() => {
      const elapsedMs = performance.now() - startMs;
      if (elapsedMs >= seconds * 1_000) {
        clearInterval(timer);
        resolve();
        return;
      }
      const due = Math.min((rate * elapsedMs) / 1_000 - counts.offered, (rate * catchUpMs) / 1_000);
      for (let number = 0; number < due && open < openMax; number += 1) {
        open += 1;
        counts.offered += 1;
        const name = `flood-${process.pid}-${counts.offered}`;
        void oneCycle(shared[counts.offered % connections], name, counts).finally(() => {
          open -= 1;
        });
      }
    }, tickMs);
  });
  process.send?.(counts);
}

/**
 * @param {import("@holdfast/client").Holdfast} holdfast
 * @param {string} name
 * @param {{ done: number, overloaded: number, failed: number, lost: number }} counts
 */
async function oneCycle(holdfast, name, counts) {
  try {
    const lock = await holdfast.acquire(name, { waitMs });
    if ((await lock.release()) === "released") counts.done += 1;
    else counts.lost += 1;
  } catch (error) {
    if (error instanceof HoldfastError && error.code === "overloaded") counts.overloaded += 1;
    else counts.failed += 1;
  }
}
