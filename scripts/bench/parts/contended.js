/** One lock, and 64 clients that all want it: how many times a second it passes on. Only ways that wait in a queue take part. */
import { closedLoop } from "../load.js";
import { Figures } from "../results.js";
import { freshFolder, warmupMsFor, withPeers } from "./part.js";

/** One holds, the others wait. */
const clients = 65;

/** @type {Readonly<Record<string, import("../results.js").Column>>} */
const columns = {
  handoffs: { title: "handoffs/s", better: "more", digits: 0 },
  cpuMicros: { title: "server CPU us/handoff", better: "less", digits: 0 },
  oneClient: { title: "cycles/s of one client alone", better: "more", digits: 0 },
};

/** @type {import("./part.js").Part} */
export async function contended(context) {
  const { options, say } = context;
  const peers = context.kinds.map((kind) => kind.make(freshFolder(context, kind.id)));
  const taking = peers.filter(({ contenders }) => contenders.some(({ waits }) => waits));
  const figures = new Figures("one lock, 64 waiters", columns);
  await withPeers(taking, context, async () => {
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const peer of taking) {
        for (const contender of peer.contenders.filter(({ waits }) => waits)) {
          say(`round ${round} of ${options.rounds}: ${contender.title}`);
          const times = { warmupMs: warmupMsFor(options), measureMs: options.seconds * 1_000, pids: () => peer.pids() };
          const one = await closedLoop(contender, { ...times, clients: 1, nameOf: () => `alone-${round}` });
          const all = await closedLoop(contender, { ...times, clients, nameOf: () => `wanted-${round}` });
          figures.add(contender, round, {
            handoffs: all.cyclesPerSecond,
            cpuMicros: all.cpuMicros,
            oneClient: one.cyclesPerSecond,
          });
        }
      }
    }
  });
  return figures.result();
}
