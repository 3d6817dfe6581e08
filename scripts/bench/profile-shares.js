/** A CPU profile, summed up by the part of the code in which its samples fell. */

/** What a sample may fall in; the first that fits. */
export const places = /** @type {const} */ ({
  idle: "idle",
  collector: "garbage collector",
  sends: "system calls of sockets",
  database: "LevelDB",
  codec: "wire and msgpackr",
  consensus: "raft",
  locks: "lock",
  client: "client",
  node: "server and storage",
  websockets: "ws",
  runtime: "Node's own",
  other: "other",
});

/** @typedef {keyof typeof places} Place */

/** @type {readonly (readonly [Place, RegExp])[]} */
const byFunction = [
  ["idle", /^\(idle\)$/],
  ["collector", /^\(garbage collector\)$/],
  ["sends", /^(writev|writeBuffer|writeUtf8String|writeLatin1String|shutdown)$/],
];

/** @type {readonly (readonly [Place, RegExp])[]} */
const byFile = [
  ["database", /\/node_modules\/(classic-level|abstract-level)\//],
  ["codec", /\/(packages\/wire|node_modules\/msgpackr)\//],
  ["consensus", /\/packages\/raft\//],
  ["locks", /\/packages\/lock\//],
  ["client", /\/packages\/client\//],
  ["node", /\/packages\/(server|storage)\//],
  ["websockets", /\/node_modules\/ws\//],
  ["runtime", /^node:|^$/],
];

/**
 * In percent of the whole time.
 * @param {import("node:inspector").Profiler.Profile} profile
 * @returns {Record<Place, number>}
 */
export function sharesOf({ nodes, samples = [], timeDeltas = [] }) {
  const placeOf = new Map(nodes.map(({ id, callFrame }) => [id, placeFor(callFrame)]));
  const sums = /** @type {Record<Place, number>} */ (
    Object.fromEntries(Object.keys(places).map((place) => [place, 0]))
  );
  let total = 0;
  for (const [at, sample] of samples.entries()) {
    const micros = Math.max(0, timeDeltas[at] ?? 0);
    sums[placeOf.get(sample) ?? "other"] += micros;
    total += micros;
  }
  for (const place of /** @type {Place[]} */ (Object.keys(sums)))
    sums[place] = total === 0 ? 0 : (sums[place] * 100) / total;
  return sums;
}

/**
 * System calls have no file, and count for themselves; so do what is built in: it is Node's own.
 * @param {{ functionName: string, url: string }} frame
 * @returns {Place}
 */
function placeFor({ functionName, url }) {
  const found =
    (url === "" ? byFunction.find(([, pattern]) => pattern.test(functionName)) : undefined) ??
    byFile.find(([, pattern]) => pattern.test(url));
  return found?.[0] ?? "other";
}
