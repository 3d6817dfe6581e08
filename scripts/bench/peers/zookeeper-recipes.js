/** Two ways to take a lock of ZooKeeper, by its usual Node client. */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import zooKeeper from "node-zookeeper-client";

const sessionTimeoutMs = 10_000;
/** Between two rounds of attempts to reach a server; the client's own is a second, which would be all that a failover shows. */
const spinDelayMs = 50;
const closeMsMax = 1_000;

/** @typedef {import("./peer.js").Connection} Connection */

/**
 * The cheapest: an ephemeral node is created if it isn't there, and deleted.
 * @param {string[]} addresses
 * @returns {Promise<Connection>}
 */
export async function connectEphemeral(addresses) {
  const client = await open(addresses);
  await client.makeFolder("/locks");
  return {
    acquire: async (name) => {
      const node = `/locks/${name}`;
      await client.create(node, zooKeeper.CreateMode.EPHEMERAL);
      return () => client.remove(node);
    },
    close: () => client.close(),
  };
}

/**
 * Fair waiting, the recipe of ZooKeeper's documentation: a sequential node for each waiter; who isn't first watches the one before.
 * @param {string[]} addresses
 * @returns {Promise<Connection>}
 */
export async function connectSequential(addresses) {
  const client = await open(addresses);
  await client.makeFolder("/queues");
  /** @type {Set<string>} */
  const made = new Set();
  return {
    acquire: async (name) => {
      const folder = `/queues/${name}`;
      if (!made.has(name)) await client.makeFolder(folder);
      made.add(name);
      const node = await client.create(`${folder}/n-`, zooKeeper.CreateMode.EPHEMERAL_SEQUENTIAL);
      for (;;) {
        const children = (await client.children(folder)).sort();
        const place = children.indexOf(node.slice(folder.length + 1));
        if (place === -1) throw new Error(`ZooKeeper: ${node} is gone`);
        if (place === 0) return () => client.remove(node);
        await client.change(`${folder}/${children[place - 1]}`);
      }
    },
    close: () => client.close(),
  };
}

/** The client of node-zookeeper-client, with promises for callbacks. */
class Client {
  /** @param {any} client It has no types. */
  constructor(client) {
    this.client = client;
  }

  /**
   * Resolves with its path.
   * @param {string} node
   * @param {number} mode
   * @returns {Promise<string>}
   */
  create(node, mode) {
    return called((done) => this.client.create(node, mode, done));
  }

  /**
   * @param {string} node
   * @returns {Promise<void>}
   */
  remove(node) {
    return called((done) => this.client.remove(node, done));
  }

  /**
   * @param {string} node
   * @returns {Promise<string[]>}
   */
  children(node) {
    return called((done) => this.client.getChildren(node, done));
  }

  /**
   * @param {string} node
   * @returns {Promise<void>}
   */
  makeFolder(node) {
    return called((done) => this.client.mkdirp(node, done));
  }

  /**
   * Resolves when anything happens to the node, or at once when there is none.
   * @param {string} node
   * @returns {Promise<void>}
   */
  change(node) {
    return new Promise((resolve, reject) => {
      const onAnswer = (/** @type {Error | null} */ error, /** @type {object | null} */ stat) => {
        if (error !== null && error !== undefined) reject(error);
        else if (stat === null || stat === undefined) resolve();
      };
      this.client.exists(node, () => resolve(), onAnswer);
    });
  }

  async close() {
    const closed = once(this.client, "disconnected");
    this.client.close();
    await Promise.race([closed, sleep(closeMsMax)]);
  }
}

/** @param {string[]} addresses */
async function open(addresses) {
  const options = { sessionTimeout: sessionTimeoutMs, spinDelay: spinDelayMs };
  const client = zooKeeper.createClient(addresses.join(","), options);
  const connected = once(client, "connected");
  client.connect();
  await connected;
  return new Client(client);
}

/**
 * @template T
 * @param {(done: (error: Error | null, value: T) => void) => void} call
 * @returns {Promise<T>}
 */
function called(call) {
  return new Promise((resolve, reject) => {
    call((error, value) => {
      if (error !== null && error !== undefined) reject(error);
      else resolve(value);
    });
  });
}
