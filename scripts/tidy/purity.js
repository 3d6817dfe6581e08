/**
 * Words that must not occur in the code of pure packages: time, chance and waiting come from outside. And those that must not occur in what
 * a simulated run uses: there time is virtual, and chance comes from the seed.
 */
import { importsOf } from "./imports.js";

export const purePackages = ["raft", "lock", "wire", "checker"];
const bannedWhenPure = new Set(["Date", "performance", "async", "await", "Promise", "localeCompare"]);

const simulator = "packages/simulator/src/";
/** The command lines and what only they use: they tell people how long things took, start processes, read sources. */
const outsideOfRuns = new Set(
  ["main.ts", "words.ts", "fleet.ts", "explore/main.ts", "explore/raft/opened-core.ts"].map((name) => simulator + name),
);
const bannedInRuns = new Set([
  "Date",
  "performance",
  "setTimeout",
  "setInterval",
  "setImmediate",
  "queueMicrotask",
  "crypto",
  "localeCompare",
  "Intl",
  "WeakRef",
  "FinalizationRegistry",
]);
/** Node's `process` has these, a simulated one hasn't. */
const bannedOfProcess = new Set(["nextTick", "hrtime", "uptime", "cpuUsage", "memoryUsage", "env", "pid", "argv"]);
/** How virtual time goes on, and what stands in for a process's own. */
const allowedInRuns = new Map([
  ["setImmediate", new Set([`${simulator}scheduler.ts`, `${simulator}process.ts`])],
  ["queueMicrotask", new Set([`${simulator}scheduler.ts`, `${simulator}process.ts`])],
]);
/** Node's own modules that know neither time nor chance. */
const modulesInRuns = new Set(["node:assert/strict"]);

/**
 * @param {import("./tree.js").Tree} tree
 * @returns {import("./tree.js").Problem[]}
 */
export function checkPurity(tree) {
  return tree.sources.flatMap((file) => {
    if (purePackages.some((name) => file.startsWith(`packages/${name}/src/`))) return impurities(tree, file);
    return file.startsWith(simulator) && !outsideOfRuns.has(file) ? unseeded(tree, file) : [];
  });
}

/**
 * @param {import("./tree.js").Tree} tree
 * @param {string} file
 */
function impurities(tree, file) {
  const place = "in a pure package";
  return problemsIn(tree, file, place, (tokens, at) => {
    return bannedWhenPure.has(tokens[at].text) ? tokens[at].text : chanceAt(tokens, at);
  });
}

/**
 * @param {import("./tree.js").Tree} tree
 * @param {string} file
 */
function unseeded(tree, file) {
  const place = "in what a simulated run uses";
  const modules = importsOf(tree.tokens(file)).filter(({ specifier, typeOnly }) => {
    return specifier.startsWith("node:") && !typeOnly && !modulesInRuns.has(specifier);
  });
  return [
    ...modules.map(({ specifier, line }) => ({ file, line, text: `${specifier} is banned ${place}` })),
    ...problemsIn(tree, file, place, (tokens, at) => {
      const { text } = tokens[at];
      const owner = tokens[at - 1]?.text === "." ? (tokens[at - 2]?.text ?? "") : null;
      if (owner === "process" && bannedOfProcess.has(text)) return `process.${text}`;
      if (owner === "AbortSignal" && text === "timeout") return "AbortSignal.timeout";
      if (text === "in" && isLoop(tokens, at)) return "for ... in";
      // A simulated process has a setImmediate of its own: `process.setImmediate(...)`.
      const isGlobal = owner === null || owner === "globalThis";
      if (isGlobal && bannedInRuns.has(text) && allowedInRuns.get(text)?.has(file) !== true) return text;
      return chanceAt(tokens, at);
    }),
  ];
}

/**
 * @param {readonly import("./tree.js").Token[]} tokens
 * @param {number} at
 */
function chanceAt(tokens, at) {
  const isChance = tokens[at].text === "random" && tokens[at - 1]?.text === "." && tokens[at - 2]?.text === "Math";
  return isChance ? "Math.random" : null;
}

/**
 * Whether the `in` there belongs to `for (const key in object)`.
 * @param {readonly import("./tree.js").Token[]} tokens
 * @param {number} at
 */
function isLoop(tokens, at) {
  return tokens[at - 3]?.text === "(" && tokens[at - 4]?.text === "for";
}

/**
 * @param {import("./tree.js").Tree} tree
 * @param {string} file
 * @param {string} place
 * @param {(tokens: readonly import("./tree.js").Token[], at: number) => string | null} find What is banned there, if anything is.
 */
function problemsIn(tree, file, place, find) {
  const tokens = tree.tokens(file);
  return tokens.flatMap((token, at) => {
    const found = token.kind === "word" ? find(tokens, at) : null;
    return found === null ? [] : [{ file, line: token.line, text: `${found} is banned ${place}` }];
  });
}
