/** What `npm run bench:peers` was asked for. */
import { readOptionWords } from "../option-words.js";

export const partNames = [
  "cycles",
  "contended",
  "handoff",
  "failover",
  "growth",
  "flat",
  "sessions",
  "idle",
  "overload",
  "profile",
];
export const peerNames = ["etcd", "zookeeper", "redis"];

export const usage = `usage: npm run bench:peers -- [options]
Measures this lock service, and beside it those of etcd, ZooKeeper and Redis that are installed here, doing the same work on the same disk.
  --parts LIST    what to measure, with commas (default cycles), or all:
                    cycles     acquire and release, at 1, 16 and 256 clients, each its own lock
                    contended  one lock with 64 waiters
                    handoff    what a handoff costs with 10 to 10,000 waiters
                    failover   from the SIGKILL of the leader to the next grant
                    growth     1 to 1,024 clients on clusters of 1, 3 and 5 nodes
                    flat       1,000 and 1,000,000 locks held: cycles, memory, longest turn, restart
                    sessions   10,000 connections; 100,000 sessions over 1,000 connections
                    idle       what it costs while nobody asks anything
                    overload   ten times the load that saturates
                    profile    where the event loops' time goes at 256 clients
  --peers LIST    which of ${peerNames.join(", ")}, or none (default: all that are installed)
  --rounds N      rounds of cycles, contended, handoff, growth, flat, idle and profile; their median counts (default 5)
  --seconds N     how long each measurement takes, after a warm-up (default 5)
  --trials N      how many leaders failover kills at each service (default 50)
  --scale F       above 0 to 1: shrinks the sizes of handoff, flat and sessions, to try them out (default 1)
  --dir FOLDER    where the servers keep their data while it runs, on a disk (default: the system's temporary folder)
  --json          the results as JSON on stdout
  --write         writes the results as JSON and as a picture into docs/benchmarks`;

const texts = ["parts", "peers", "rounds", "seconds", "trials", "scale", "dir"];
const flags = ["json", "write", "help"];

/**
 * @typedef {object} Options
 * @property {readonly string[]} parts
 * @property {readonly string[]} peers
 * @property {boolean} namesPeers Whether they were named: then one that isn't installed is a failure.
 * @property {number} rounds
 * @property {number} seconds
 * @property {number} trials
 * @property {number} scale
 * @property {string} dir
 * @property {boolean} isJson
 * @property {boolean} isWritten
 * @property {boolean} isHelp
 *
 * @param {readonly string[]} args
 * @param {{ dir: string }} defaults
 * @returns {{ options: Options, problems: string[] }} With problems the options mean nothing.
 */
export function readOptions(args, defaults) {
  const { given, problems } = readWords(args);
  const list = (/** @type {string} */ name, /** @type {readonly string[]} */ known, /** @type {string} */ other) => {
    const words = (given.get(name) ?? other).split(",");
    for (const word of words) {
      if (!known.includes(word)) problems.push(`--${name}: "${word}" is none of ${known.join(", ")}`);
    }
    if (new Set(words).size < words.length) problems.push(`--${name} names one twice`);
    return words;
  };
  const number = (/** @type {string} */ name, /** @type {string} */ other, /** @type {number} */ max) => {
    const text = given.get(name) ?? other;
    if (/^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= max) return Number(text);
    problems.push(`--${name} ${text} is no whole number from 1 to ${max}`);
    return 1;
  };
  const parts = given.get("parts") === "all" ? partNames : list("parts", partNames, "cycles");
  const peers = given.get("peers") === "none" ? [] : list("peers", peerNames, peerNames.join(","));
  const options = {
    parts: partNames.filter((name) => parts.includes(name)),
    peers,
    namesPeers: given.has("peers"),
    rounds: number("rounds", "5", 1_000),
    seconds: number("seconds", "5", 3_600),
    trials: number("trials", "50", 100_000),
    scale: scaleOf(given.get("scale") ?? "1", problems),
    dir: given.get("dir") ?? defaults.dir,
    isJson: given.has("json"),
    isWritten: given.has("write"),
    isHelp: given.has("help"),
  };
  return { options, problems: options.isHelp ? [] : problems };
}

/**
 * @param {string} text
 * @param {string[]} problems
 */
function scaleOf(text, problems) {
  const value = Number(text);
  if (/^\d*\.?\d+$/.test(text) && value > 0 && value <= 1) return value;
  problems.push(`--scale ${text} is no number above 0, up to 1`);
  return 1;
}

/** @param {readonly string[]} args */
function readWords(args) {
  const { given, problems } = readOptionWords(args, { texts, flags });
  for (const name of texts) {
    if (given.get(name) !== "") continue;
    problems.push(`--${name} needs a value`);
    given.delete(name);
  }
  return { given, problems };
}
