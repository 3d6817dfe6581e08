/** How the price of a cycle grows with clients, and with nodes: clusters of 1, 3 and 5. With locks and waiters: flat.js and handoff.js. */
import { closedLoop } from "../load.js";
import { HoldfastPeer } from "../peers/holdfast.js";
import { Figures } from "../results.js";
import { percentile } from "../statistics.js";
import { freshFolder, warmupMsFor, withPeers } from "./part.js";

const sizes = [3, 1, 5];
const levels = [1, 4, 16, 64, 256, 1_024];
/** Whose latency and CPU time are told. */
const few = 1;
const many = 256;

/** @type {Readonly<Record<string, import("../results.js").Column>>} */
const columns = {
  ...Object.fromEntries(
    levels.map((level) => [`clients${level}`, { title: `cycles/s at ${level}`, better: "more", digits: 0 }]),
  ),
  fewMs: { title: `acquire p50 ms at ${few}`, better: "less", digits: 2 },
  manyMs: { title: `at ${many}`, better: "less", digits: 2 },
  cpuMicros: { title: `server CPU us/cycle at ${many}`, better: "less", digits: 0 },
};

/** @type {import("./part.js").Part} */
export async function growth(context) {
  const { options, say } = context;
  const peers = sizes.map((nodes) => new HoldfastPeer(freshFolder(context, `holdfast-${nodes}`), { nodes }));
  const figures = new Figures("more clients, more nodes", columns);
  await withPeers(peers, context, async () => {
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const level of levels) {
        for (const [at, nodes] of sizes.entries()) {
          const row = { id: `nodes${nodes}`, title: `${nodes} ${nodes === 1 ? "node" : "nodes"}` };
          say(`round ${round} of ${options.rounds}: ${row.title}, ${level} client${level === 1 ? "" : "s"}`);
          figures.add(row, round, await measureOne(peers[at], level, options));
        }
      }
    }
  });
  return figures.result();
}

/**
 * @param {HoldfastPeer} peer
 * @param {number} level
 * @param {import("../options.js").Options} options
 */
async function measureOne(peer, level, options) {
  const { cyclesPerSecond, acquireMs, cpuMicros } = await closedLoop(peer.contenders[0], {
    clients: level,
    nameOf: (client) => `own-${level}-${client}`,
    warmupMs: warmupMsFor(options),
    measureMs: options.seconds * 1_000,
    pids: () => peer.pids(),
  });
  return {
    [`clients${level}`]: cyclesPerSecond,
    ...(level === few ? { fewMs: percentile(acquireMs, 0.5) } : {}),
    ...(level === many ? { manyMs: percentile(acquireMs, 0.5), cpuMicros } : {}),
  };
}
