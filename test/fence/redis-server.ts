/** Debian's redis-server on a free port, with its files in a temporary folder. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../harness/until.js";
import { driver, mayMiss, skipWithoutDriver } from "./drivers.js";
import { freePort, keep, programPath } from "./keeper.js";
import type { Keeper } from "./keeper.js";

/** The part of a client of the package `redis` that tests use. */
export interface TestRedisClient {
  connect(): Promise<unknown>;
  destroy(): void;
  readonly isOpen: boolean;
  on(event: "error", listener: (error: Error) => void): unknown;
  sendCommand(words: string[]): Promise<unknown>;
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

export interface TestRedis {
  readonly url: string;
  /** Kills the server, starts it on the same port and files, and resolves when it answers. */
  crash(): Promise<void>;
  stop(): Promise<void>;
}

/** For a test's `skip`: what to install, or false. With CI set nothing may be missing. */
export function skipWithoutRedis(): string | false {
  if (!mayMiss()) return false;
  if (programPath("redis-server") === null) return "Redis is not installed: run `apt-get install redis-server`";
  return skipWithoutDriver("redis");
}

/** A client that reports what goes wrong to its callers alone: it neither waits for a server nor sends anything twice. */
export async function redisClient(url: string): Promise<TestRedisClient> {
  const { createClient } = driver("redis") as { createClient(options: object): TestRedisClient };
  const client = createClient({ url, disableOfflineQueue: true, socket: { reconnectStrategy: false } });
  client.on("error", () => {});
  await client.connect();
  return client;
}

export interface RedisServerOptions {
  /** A cluster of this node alone, which refuses scripts on several hash slots. */
  readonly isCluster?: boolean;
}

export async function startRedis(options: RedisServerOptions = {}): Promise<TestRedis> {
  const data = mkdtempSync(join(tmpdir(), "holdfast-redis-"));
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  let keeper = keepRedis(data, port, options);
  await untilReady(url, keeper);
  if (options.isCluster === true) await formCluster(url);
  return {
    url,
    crash: async () => {
      const old = keeper;
      process.kill(await serverPid(url), "SIGKILL");
      await old.ended();
      keeper = keepRedis(data, port, options);
      await untilReady(url, keeper);
    },
    stop: async () => {
      keeper.end();
      await keeper.ended();
      rmSync(data, { recursive: true, force: true });
    },
  };
}

/** Every write is on the disk before it is acknowledged. */
function keepRedis(data: string, port: number, { isCluster = false }: RedisServerOptions): Keeper {
  const network = ["--port", `${port}`, "--bind", "127.0.0.1"];
  const durable = ["--save", "", "--appendonly", "yes", "--appendfsync", "always", "--dir", data];
  const cluster = isCluster ? ["--cluster-enabled", "yes", "--cluster-port", "0"] : [];
  return keep("redis-server", [...network, ...durable, ...cluster]);
}

async function untilReady(url: string, keeper: Keeper): Promise<void> {
  await until("Redis answers", async () => {
    const words = keeper.lastWords();
    if (words !== null) throw new Error(`Redis did not start: ${words}`);
    const client = await redisClient(url);
    try {
      // It answers LOADING while it reads its log.
      return (await client.sendCommand(["PING"])) === "PONG";
    } finally {
      client.destroy();
    }
  });
}

async function formCluster(url: string): Promise<void> {
  const client = await redisClient(url);
  try {
    await client.sendCommand(["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    await until("the cluster is formed", async () =>
      String(await client.sendCommand(["CLUSTER", "INFO"])).includes("cluster_state:ok"),
    );
  } finally {
    client.destroy();
  }
}

async function serverPid(url: string): Promise<number> {
  const client = await redisClient(url);
  try {
    const info = String(await client.sendCommand(["INFO", "server"]));
    return Number(/^process_id:(\d+)/m.exec(info)?.[1]);
  } finally {
    client.destroy();
  }
}
