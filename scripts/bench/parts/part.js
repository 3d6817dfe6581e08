/**
 * What all parts have in common.
 *
 * @typedef {object} Context
 * @property {string} folder Where servers keep their data.
 * @property {readonly import("../peers/peer.js").PeerKind[]} kinds What is measured; ours first.
 * @property {import("../options.js").Options} options
 * @property {(text: string) => void} say Progress, a line.
 *
 * @typedef {(context: Context) => Promise<import("../results.js").Result>} Part
 */
import path from "node:path";

/**
 * How long to run before measuring: code gets compiled, caches get warm.
 * @param {import("../options.js").Options} options
 */
export function warmupMsFor({ seconds }) {
  return Math.min(2_000, seconds * 400);
}

/**
 * Starts the services, runs the body and stops them, however it ends.
 * @template {import("../peers/peer.js").Peer} P
 * @template T
 * @param {readonly P[]} peers
 * @param {Context} context
 * @param {() => Promise<T>} body
 * @returns {Promise<T>}
 */
export async function withPeers(peers, { say }, body) {
  try {
    for (const peer of peers) {
      say(`starting ${peer.id}`);
      await peer.start();
    }
    return await body();
  } finally {
    await Promise.all(peers.map((peer) => peer.stop()));
  }
}

let folders = 0;

/**
 * A folder that no service has used yet.
 * @param {Context} context
 * @param {string} name
 */
export function freshFolder({ folder }, name) {
  folders += 1;
  return path.join(folder, `${folders}-${name}`);
}

/**
 * A size that --scale has shrunk: a whole number from 1 on.
 * @param {Context} context
 * @param {number} size
 */
export function scaled({ options }, size) {
  return Math.max(1, Math.round(size * options.scale));
}
