/**
 * Real databases for tests. Drivers lie in test/drivers, outside the workspaces (`node scripts/test-drivers.js` installs them); their
 * types are written down here as far as they are used, so that everything compiles without them.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { binFolder, cleanEnvironment, freePort, newDataDirectory, serverWords } from "./postgres-server.js";
import type { Owner } from "./postgres-server.js";

export interface TestResult {
  readonly rows: Record<string, unknown>[];
  readonly rowCount: number | null;
}

export interface TestClient {
  query(text: string, values?: unknown[]): Promise<TestResult>;
  release(destroy?: boolean): void;
  on(event: "error", listener: (error: Error) => void): unknown;
  removeListener(event: "error", listener: (error: Error) => void): unknown;
}

/** A `pg` Pool. */
export interface TestPool {
  query(text: string, values?: unknown[]): Promise<TestResult>;
  connect(): Promise<TestClient>;
  on(event: "error", listener: (error: Error) => void): unknown;
  end(): Promise<void>;
}

export interface TestPoolOptions {
  /** Connections at most; default 10. */
  readonly max?: number;
  /** The connections' default isolation level; default "read committed". Not for the embedded database. */
  readonly isolation?: "repeatable read" | "serializable";
}

export interface TestPostgres {
  /** For other processes: `postgres://user:password@host:port/database`. */
  readonly url: string;
  /** A new pool, ended by `stop`. */
  pool(options?: TestPoolOptions): TestPool;
  /** Ends all pools and whatever was started. A second call does nothing. */
  stop(): Promise<void>;
}

/** What the keeper process is told (postgres-keeper.ts). */
export interface KeeperOrder {
  readonly command: string;
  readonly arguments: readonly string[];
  readonly owner: Owner | null;
  /** Removed at the end, and the server's current folder. */
  readonly folder: string;
}

const drivers = createRequire(new URL("../../drivers/package.json", import.meta.url));
const startTimeoutMs = 60_000;
const embeddedConnectionsMax = 50;

/** Null when the drivers are installed, else what to do. */
export function missingDrivers(): string | null {
  try {
    drivers.resolve("pg");
    drivers.resolve("@electric-sql/pglite");
    return null;
  } catch {
    return "the test drivers are not installed: run `node scripts/test-drivers.js`";
  }
}

/** Null when `debianPostgres` can start, else what to install. With CI set nothing may be missing: the tests then fail instead. */
export function missingDebianPostgres(): string | null {
  if (missingDrivers() !== null) return missingDrivers();
  if (process.env["HOLDFAST_TEST_POSTGRES"] !== undefined) return null;
  if (binFolder() === null) {
    return "PostgreSQL is not installed: run `apt-get install postgresql`, or name a server with HOLDFAST_TEST_POSTGRES=postgres://...";
  }
  return null;
}

/** For a test's `skip`: the reason, or false to run it. */
export function skipWithoutDebianPostgres(): string | false {
  return process.env["CI"] === undefined ? (missingDebianPostgres() ?? false) : false;
}

/**
 * PostgreSQL as WebAssembly in this process, over TCP. It serves one transaction at a time and takes 5 to 10 s and 750 MB: one for
 * each test run. All its connections are one session, so nothing may be SET for a connection.
 */
export async function embeddedPostgres(): Promise<TestPostgres> {
  requireNothing(missingDrivers());
  const { PGlite } = drivers("@electric-sql/pglite") as PGliteModule;
  const { PGLiteSocketServer } = drivers("@electric-sql/pglite-socket") as PGliteSocketModule;
  const db = await PGlite.create();
  const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: embeddedConnectionsMax });
  await server.start();
  return testPostgres(`postgres://postgres@${server.getServerConn()}/postgres`, async () => {
    await server.stop();
    await db.close();
  });
}

/**
 * A real PostgreSQL server with a database of its own: on the server that HOLDFAST_TEST_POSTGRES names, else on one that is started
 * here on a free port, with its files in a temporary folder. The latter ends and leaves nothing even when this process is killed.
 */
export async function debianPostgres(): Promise<TestPostgres> {
  requireNothing(missingDebianPostgres());
  const named = process.env["HOLDFAST_TEST_POSTGRES"];
  if (named !== undefined) return databaseOn(named);
  const bin = binFolder();
  if (bin === null) throw new Error("no PostgreSQL");
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startServer(bin);
    } catch (error) {
      // Somebody else took the port between the look and the start.
      if (attempt === 5 || !String(error).includes("could not create any TCP/IP sockets")) throw error;
    }
  }
}

async function databaseOn(serverUrl: string): Promise<TestPostgres> {
  const name = `holdfast_test_${randomBytes(6).toString("hex")}`;
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  const admin = newPool(serverUrl, { max: 1 });
  await admin.query(`CREATE DATABASE ${name}`);
  return testPostgres(url.href, async () => {
    await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
    await admin.end();
  });
}

async function startServer(bin: string): Promise<TestPostgres> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-postgres-"));
  const { data, password, owner } = await newDataDirectory(bin, folder).catch((error: unknown) => {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  });
  const port = await freePort();
  const order: KeeperOrder = {
    command: join(bin, "postgres"),
    arguments: serverWords(data, port, { isDurable: false }),
    owner,
    folder,
  };
  const keeper = keep(order);
  const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
  try {
    await untilReady(url, keeper);
  } catch (error) {
    await keeper.stop();
    throw error;
  }
  return testPostgres(url, () => keeper.stop());
}

interface Keeper {
  /** The server's last words, once it has ended; null while it runs. */
  ended(): string | null;
  stop(): Promise<void>;
}

/** The keeper holds the other end of a pipe from this process. However this process ends, the pipe closes, and the keeper cleans up. */
function keep(order: KeeperOrder): Keeper {
  const script = fileURLToPath(new URL("./postgres-keeper.js", import.meta.url));
  const child = spawn(process.execPath, [script, JSON.stringify(order)], {
    detached: true,
    env: cleanEnvironment(),
    stdio: ["pipe", "pipe", "inherit"],
  });
  let words = "";
  let isOver = false;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    words += text;
  });
  child.stdin.on("error", () => {});
  const over = new Promise<void>((resolve) => {
    child.once("close", () => {
      isOver = true;
      resolve();
    });
  });
  child.unref();
  (child.stdin as Socket).unref();
  (child.stdout as Socket).unref();
  return {
    ended: () => (isOver ? words : null),
    stop: async () => {
      child.ref();
      child.stdin.end();
      await over;
    },
  };
}

async function untilReady(url: string, keeper: Keeper): Promise<void> {
  const deadline = performance.now() + startTimeoutMs;
  for (;;) {
    const words = keeper.ended();
    if (words !== null) throw new Error(`PostgreSQL did not start: ${words}`);
    const pool = newPool(url, { max: 1 });
    try {
      await pool.query("SELECT 1");
      return;
    } catch (error) {
      if (performance.now() > deadline) throw error;
    } finally {
      await pool.end();
    }
    await sleep(50);
  }
}

function testPostgres(url: string, end: () => Promise<void>): TestPostgres {
  const pools: TestPool[] = [];
  let stopped: Promise<void> | null = null;
  const stop = async (): Promise<void> => {
    await Promise.all(pools.map((pool) => pool.end()));
    await end();
  };
  return {
    url,
    pool: (options = {}) => {
      const pool = newPool(url, options);
      pools.push(pool);
      return pool;
    },
    stop: () => (stopped ??= stop()),
  };
}

function newPool(url: string, options: TestPoolOptions): TestPool {
  const { Pool } = drivers("pg") as PgModule;
  const isolation = options.isolation?.replace(" ", "\\ ");
  const pool = new Pool({
    connectionString: url,
    max: options.max ?? 10,
    connectionTimeoutMillis: 30_000,
    ...(isolation === undefined ? {} : { options: `-c default_transaction_isolation=${isolation}` }),
  });
  // Tests cut connections; one that lies idle in the pool tells it here.
  pool.on("error", () => {});
  return pool;
}

function requireNothing(missing: string | null): void {
  if (missing !== null) throw new Error(missing);
}

interface PgModule {
  readonly Pool: new (config: object) => TestPool;
}

interface PGliteModule {
  readonly PGlite: { create(): Promise<{ close(): Promise<void> }> };
}

interface PGliteSocketModule {
  readonly PGLiteSocketServer: new (
    options: object,
  ) => { start(): Promise<void>; stop(): Promise<void>; getServerConn(): string };
}
