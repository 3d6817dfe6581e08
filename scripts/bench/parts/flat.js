/** What many held locks cost: cycles beside them, memory, the longest turn of a node while they grow and while others come and go, restart. */
import { setTimeout as sleep } from "node:timers/promises";
import { closedLoop } from "../load.js";
import { startHolder } from "../holders.js";
import { HoldfastPeer } from "../peers/holdfast.js";
import { Figures } from "../results.js";
import { freshFolder, scaled, warmupMsFor, withPeers } from "./part.js";

const few = 1_000;
const many = 1_000_000;
/** A session holds no more. */
const locksPerConnection = 1_000;
const clients = 256;
/** Until what the cycles have left is applied everywhere, and a snapshot that was being written is done. */
const settleMs = 5_000;
/** Long: it is not the keepalives that are measured. */
const ttlMs = 60_000;

/** @type {Readonly<Record<string, import("../results.js").Column>>} */
const columns = {
  cycles: { title: `cycles/s at ${clients}`, better: "more", digits: 0 },
  bytesPerLock: { title: "heap bytes/lock", better: "less", digits: 0 },
  longestOwnMs: { title: "longest turn's own work, ms", better: "less", digits: 0 },
  longestRunMs: { title: "with GC", better: "less", digits: 0 },
  longestMs: { title: "with waiting for a core", better: "less", digits: 0 },
  restartSeconds: { title: "restart, s", better: "less", digits: 1 },
};

/** @type {import("./part.js").Part} */
export async function flat(context) {
  const peer = new HoldfastPeer(freshFolder(context, "holdfast"), { isProbed: true });
  const figures = new Figures("many locks held", columns);
  await withPeers([peer], context, async () => {
    context.say("warming up");
    await cyclesBeside(peer, context);
    const count = Math.max(2 * few, scaled(context, many));
    const empty = await holding(peer, few, context, figures);
    const full = await holding(peer, count, context, figures);
    context.say(`restarting with ${count} locks`);
    figures.add(rowOf(count), 1, {
      bytesPerLock: (full.heapBytes - empty.heapBytes) / (count - few),
      restartSeconds: await restart(peer),
    });
  });
  return figures.result();
}

/** @param {number} count */
function rowOf(count) {
  return { id: `locks${count}`, title: `${count} locks held` };
}

/**
 * @param {HoldfastPeer} peer
 * @param {import("./part.js").Context} context
 */
async function cyclesBeside(peer, { options }) {
  const { cyclesPerSecond } = await closedLoop(peer.contenders[0], {
    clients,
    nameOf: (client) => `beside-${client}`,
    warmupMs: warmupMsFor(options),
    measureMs: options.seconds * 1_000,
    pids: () => peer.pids(),
  });
  return cyclesPerSecond;
}

/**
 * What the leader's heap holds while so many locks are held. Their holder is killed then; they stay for a TTL.
 * @param {HoldfastPeer} peer
 * @param {number} count
 * @param {import("./part.js").Context} context
 * @param {Figures} figures
 */
async function holding(peer, count, context, figures) {
  const { options, say } = context;
  say(`taking ${count} locks`);
  await Promise.all(peer.processes().map((each) => each.ask({ kind: "reset" })));
  const holder = await startHolder({
    folder: freshFolder(context, "holder"),
    endpoints: peer.endpoints,
    connections: Math.ceil(count / locksPerConnection),
    sessions: 1,
    locks: Math.min(count, locksPerConnection),
    ttlMs,
  });
  try {
    for (let round = 1; round <= options.rounds; round += 1) {
      say(`round ${round} of ${options.rounds}: cycles beside ${count} locks`);
      figures.add(rowOf(count), round, { cycles: await cyclesBeside(peer, context) });
    }
    const turns = await Promise.all(peer.processes().map((each) => each.ask({ kind: "report" })));
    figures.add(rowOf(count), 1, {
      longestOwnMs: Math.max(...turns.map((each) => each.longestOwnMs)),
      longestRunMs: Math.max(...turns.map((each) => each.longestRunMs)),
      longestMs: Math.max(...turns.map((each) => each.longestMs)),
    });
    await sleep(settleMs);
    const { heapBytes } = await (await peer.leader()).ask({ kind: "heap" });
    return { heapBytes };
  } finally {
    await holder.kill();
  }
}

/**
 * All nodes are killed; from their start until all serve.
 * @param {HoldfastPeer} peer
 */
async function restart(peer) {
  await peer.killAll();
  const startMs = performance.now();
  await peer.restart();
  return (performance.now() - startMs) / 1_000;
}
