/** Where the time goes: what the event loops of a leader, a follower and the clients do at full load, by the part of the code. */
import { Session } from "node:inspector/promises";
import { closedLoop } from "../load.js";
import { HoldfastPeer } from "../peers/holdfast.js";
import { places, sharesOf } from "../profile-shares.js";
import { Figures } from "../results.js";
import { freshFolder, withPeers } from "./part.js";

const clients = 256;
/** Compiled, and compiled again with what was learnt. */
const warmupMs = 5_000;

/** @type {Readonly<Record<string, import("../results.js").Column>>} */
const columns = Object.fromEntries(
  Object.entries(places).map(([id, title]) => [id, { title: `${title}, %`, better: null, digits: 1 }]),
);

/** @type {import("./part.js").Part} */
export async function profile(context) {
  const { options, say } = context;
  const peer = new HoldfastPeer(freshFolder(context, "holdfast"), { isProbed: true });
  const figures = new Figures(`where the time goes at ${clients} clients`, columns);
  await withPeers([peer], context, async () => {
    for (let round = 1; round <= options.rounds; round += 1) {
      say(`round ${round} of ${options.rounds}: ${clients} clients, warming up`);
      const leader = await peer.leader();
      const follower = peer.processes().find((each) => each !== leader) ?? leader;
      const profiled = profileAll([leader, follower], options);
      await closedLoop(peer.contenders[0], {
        clients,
        nameOf: (client) => `own-${client}`,
        warmupMs,
        measureMs: options.seconds * 1_000,
        pids: () => peer.pids(),
      });
      const [ofLeader, ofFollower, ofClients] = await profiled;
      figures.add({ id: "leader", title: "leader" }, round, ofLeader);
      figures.add({ id: "follower", title: "follower" }, round, ofFollower);
      figures.add({ id: "clients", title: "all clients" }, round, ofClients);
    }
  });
  return figures.result();
}

/**
 * Shares of those processes, and last of this one, which is that of the clients, while they are measured.
 * @param {readonly import("../processes.js").Started[]} processes
 * @param {import("../options.js").Options} options
 */
async function profileAll(processes, { seconds }) {
  await new Promise((resolve) => setTimeout(resolve, warmupMs));
  const session = new Session();
  session.connect();
  try {
    await session.post("Profiler.enable");
    await session.post("Profiler.start");
    await Promise.all(processes.map((each) => each.ask({ kind: "profile" })));
    await new Promise((resolve) => setTimeout(resolve, seconds * 900));
    const others = await Promise.all(processes.map((each) => each.ask({ kind: "shares" })));
    const { profile: own } = await session.post("Profiler.stop");
    return [...others, sharesOf(own)];
  } finally {
    session.disconnect();
  }
}
