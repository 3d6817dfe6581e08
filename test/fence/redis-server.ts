/** Debian's redis-server on a free port, with its files in a temporary folder. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { KeeperOrder } from "../harness/postgres.js";
import { until } from "../harness/until.js";
import { driver, skipWithoutDriver } from "./drivers.js";

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
  if (process.env["CI"] !== undefined) return false;
  const folders = (process.env["PATH"] ?? "").split(":");
  const isInstalled = folders.some((folder) => existsSync(join(folder, "redis-server")));
  if (!isInstalled) return "Redis is not installed: run `apt-get install redis-server`";
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
  // The server's folder, which outlives a crash; the keeper removes only the folder of its own log.
  const data = mkdtempSync(join(tmpdir(), "holdfast-redis-"));
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  let keeper = keep(data, port, options);
  await untilReady(url, keeper);
  if (options.isCluster === true) await formCluster(url);
  return {
    url,
    crash: async () => {
      const old = keeper;
      process.kill(await serverPid(url), "SIGKILL");
      await old.ended();
      keeper = keep(data, port, options);
      await untilReady(url, keeper);
    },
    stop: async () => {
      keeper.end();
      await keeper.ended();
      rmSync(data, { recursive: true, force: true });
    },
  };
}

interface Keeper {
  end(): void;
  ended(): Promise<void>;
  /** The server's last words when it has ended, else null. */
  lastWords(): string | null;
}

/** However this process ends, the pipe to the keeper closes, and the keeper ends the server. */
function keep(data: string, port: number, { isCluster = false }: RedisServerOptions): Keeper {
  // Every write is on the disk before it is acknowledged.
  const settings = [
    "--port",
    `${port}`,
    "--bind",
    "127.0.0.1",
    "--save",
    "",
    "--appendonly",
    "yes",
    "--appendfsync",
    "always",
  ];
  const order: KeeperOrder = {
    command: "redis-server",
    arguments: [...settings, "--dir", data, ...(isCluster ? ["--cluster-enabled", "yes", "--cluster-port", "0"] : [])],
    owner: null,
    folder: mkdtempSync(join(tmpdir(), "holdfast-redis-log-")),
  };
  const script = fileURLToPath(new URL("../harness/postgres-keeper.js", import.meta.url));
  const child: ChildProcess = spawn(process.execPath, [script, JSON.stringify(order)], {
    detached: true,
    stdio: ["pipe", "pipe", "inherit"],
  });
  let words = "";
  let isOver = false;
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (words += text));
  child.stdin?.on("error", () => {});
  const over = new Promise<void>((resolve) => {
    child.once("close", () => {
      isOver = true;
      resolve();
    });
  });
  child.unref();
  for (const pipe of [child.stdin, child.stdout]) (pipe as Socket | null)?.unref();
  return {
    end: () => void child.stdin?.end(),
    ended: async () => {
      // Nothing else may keep this process running while it waits.
      child.ref();
      await over;
    },
    lastWords: () => (isOver ? words : null),
  };
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

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}
