/** Three etcd servers as Debian has them (3.4), with their defaults: each entry is synced before it is acknowledged. */
import { freePorts } from "../ports.js";
import { hasProgram } from "../programs.js";
import { until } from "../until.js";
import { connectPutIfAbsent, connectOwnLock, connectQueue } from "./etcd-recipes.js";
import { leaderAmong, Servers } from "./servers.js";

/** @typedef {{ id: string, client: string, peer: string }} Node Addresses as URLs. */

class Etcd {
  id = "etcd";
  /** @type {readonly Node[]} */
  #nodes = [];
  /** @type {Servers | null} */
  #servers = null;

  /** @param {string} folder */
  constructor(folder) {
    this.folder = folder;
    const contender = (
      /** @type {string} */ id,
      /** @type {string} */ title,
      /** @type {typeof connectQueue} */ connect,
      waits = false,
    ) => ({ id, title, waits, connect: async (options = {}) => connect(await this.#hosts(options)) });
    /** @type {readonly import("./peer.js").Contender[]} */
    this.contenders = [
      contender("etcd-put", "etcd, put if absent", connectPutIfAbsent),
      contender("etcd-lock", "etcd, lock() of etcd3", connectOwnLock),
      contender("etcd-queue", "etcd, queue of keys", connectQueue, true),
    ];
  }

  async start() {
    const ports = await freePorts(6);
    this.#nodes = ["n1", "n2", "n3"].map((id, at) => ({
      id,
      client: `http://127.0.0.1:${ports[2 * at]}`,
      peer: `http://127.0.0.1:${ports[2 * at + 1]}`,
    }));
    const cluster = this.#nodes.map(({ id, peer }) => `${id}=${peer}`).join(",");
    const servers = this.#nodes.map(({ id, client, peer }) => ({ id, words: wordsFor({ id, client, peer, cluster }) }));
    this.#servers = new Servers("etcd", this.folder, servers);
    await this.#servers.start(() => this.#isServing());
  }

  async stop() {
    await this.#servers?.stop();
  }

  pids() {
    return this.#servers?.pids ?? [];
  }

  async killLeader() {
    const servers = this.#servers;
    const leader = await this.#leader();
    if (servers === null) throw new Error("etcd was not started");
    return servers.killNow(leader.id, () => this.#isServing());
  }

  #leader() {
    return until("etcd has a leader", () => leaderAmong(this.#nodes, isLeader));
  }

  /** @param {import("./peer.js").ConnectOptions} options */
  async #hosts({ everyNode = false }) {
    return everyNode ? this.#nodes.map(({ client }) => client) : [(await this.#leader()).client];
  }

  async #isServing() {
    const answers = await Promise.all(this.#nodes.map(({ client }) => ask(`${client}/health`)));
    return answers.every(({ health }) => String(health) === "true");
  }
}

/** @param {Node & { cluster: string }} node */
function wordsFor({ id, client, peer, cluster }) {
  return [
    "etcd",
    ...["--name", id, "--data-dir", "data"],
    ...["--listen-client-urls", client, "--advertise-client-urls", client],
    ...["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer],
    ...["--initial-cluster", cluster, "--initial-cluster-state", "new"],
    ...["--logger", "zap", "--log-level", "error"],
  ];
}

/** @param {Node} node */
async function isLeader({ client }) {
  const { header, leader } = await ask(`${client}/v3/maintenance/status`, "{}");
  return header?.member_id !== undefined && header.member_id === leader;
}

/**
 * @param {string} url
 * @param {string} [body] Then it is posted.
 * @returns {Promise<{ health?: unknown, leader?: string, header?: { member_id?: string } }>}
 */
async function ask(url, body) {
  const signal = AbortSignal.timeout(2_000);
  const response = await fetch(url, body === undefined ? { signal } : { method: "POST", body, signal });
  return /** @type {Promise<{}>} */ (response.json());
}

/** @type {import("./peer.js").PeerKind} */
export const etcdKind = {
  id: "etcd",
  missing: () => (hasProgram("etcd") ? null : "Debian's package etcd-server"),
  make: (folder) => new Etcd(folder),
};
