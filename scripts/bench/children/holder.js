/** Holds locks, as many as it is told, until it is killed; counts those that it lost. */
import { connect } from "@holdfast/client";

/** Connections that are being made at once. */
const atOnce = 20;
const connectTimeoutMs = 60_000;
const waitMs = 600_000;

/** @typedef {import("../holders.js").HolderOptions} HolderOptions */

/** @type {import("@holdfast/client").Lock[]} */
const held = [];

process.on("message", (/** @type {HolderOptions & { kind: string }} */ { kind, ...options }) => {
  if (kind === "hold") void holdAll(options);
  else process.send?.({ lost: held.filter(({ state }) => state === "lost").length });
});
process.send?.({ ready: 1 });

/** @param {HolderOptions} options */
async function holdAll(options) {
  let next = 0;
  const work = async () => {
    for (let at = next++; at < options.connections; at = next++) await holdSome(at, options);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  process.send?.({ held: held.length });
}

/**
 * @param {number} connection
 * @param {HolderOptions} options
 */
async function holdSome(connection, { endpoints, sessions, locks, ttlMs }) {
  const holdfast = await connect({ endpoints, ttlMs, connectTimeoutMs });
  const wanted = Array.from({ length: sessions * locks }, (_, at) => {
    const ownTtlMs = ttlMs + Math.floor(at / locks);
    return holdfast.acquire(`held-${connection}-${at}`, { ttlMs: ownTtlMs, waitMs });
  });
  for (const lock of await Promise.all(wanted)) held.push(lock);
}
