/** What many held locks cost: cycles beside them, memory, the longest turn of a node while they grow and while others come and go, restart. */
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
/** Long: it is not the keepalives that are measured. */
const ttlMs = 60_000;

/** @type {Readonly<Record<string, import("../results.js").Column>>} */
const columns = {
  cycles: { title: `cycles/s at ${clients}`, better: "more", digits: 0 },
  bytesPerLock: { title: "heap bytes/lock", better: "less", digits: 0 },
  longestOwnMs: { title: "longest turn without GC, ms", better: "less", digits: 0 },
  longestMs: { title: "longest turn, ms", better: "less", digits: 0 },
  restartSeconds: { title: "restart, s", better: "less", digits: 1 },
};

/** @type {import("./part.js").Part} */
export async function flat(context) {
  const peer = new HoldfastPeer(freshFolder(context, "holdfast"), { isProbed: true });
  const figures = new Figures("many locks held", columns);
  await withPeers([peer], context, async () => {
    const empty = await holding(peer, few, context);
    figures.add(rowOf(few), 1, empty.figures);
    const count = Math.max(2 * few, scaled(context, many));
    const full = await holding(peer, count, context);
    const bytesPerLock = (full.heapBytes - empty.heapBytes) / (count - few);
    figures.add(rowOf(count), 1, { ...full.figures, bytesPerLock });
  });
  return figures.result();
}

/** @param {number} count */
function rowOf(count) {
  return { id: `locks${count}`, title: `${count} locks held` };
}

/**
 * @param {HoldfastPeer} peer
 * @param {number} count
 * @param {import("./part.js").Context} context
 */
async function holding(peer, count, context) {
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
    say(`cycles beside ${count} locks`);
    const { cyclesPerSecond } = await closedLoop(peer.contenders[0], {
      clients,
      nameOf: (client) => `beside-${count}-${client}`,
      warmupMs: warmupMsFor(options),
      measureMs: options.seconds * 1_000,
      pids: () => peer.pids(),
    });
    const turns = await Promise.all(peer.processes().map((each) => each.ask({ kind: "report" })));
    const { heapBytes } = await (await peer.leader()).ask({ kind: "heap" });
    say(`restarting with ${count} locks`);
    const restartSeconds = await restart(peer);
    const longestMs = Math.max(...turns.map((each) => each.longestMs));
    const longestOwnMs = Math.max(...turns.map((each) => each.longestOwnMs));
    return { heapBytes, figures: { cycles: cyclesPerSecond, longestOwnMs, longestMs, restartSeconds } };
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
