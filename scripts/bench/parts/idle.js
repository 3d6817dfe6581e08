/** What a service costs that nobody asks anything: the CPU time of its busiest node. */
import { setTimeout as sleep } from "node:timers/promises";
import { cpuSeconds } from "../proc.js";
import { Figures } from "../results.js";
import { freshFolder, withPeers } from "./part.js";

/** What a start leaves behind (compiling, collecting, tidying on disk) is not idling. */
const calmMs = 20_000;
/** CPU time is counted in hundredths of a second: less than this and they would show. */
const measureMsMin = 10_000;

/** @type {Readonly<Record<string, import("../results.js").Column>>} */
const columns = {
  busiest: { title: "busiest node, % of a core", better: "less", digits: 2 },
  all: { title: "all nodes, % of a core", better: "less", digits: 2 },
};

/** @type {import("./part.js").Part} */
export async function idle(context) {
  const { options, kinds, say } = context;
  const figures = new Figures("nobody asks anything", columns);
  const measureMs = Math.max(measureMsMin, options.seconds * 1_000);
  for (const kind of kinds) {
    const peer = kind.make(freshFolder(context, kind.id));
    await withPeers([peer], context, async () => {
      say(`${kind.id}: until it is calm`);
      await sleep(calmMs);
      for (let round = 1; round <= options.rounds; round += 1) {
        const before = peer.pids().map((pid) => cpuSeconds([pid]));
        const startMs = performance.now();
        await sleep(measureMs);
        const seconds = (performance.now() - startMs) / 1_000;
        const shares = peer.pids().map((pid, at) => (100 * (cpuSeconds([pid]) - before[at])) / seconds);
        figures.add({ id: kind.id, title: peer.contenders[0].title }, round, {
          busiest: Math.max(...shares),
          all: shares.reduce((sum, share) => sum + share, 0),
        });
      }
    });
  }
  return figures.result();
}
