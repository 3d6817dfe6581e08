/** What sessions cost that only live: keepalives, and the memory of their connections. */
import { setTimeout as sleep } from "node:timers/promises";
import { startHolder } from "../holders.js";
import { HoldfastPeer } from "../peers/holdfast.js";
import { cpuSeconds, residentBytes } from "../proc.js";
import { Figures } from "../results.js";
import { freshFolder, scaled, withPeers } from "./part.js";

const ttlMs = 10_000;
/** Three keepalives of every session at least. */
const measureMsMin = ttlMs;
const limits = { clientConnectionsMax: 20_000, sessionsMax: 200_000 };

/** @type {Readonly<Record<string, import("../results.js").Column>>} */
const columns = {
  cores: { title: "server CPU, cores", better: null, digits: 2 },
  bytes: { title: "leader's memory, kB/connection", better: null, digits: 1 },
  bytesPerSession: { title: "kB/session", better: null, digits: 1 },
  lost: { title: "locks lost", better: null, digits: 0 },
};

/** @type {import("./part.js").Part} */
export async function sessions(context) {
  const figures = new Figures(`sessions with a TTL of ${ttlMs / 1_000} s, a lock each`, columns);
  const mixes = [
    { connections: scaled(context, 10_000), each: 1 },
    { connections: scaled(context, 1_000), each: 100 },
  ];
  for (const { connections, each } of mixes) {
    // A cluster of its own: memory that the sessions before had is not given back.
    const peer = new HoldfastPeer(freshFolder(context, "holdfast"), { limits });
    const title = `${connections * each} sessions over ${connections} connections`;
    await withPeers([peer], context, async () => {
      context.say(title);
      figures.add({ id: `sessions${each}`, title }, 1, await living(peer, connections, each, context));
    });
  }
  return figures.result();
}

/**
 * @param {HoldfastPeer} peer
 * @param {number} connections
 * @param {number} each Sessions of a connection.
 * @param {import("./part.js").Context} context
 */
async function living(peer, connections, each, context) {
  const before = residentBytes((await peer.leader()).pid);
  const folder = freshFolder(context, "holder");
  const holder = await startHolder({ folder, endpoints: peer.endpoints, connections, sessions: each, locks: 1, ttlMs });
  try {
    // Until what the openings have left is collected and written.
    await sleep(measureMsMin);
    const cpuBefore = cpuSeconds(peer.pids());
    const startMs = performance.now();
    await sleep(Math.max(measureMsMin, context.options.seconds * 1_000));
    const cores = ((cpuSeconds(peer.pids()) - cpuBefore) * 1_000) / (performance.now() - startMs);
    const bytes = (residentBytes((await peer.leader()).pid) - before) / connections / 1_000;
    return { cores, bytes, bytesPerSession: bytes / each, lost: await holder.lost() };
  } finally {
    await holder.kill();
  }
}
