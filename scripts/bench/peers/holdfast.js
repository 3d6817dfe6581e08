/** Nodes of ours, each a process of the compiled program, with the defaults of a configuration file. */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { connect } from "@holdfast/client";
import { freePorts } from "../ports.js";
import { until } from "../until.js";
import { leaderAmong, Servers } from "./servers.js";

const program = fileURLToPath(new URL("../../../packages/cli/bin/holdfast.js", import.meta.url));
const probe = fileURLToPath(new URL("../children/probe.js", import.meta.url));
const connectMs = 30_000;

/**
 * @typedef {{ id: string, client: string, peer: string }} Node Its addresses, host:port.
 * @typedef {object} HoldfastOptions
 * @property {Readonly<Record<string, number>>} [limits] Of the configuration.
 * @property {number} [nodes] How many; 3 unless told.
 * @property {boolean} [isProbed] The nodes tell of their turns and their heap (children/probe.js), at a small cost.
 */

export class HoldfastPeer {
  id = "holdfast";
  /** @type {readonly Node[]} */
  #nodes = [];
  /** @type {Servers | null} */
  #servers = null;

  /**
   * @param {string} folder
   * @param {HoldfastOptions} [options]
   */
  constructor(folder, options = {}) {
    this.folder = folder;
    this.options = options;
    /** @type {readonly import("./peer.js").Contender[]} */
    this.contenders = [
      { id: "holdfast", title: "Holdfast", waits: true, connect: () => connectHoldfast(this.endpoints) },
    ];
  }

  /** @returns {readonly string[]} */
  get endpoints() {
    return this.#nodes.map(({ client }) => client);
  }

  async start() {
    const { limits = {}, isProbed = false, nodes = 3 } = this.options;
    const ports = await freePorts(2 * nodes);
    this.#nodes = Array.from({ length: nodes }, (_, at) => ({
      id: `n${at + 1}`,
      client: `127.0.0.1:${ports[2 * at]}`,
      peer: `127.0.0.1:${ports[2 * at + 1]}`,
    }));
    const config = path.join(this.folder, "cluster.json");
    mkdirSync(this.folder, { recursive: true });
    writeFileSync(config, JSON.stringify({ cluster: "bench", nodes: this.#nodes, limits }));
    const flags = isProbed ? ["--expose-gc", "--import", probe] : [];
    const servers = this.#nodes.map(({ id }) => ({
      id,
      words: [process.execPath, ...flags, program, "node", "--config", config, "--id", id, "--data", "data"],
      environment: { HOLDFAST_LOG: "warn" },
      hasChannel: isProbed,
    }));
    this.#servers = new Servers("holdfast", this.folder, servers);
    await this.restart();
  }

  /** Starts what doesn't run; resolves when all nodes serve. */
  async restart() {
    await this.#running().start(() => this.#isServing());
  }

  async stop() {
    await this.#servers?.stop();
  }

  pids() {
    return this.#servers?.pids ?? [];
  }

  async killLeader() {
    const leader = await this.leader();
    const atMs = performance.now();
    leader.killNow();
    return { atMs, heal: () => this.restart() };
  }

  /** SIGKILL to all nodes; resolves when they have ended. */
  async killAll() {
    await Promise.all(this.processes().map((each) => each.kill()));
  }

  processes() {
    return this.#nodes.map(({ id }) => this.#running().get(id));
  }

  /** The leader's process. */
  async leader() {
    const { id } = await this.#leadingNode();
    return this.#running().get(id);
  }

  /** The leader's address for clients. */
  async leaderEndpoint() {
    const { client } = await this.#leadingNode();
    return client;
  }

  /** The highest term that a node knows: it rises when another one stands for election. */
  async term() {
    const states = await Promise.all(this.#nodes.map((node) => statusOf(node)));
    return Math.max(...states.map(({ term }) => term));
  }

  #leadingNode() {
    return until("Holdfast has a leader", () => leaderAmong(this.#nodes, isLeader));
  }

  #running() {
    if (this.#servers === null) throw new Error("holdfast was not started");
    return this.#servers;
  }

  async #isServing() {
    const states = await Promise.all(this.#nodes.map((node) => statusOf(node)));
    const leader = states.find(({ role, lastApplied }) => role === "leader" && lastApplied > 0);
    return leader !== undefined && states.every((state) => state.leader === leader.id);
  }
}

/**
 * Rejects when it doesn't answer.
 * @param {Node} node
 * @returns {Promise<{ role: string, term: number, lastApplied: number, leader: string | null, id: string }>}
 */
async function statusOf({ client }) {
  const response = await fetch(`http://${client}/v1/status`, { signal: AbortSignal.timeout(2_000) });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return /** @type {ReturnType<typeof statusOf>} */ (response.json());
}

/** @param {Node} node */
async function isLeader(node) {
  return (await statusOf(node)).role === "leader";
}

/**
 * @param {readonly string[]} endpoints
 * @returns {Promise<import("./peer.js").Connection>}
 */
async function connectHoldfast(endpoints) {
  const holdfast = await connect({ endpoints, connectTimeoutMs: connectMs });
  return {
    acquire: async (name) => {
      const lock = await holdfast.acquire(name, { waitMs: Number.POSITIVE_INFINITY });
      return async () => {
        const result = await lock.release();
        if (result !== "released") throw new Error(`holdfast: ${name} is ${result}`);
      };
    },
    close: () => holdfast.close(),
  };
}

/** @type {import("./peer.js").PeerKind} */
export const holdfastKind = {
  id: "holdfast",
  missing: () => null,
  make: (folder) => new HoldfastPeer(folder),
};
