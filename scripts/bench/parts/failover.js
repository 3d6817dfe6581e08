/**
 * From the SIGKILL of the leader to the next grant. With ours a client waits in the queue, its place known to the cluster, and the holder
 * releases at the moment of the kill. For the others the easier thing is measured: the first of many attempts, made one after the other
 * without waiting for answers, to take a lock that nobody holds.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Figures } from "../results.js";
import { percentile } from "../statistics.js";
import { freshFolder, withPeers } from "./part.js";

/** Between two attempts. */
const attemptEveryMs = 20;
/** Then it counts as never. */
const grantMsMax = 60_000;
/** For a waiter to be in the queue, and for followers to be up to date, before the next leader is killed. */
const calmMs = 1_000;

/** @type {Readonly<Record<string, import("../results.js").Column>>} */
const columns = {
  p50Ms: { title: "p50 ms", better: "less", digits: 0 },
  p99Ms: { title: "p99 ms", better: "less", digits: 0 },
  longestMs: { title: "longest ms", better: "less", digits: 0 },
  trials: { title: "trials", better: null, digits: 0 },
};

/** @type {import("./part.js").Part} */
export async function failover(context) {
  const { options, say } = context;
  const figures = new Figures("SIGKILL of the leader to the next grant", columns);
  for (const kind of context.kinds) {
    const peer = kind.make(freshFolder(context, kind.id));
    if (peer.killLeader === null) continue;
    await withPeers([peer], context, async () => {
      const times = [];
      for (let trial = 1; trial <= options.trials; trial += 1) {
        say(`${kind.id}: leader ${trial} of ${options.trials}`);
        times.push(await (kind.id === "holdfast" ? untilWaiterHolds(peer, trial) : untilAnyHolds(peer, trial)));
      }
      figures.add({ id: kind.id, title: peer.contenders[0].title }, 1, {
        p50Ms: percentile(times, 0.5),
        p99Ms: percentile(times, 0.99),
        longestMs: Math.max(...times),
        trials: times.length,
      });
    });
  }
  return figures.result();
}

/**
 * @param {import("../peers/peer.js").Peer} peer
 * @param {number} trial
 */
async function untilWaiterHolds(peer, trial) {
  const [holder, waiter] = await Promise.all([1, 2].map(() => peer.contenders[0].connect({ everyNode: true })));
  const name = `failover-${trial}`;
  const release = await holder.acquire(name);
  const waiting = waiter.acquire(name);
  await sleep(calmMs);
  const { atMs, heal } = await kill(peer);
  const released = release();
  const releaseAgain = await inTime(waiting);
  const ms = performance.now() - atMs;
  await Promise.all([released, releaseAgain()]);
  await heal();
  await Promise.all([holder.close(), waiter.close()]);
  return ms;
}

/**
 * @param {import("../peers/peer.js").Peer} peer
 * @param {number} trial
 */
async function untilAnyHolds(peer, trial) {
  const connection = await peer.contenders[0].connect({ everyNode: true });
  await (await connection.acquire(`before-${trial}`))();
  await sleep(calmMs);
  const { atMs, heal } = await kill(peer);
  let isHeld = false;
  /** @type {Promise<void>} */
  const held = new Promise((resolve) => {
    const attempt = async (/** @type {number} */ number) => {
      await connection.acquire(`failover-${trial}-${number}`);
      isHeld = true;
      resolve();
    };
    const again = async () => {
      for (let number = 1; !isHeld; number += 1) {
        attempt(number).catch(() => undefined);
        await sleep(attemptEveryMs);
      }
    };
    void again();
  });
  try {
    await inTime(held);
    return performance.now() - atMs;
  } finally {
    isHeld = true;
    await heal();
    await connection.close();
  }
}

/** @param {import("../peers/peer.js").Peer} peer */
function kill(peer) {
  if (peer.killLeader === null) throw new Error(`${peer.id} has no leader`);
  return peer.killLeader();
}

/**
 * @template T
 * @param {Promise<T>} promise
 * @returns {Promise<T>}
 */
async function inTime(promise) {
  const timer = new AbortController();
  const late = sleep(grantMsMax, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`no grant within ${grantMsMax} ms of the leader's end`);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    timer.abort();
    late.catch(() => undefined);
  }
}
