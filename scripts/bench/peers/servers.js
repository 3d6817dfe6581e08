/** The server processes of one service, each of which can be killed and started again. */
import path from "node:path";
import { Started } from "../processes.js";
import { until } from "../until.js";

/**
 * @typedef {object} Server
 * @property {string} id
 * @property {readonly string[]} words
 * @property {Readonly<Record<string, string>>} [environment]
 * @property {boolean} [hasChannel]
 */

export class Servers {
  /** @type {Map<string, Started>} */
  #started = new Map();

  /**
   * @param {string} service Its name, for messages.
   * @param {string} folder
   * @param {readonly Server[]} servers
   */
  constructor(service, folder, servers) {
    this.service = service;
    this.folder = folder;
    this.servers = servers;
  }

  get pids() {
    return [...this.#started.values()].map(({ pid }) => pid);
  }

  /**
   * Starts those that don't run and resolves when `isServing` says so; rejects, with the end of its log, when one ends before.
   * @param {() => Promise<boolean>} isServing
   */
  async start(isServing) {
    for (const { id, words, environment, hasChannel } of this.servers) {
      const before = this.#started.get(id);
      if (before?.isBeingKilled === true) await before.ended;
      if (before?.isRunning === true) continue;
      const folder = path.join(this.folder, id);
      this.#started.set(id, new Started(`${this.service}-${id}`, words, { folder, environment, hasChannel }));
    }
    const ended = Promise.race(
      [...this.#started.values()].map(async (each) => {
        await each.ended;
        each.assertRuns();
      }),
    );
    await Promise.race([until(`${this.service} serves`, isServing), ended]);
  }

  /** @param {string} id */
  get(id) {
    const started = this.#started.get(id);
    if (started === undefined) throw new Error(`${this.service} has no server ${id} that was started`);
    return started;
  }

  /**
   * SIGKILL to this one.
   * @param {string} id
   * @param {() => Promise<boolean>} isServing
   * @returns {import("./peer.js").Killing}
   */
  killNow(id, isServing) {
    const atMs = performance.now();
    this.get(id).killNow();
    return { atMs, heal: () => this.start(isServing) };
  }

  async stop() {
    await Promise.all([...this.#started.values()].map((each) => each.kill()));
    this.#started.clear();
  }
}

/**
 * Whose answer is the leader's, for services that tell it one by one. Null when none answers so.
 * @template T
 * @param {readonly T[]} nodes
 * @param {(node: T) => Promise<boolean>} isLeader
 * @returns {Promise<T | null>}
 */
export async function leaderAmong(nodes, isLeader) {
  const answers = await Promise.all(nodes.map((node) => isLeader(node).catch(() => false)));
  return nodes.find((_, at) => answers[at] === true) ?? null;
}
