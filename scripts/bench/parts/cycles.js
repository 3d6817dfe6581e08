/**
 * Acquire and release without contention: each client has a lock of its own. In each round every contender is measured at every number of
 * clients, one after the other, so that a machine that slows down slows all of them.
 */
import { measureFloor } from "../floor.js";
import { closedLoop } from "../load.js";
import { Figures } from "../results.js";
import { percentile } from "../statistics.js";
import { freshFolder, warmupMsFor, withPeers } from "./part.js";

const levels = [1, 16, 256];

/** @type {Readonly<Record<string, import("../results.js").Column>>} */
const columns = {
  ...Object.fromEntries(levels.map((level) => [`clients${level}`, column(`cycles/s at ${level}`, "more", 0)])),
  acquireP50Ms: column("acquire p50 ms at 1", "less", 2),
  acquireP99Ms: column("p99", "less", 2),
  cpuMicros: column("server CPU us/cycle at 256", "less", 0),
};

/** @type {import("./part.js").Part} */
export async function cycles(context) {
  const { options, say } = context;
  const peers = context.kinds.map((kind) => kind.make(freshFolder(context, kind.id)));
  const figures = new Figures("acquire and release, each client its own lock", columns);
  const floor = { id: "floor", title: "floor: synced batch + 2 ws round trips" };
  await withPeers(peers, context, async () => {
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const level of levels) {
        for (const [peer, contender] of contendersOf(peers)) {
          say(`round ${round} of ${options.rounds}: ${contender.title}, ${level} client${level === 1 ? "" : "s"}`);
          figures.add(contender, round, await measureOne(peer, contender, level, round, options));
        }
      }
      say(`round ${round} of ${options.rounds}: floor`);
      figures.add(floor, round, await measureFloor(freshFolder(context, "floor"), options.seconds));
    }
  });
  return figures.result();
}

/**
 * @param {import("../peers/peer.js").Peer} peer
 * @param {import("../peers/peer.js").Contender} contender
 * @param {number} level
 * @param {number} round
 * @param {import("../options.js").Options} options
 */
async function measureOne(peer, contender, level, round, options) {
  const { cyclesPerSecond, acquireMs, cpuMicros } = await closedLoop(contender, {
    clients: level,
    nameOf: (client) => `own-${round}-${level}-${client}`,
    warmupMs: warmupMsFor(options),
    measureMs: options.seconds * 1_000,
    pids: () => peer.pids(),
  });
  return {
    [`clients${level}`]: cyclesPerSecond,
    ...(level === 1 ? { acquireP50Ms: percentile(acquireMs, 0.5), acquireP99Ms: percentile(acquireMs, 0.99) } : {}),
    ...(level === 256 ? { cpuMicros } : {}),
  };
}

/** @param {readonly import("../peers/peer.js").Peer[]} peers */
function contendersOf(peers) {
  return peers.flatMap((peer) => peer.contenders.map((contender) => /** @type {const} */ ([peer, contender])));
}

/**
 * @param {string} title
 * @param {"more" | "less"} better
 * @param {number} digits
 * @returns {import("../results.js").Column}
 */
function column(title, better, digits) {
  return { title, better, digits };
}
