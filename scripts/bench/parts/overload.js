/** Ten times the load that saturates: what is done of it, what is refused, and whether leases and heartbeats suffer. */
import { fileURLToPath } from "node:url";
import { startHolder } from "../holders.js";
import { closedLoop } from "../load.js";
import { HoldfastPeer } from "../peers/holdfast.js";
import { Started } from "../processes.js";
import { Figures } from "../results.js";
import { freshFolder, withPeers } from "./part.js";

const flood = fileURLToPath(new URL("../children/flood.js", import.meta.url));
/** More clients than it takes to saturate it, each waiting for its answers. */
const clients = 2_048;
const warmupMs = 5_000;
const times = 10;
/** Processes that offer the load: one alone couldn't. */
const floods = 2;
const connectionsPerFlood = 32;
/** Whoever floods a service does it from machines of their own: here they get what the nodes leave. */
const niceness = "10";
/** Beside the flood, by clients that keep their leases with the library; the flood lasts longer than that. */
const held = { connections: 20, sessions: 1, locks: 50, ttlMs: 2_000 };

/** @type {Readonly<Record<string, import("../results.js").Column>>} */
const columns = {
  offered: { title: "offered/s", better: null, digits: 0 },
  done: { title: "cycles/s done", better: "more", digits: 0 },
  overloaded: { title: "refused as overloaded/s", better: null, digits: 0 },
  timedOut: { title: "granted too late/s", better: null, digits: 0 },
  failed: { title: "failed otherwise/s", better: null, digits: 0 },
  lost: { title: "leases lost", better: null, digits: 0 },
  late: { title: "turns longer than a heartbeat", better: null, digits: 0 },
  terms: { title: "elections", better: null, digits: 0 },
};

/** @type {import("./part.js").Part} */
export async function overload(context) {
  const { options, say } = context;
  const peer = new HoldfastPeer(freshFolder(context, "holdfast"), { isProbed: true });
  const figures = new Figures("ten times the load that saturates", columns);
  await withPeers([peer], context, async () => {
    say("the load that saturates");
    const { cyclesPerSecond } = await closedLoop(peer.contenders[0], {
      clients,
      connections: floods * connectionsPerFlood,
      nameOf: (client) => `peak-${client}`,
      warmupMs,
      measureMs: options.seconds * 1_000,
      pids: () => peer.pids(),
    });
    figures.add({ id: "peak", title: `${clients} clients` }, 1, { offered: cyclesPerSecond, done: cyclesPerSecond });
    say(`${times} times that`);
    const row = { id: "overload", title: `${times} times that` };
    figures.add(row, 1, await flooded(peer, cyclesPerSecond * times, context));
  });
  return figures.result();
}

/**
 * @param {HoldfastPeer} peer
 * @param {number} rate Acquires a second.
 * @param {import("./part.js").Context} context
 */
async function flooded(peer, rate, context) {
  const { seconds } = context.options;
  const holder = await startHolder({ folder: freshFolder(context, "holder"), endpoints: peer.endpoints, ...held });
  const started = Array.from({ length: floods }, () => {
    const folder = freshFolder(context, "flood");
    return new Started("flood", ["nice", "-n", niceness, process.execPath, flood], { folder, hasChannel: true });
  });
  try {
    await Promise.all(started.map((each) => each.next()));
    const leader = await peer.leader();
    const before = await peer.term();
    const endpoint = await peer.leaderEndpoint();
    const order = { endpoint, connections: connectionsPerFlood, rate: rate / floods, seconds };
    await Promise.all(started.map((each) => each.ask(order)));
    await leader.ask({ kind: "reset" });
    const counts = await Promise.all(started.map((each) => each.next()));
    const { late } = await leader.ask({ kind: "report" });
    const sum = (/** @type {string} */ name) => counts.reduce((total, count) => total + count[name], 0);
    const perSecond = (/** @type {string} */ name) =>
      counts.reduce((total, count) => total + count[name] / count.seconds, 0);
    return {
      offered: perSecond("offered"),
      done: perSecond("done"),
      overloaded: perSecond("overloaded"),
      timedOut: perSecond("timedOut"),
      failed: perSecond("failed"),
      lost: sum("lost") + (await holder.lost()),
      late,
      terms: (await peer.term()) - before,
    };
  } finally {
    await Promise.all([holder, ...started].map((each) => each.kill()));
  }
}
