/** Three ZooKeeper servers as Debian has them (3.8), with their defaults: each transaction is synced before it is acknowledged. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { text } from "node:stream/consumers";
import { freePorts } from "../ports.js";
import { hasProgram } from "../programs.js";
import { until } from "../until.js";
import { leaderAmong, Servers } from "./servers.js";
import { connectEphemeral, connectSequential } from "./zookeeper-recipes.js";

const jar = "/usr/share/java/zookeeper.jar";
const askMs = 2_000;

/** @typedef {{ id: string, number: number, client: number, peer: number, election: number }} Node Its ports. */

class ZooKeeper {
  id = "zookeeper";
  /** @type {readonly Node[]} */
  #nodes = [];
  /** @type {Servers | null} */
  #servers = null;

  /** @param {string} folder */
  constructor(folder) {
    this.folder = folder;
    /** @type {readonly import("./peer.js").Contender[]} */
    this.contenders = [
      {
        id: "zookeeper-ephemeral",
        title: "ZooKeeper, ephemeral node",
        waits: false,
        connect: async (options = {}) => connectEphemeral(await this.#addresses(options)),
      },
      {
        id: "zookeeper-queue",
        title: "ZooKeeper, sequential nodes",
        waits: true,
        connect: async (options = {}) => connectSequential(await this.#addresses(options)),
      },
    ];
  }

  async start() {
    const ports = await freePorts(9);
    this.#nodes = [1, 2, 3].map((number) => {
      const [client = 0, peer = 0, election = 0] = ports.slice(3 * (number - 1));
      return { id: `n${number}`, number, client, peer, election };
    });
    for (const node of this.#nodes) writeSettings(path.join(this.folder, node.id), node, this.#nodes);
    this.#servers = new Servers(
      "zookeeper",
      this.folder,
      this.#nodes.map(({ id }) => ({ id, words })),
    );
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
    if (servers === null) throw new Error("zookeeper was not started");
    return servers.killNow(leader.id, () => this.#isServing());
  }

  #leader() {
    return until("ZooKeeper has a leader", () =>
      leaderAmong(this.#nodes, async (node) => (await modeOf(node)) === "leader"),
    );
  }

  /** @param {import("./peer.js").ConnectOptions} options */
  async #addresses({ everyNode = false }) {
    const nodes = everyNode ? this.#nodes : [await this.#leader()];
    return nodes.map(({ client }) => `127.0.0.1:${client}`);
  }

  async #isServing() {
    const modes = await Promise.all(this.#nodes.map((node) => modeOf(node)));
    return modes.every((mode) => mode === "leader" || mode === "follower");
  }
}

/** A server runs in its own folder: paths are relative to it. Its log has warnings only, as a server under load should. */
const words = [
  "java",
  "-Xmx1g",
  "-Dzookeeper.admin.enableServer=false",
  ...["-cp", `.:${jar}`],
  "org.apache.zookeeper.server.quorum.QuorumPeerMain",
  "zoo.cfg",
];

/**
 * @param {string} folder
 * @param {Node} node
 * @param {readonly Node[]} nodes
 */
function writeSettings(folder, node, nodes) {
  mkdirSync(path.join(folder, "data"), { recursive: true });
  writeFileSync(path.join(folder, "data", "myid"), `${node.number}\n`);
  writeFileSync(path.join(folder, "zoo.cfg"), settingsOf(nodes));
  writeFileSync(
    path.join(folder, "log4j.properties"),
    "log4j.rootLogger=WARN, OUT\nlog4j.appender.OUT=org.apache.log4j.ConsoleAppender\nlog4j.appender.OUT.layout=org.apache.log4j.SimpleLayout\n",
  );
}

/** @param {readonly Node[]} nodes */
function settingsOf(nodes) {
  const lines = [
    "tickTime=2000",
    "initLimit=10",
    "syncLimit=5",
    "dataDir=data",
    "maxClientCnxns=0",
    "4lw.commands.whitelist=srvr",
    ...nodes.map((each) => `server.${each.number}=127.0.0.1:${each.peer}:${each.election};127.0.0.1:${each.client}`),
  ];
  return `${lines.join("\n")}\n`;
}

/**
 * "leader" or "follower"; null while it doesn't serve.
 * @param {Node} node
 * @returns {Promise<string | null>}
 */
async function modeOf({ client }) {
  const socket = net.connect(client, "127.0.0.1");
  socket.setTimeout(askMs, () => socket.destroy(new Error("no answer")));
  socket.end("srvr");
  return /^Mode: (\w+)/m.exec(await text(socket))?.[1] ?? null;
}

/** @type {import("./peer.js").PeerKind} */
export const zooKeeperKind = {
  id: "zookeeper",
  missing: () =>
    hasProgram("java") && existsSync(jar) ? null : "Debian's packages zookeeper and default-jre-headless",
  make: (folder) => new ZooKeeper(folder),
};
