/** A process of its own that holds many locks, or many sessions: so many handles would slow down the clients that are measured. */
import { fileURLToPath } from "node:url";
import { Started } from "./processes.js";

const holder = fileURLToPath(new URL("./children/holder.js", import.meta.url));
const heapMegabytesMax = 8_192;

/**
 * @typedef {object} HolderOptions
 * @property {string} folder
 * @property {readonly string[]} endpoints
 * @property {number} connections
 * @property {number} sessions For each connection.
 * @property {number} locks For each session.
 * @property {number} ttlMs Of a connection's first session; each further one has a millisecond more: a client has one session for each TTL.
 */

/**
 * Resolves when all is held.
 * @param {HolderOptions} options
 */
export async function startHolder({ folder, ...options }) {
  const words = [process.execPath, `--max-old-space-size=${heapMegabytesMax}`, holder];
  const started = new Started("holder", words, { folder, hasChannel: true });
  try {
    await started.next();
    await started.ask({ kind: "hold", ...options });
  } catch (error) {
    await started.kill();
    throw error;
  }
  return {
    /** How many locks have been lost so far. */
    lost: async () => (await started.ask({ kind: "report" })).lost,
    /** Its locks expire. */
    kill: () => started.kill(),
  };
}
