/** One Redis server as Debian has it (7.0), which syncs every write before it answers: no replica, so nothing is left when it is lost. */
import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { freePorts } from "../ports.js";
import { hasProgram } from "../programs.js";
import { Servers } from "./servers.js";

const ttlMs = 10_000;
/** Deletes the lock only if it is still the one's who took it: the release of Redis's own documentation. */
const compareAndDelete = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`;

class RedisPeer {
  id = "redis";
  killLeader = null;
  #port = 0;
  /** @type {Servers | null} */
  #servers = null;

  /** @param {string} folder */
  constructor(folder) {
    this.folder = folder;
    /** @type {readonly import("./peer.js").Contender[]} */
    this.contenders = [
      { id: "redis", title: "Redis, one node", waits: false, connect: () => connectRedis(this.#port) },
    ];
  }

  async start() {
    const [port = 0] = await freePorts(1);
    this.#port = port;
    const synced = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
    const words = ["redis-server", "--port", String(port), "--bind", "127.0.0.1", "--loglevel", "warning", ...synced];
    this.#servers = new Servers("redis", this.folder, [{ id: "n1", words }]);
    await this.#servers.start(() => isServing(port));
  }

  async stop() {
    await this.#servers?.stop();
  }

  pids() {
    return this.#servers?.pids ?? [];
  }
}

/** @param {number} port */
async function isServing(port) {
  const client = new Redis({ port, lazyConnect: true, retryStrategy: () => null });
  try {
    // Without a listener, what fails would be told on stderr too.
    client.on("error", () => undefined);
    await client.connect();
    return (await client.ping()) === "PONG";
  } finally {
    client.disconnect();
  }
}

/**
 * @param {number} port
 * @returns {Promise<import("./peer.js").Connection>}
 */
async function connectRedis(port) {
  const client = new Redis({ port, lazyConnect: true });
  await client.connect();
  const sha = /** @type {string} */ (await client.script("LOAD", compareAndDelete));
  return {
    acquire: async (name) => {
      const token = randomUUID();
      if ((await client.set(name, token, "PX", ttlMs, "NX")) !== "OK") throw new Error(`redis: ${name} is held`);
      return async () => {
        if ((await client.evalsha(sha, 1, name, token)) !== 1) throw new Error(`redis: ${name} was lost`);
      };
    },
    close: async () => {
      await client.quit();
    },
  };
}

/** @type {import("./peer.js").PeerKind} */
export const redisKind = {
  id: "redis",
  missing: () => (hasProgram("redis-server") ? null : "Debian's package redis-server"),
  make: (folder) => new RedisPeer(folder),
};
