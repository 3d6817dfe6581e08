/** What one handoff of a lock costs when ever more clients wait for it: the same, if the queue costs nothing. */
import { closedLoop } from "../load.js";
import { HoldfastPeer } from "../peers/holdfast.js";
import { Figures } from "../results.js";
import { freshFolder, scaled, warmupMsFor, withPeers } from "./part.js";

const sizes = [10, 100, 1_000, 10_000];
/** A session waits for at most 1,000 locks at once. */
const waitersPerConnection = 500;
/** Until so many have taken their places in the queue. */
const queueingMsPerWaiter = 0.5;

/** @type {Readonly<Record<string, import("../results.js").Column>>} */
const columns = {
  handoffs: { title: "handoffs/s", better: "more", digits: 0 },
  cpuMicros: { title: "server CPU us/handoff", better: "less", digits: 0 },
};

/** @type {import("./part.js").Part} */
export async function handoff(context) {
  const { options, say } = context;
  const peer = new HoldfastPeer(freshFolder(context, "holdfast"));
  const [contender] = peer.contenders;
  const figures = new Figures("one lock of ours, ever more waiters", columns);
  await withPeers([peer], context, async () => {
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const waiters of new Set(sizes.map((size) => scaled(context, size)))) {
        say(`round ${round} of ${options.rounds}: ${waiters} waiters`);
        const { cyclesPerSecond, cpuMicros } = await closedLoop(contender, {
          clients: waiters + 1,
          connections: Math.ceil((waiters + 1) / waitersPerConnection),
          nameOf: () => `queue-${round}-${waiters}`,
          warmupMs: warmupMsFor(options) + waiters * queueingMsPerWaiter,
          measureMs: options.seconds * 1_000,
          pids: () => peer.pids(),
        });
        const row = { id: `waiters${waiters}`, title: `${waiters} waiters` };
        figures.add(row, round, { handoffs: cyclesPerSecond, cpuMicros });
      }
    }
  });
  return figures.result();
}
