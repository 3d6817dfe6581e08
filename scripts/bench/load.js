/** Clients that acquire and release in a loop, each waiting for its answers: what a service does for a given number of them. */
import { setTimeout as sleep } from "node:timers/promises";
import { cpuSeconds } from "./proc.js";

/** So many clients share a connection. */
export const clientsPerConnection = 16;
/** How long loops that are asked to end may take to do so, before their connections are closed. */
const endMsMax = 500;
/** A connection whose server is gone may never close. */
const closeMsMax = 5_000;

/**
 * @typedef {object} LoopOptions
 * @property {number} clients
 * @property {number} [connections] That the clients share; one for every 16 of them unless told.
 * @property {(client: number) => string} nameOf The lock of a client.
 * @property {number} warmupMs
 * @property {number} measureMs
 * @property {() => readonly number[]} pids The servers, for their CPU time.
 *
 * @typedef {object} LoopFigures
 * @property {number} cyclesPerSecond
 * @property {readonly number[]} acquireMs Of each cycle that ended while it was measured.
 * @property {number} cpuMicros Of all servers together, for each cycle.
 */

/**
 * Rejects when a cycle fails: in a run without faults nothing may.
 * @param {import("./peers/peer.js").Contender} contender
 * @param {LoopOptions} options
 * @returns {Promise<LoopFigures>}
 */
export async function closedLoop(contender, options) {
  const { clients, connections = Math.ceil(clients / clientsPerConnection), nameOf } = options;
  const shared = await Promise.all(Array.from({ length: connections }, () => contender.connect()));
  const state = { isOver: false, isMeasured: false, /** @type {number[]} */ acquireMs: [] };
  const loops = Array.from({ length: clients }, (_, client) =>
    loop(shared[client % connections], nameOf(client), state),
  );
  const work = Promise.all(loops);
  try {
    return await Promise.race([failureOf(work), measure(state, options)]);
  } finally {
    state.isOver = true;
    await Promise.race([work.catch(() => undefined), sleep(endMsMax)]);
    await Promise.race([Promise.all(shared.map((connection) => connection.close())), sleep(closeMsMax)]);
  }
}

/**
 * @param {{ isMeasured: boolean, acquireMs: number[] }} state
 * @param {LoopOptions} options
 */
async function measure(state, { warmupMs, measureMs, pids }) {
  await sleep(warmupMs);
  const before = { atMs: performance.now(), cpu: cpuSeconds(pids()) };
  state.isMeasured = true;
  await sleep(measureMs);
  state.isMeasured = false;
  const seconds = (performance.now() - before.atMs) / 1_000;
  const cycles = state.acquireMs.length;
  return {
    cyclesPerSecond: cycles / seconds,
    acquireMs: state.acquireMs,
    cpuMicros: ((cpuSeconds(pids()) - before.cpu) * 1e6) / cycles,
  };
}

/**
 * @param {import("./peers/peer.js").Connection} connection
 * @param {string} name
 * @param {{ isOver: boolean, isMeasured: boolean, acquireMs: number[] }} state
 */
async function loop(connection, name, state) {
  try {
    while (!state.isOver) {
      const startMs = performance.now();
      const release = await connection.acquire(name);
      const grantedMs = performance.now();
      await release();
      if (state.isMeasured) state.acquireMs.push(grantedMs - startMs);
    }
  } catch (error) {
    // Who still waits when it is over is cut off.
    if (!state.isOver) throw error;
  }
}

/**
 * Rejects when `work` does; never resolves.
 * @param {Promise<unknown>} work
 * @returns {Promise<never>}
 */
function failureOf(work) {
  return new Promise((_, reject) => {
    work.catch(reject);
  });
}
