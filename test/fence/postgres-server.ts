/** Debian's PostgreSQL that can be killed and started again on its files, and PgBouncer in front of it. */
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { binFolder, newDataDirectory, ownerOfServer, serverWords } from "../harness/postgres-server.js";
import { skipWithoutDebianPostgres } from "../harness/postgres.js";
import type { TestPool } from "../harness/postgres.js";
import { until } from "../harness/until.js";
import { driver, mayMiss } from "./drivers.js";
import { freePort, keep, programPath } from "./keeper.js";
import type { Keeper } from "./keeper.js";

export interface TestServer {
  readonly url: string;
  /** Kills it with all its processes, starts it on the same port and files, and resolves when it answers. */
  crash(): Promise<void>;
  stop(): Promise<void>;
}

/** For a test's `skip`: what to install, or false. A server that HOLDFAST_TEST_POSTGRES names is nobody's to kill. */
export function skipWithoutOwnPostgres(): string | false {
  const skip = skipWithoutDebianPostgres();
  if (skip !== false || binFolder() !== null) return skip;
  return mayMiss() ? "PostgreSQL is not installed: run `apt-get install postgresql`" : false;
}

/** For a test's `skip`: what to install, or false. With CI set nothing may be missing. */
export function skipWithoutPgbouncer(): string | false {
  if (mayMiss() && programPath("pgbouncer") === null) {
    return "PgBouncer is not installed: run `apt-get install pgbouncer`";
  }
  return skipWithoutOwnPostgres();
}

export function postgresPool(url: string, max: number = 10): TestPool {
  const { Pool } = driver("pg") as { readonly Pool: new (config: object) => TestPool };
  const pool = new Pool({ connectionString: url, max, connectionTimeoutMillis: 60_000 });
  pool.on("error", () => {});
  return pool;
}

export async function startPostgres(): Promise<TestServer> {
  const bin = binFolder();
  if (bin === null) throw new Error("no PostgreSQL");
  const folder = mkdtempSync(join(tmpdir(), "holdfast-postgres-"));
  const { data, password, owner } = await newDataDirectory(bin, folder);
  const port = await freePort();
  const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
  const start = (): Keeper => keep(join(bin, "postgres"), serverWords(data, port, { isDurable: true }), owner);
  const pid = (): number => Number.parseInt(readFileSync(join(data, "postmaster.pid"), "utf8"), 10);
  return serverOf({ url, folder, start, pid });
}

/** Transaction mode, with fewer connections to the server than a store has: no two transactions can count on the same one. */
export async function startPgbouncer(postgresUrl: string): Promise<TestServer> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-pgbouncer-"));
  const owner = ownerOfServer();
  const [port, server] = [await freePort(), new URL(postgresUrl)];
  const url = `postgres://${server.username}:${server.password}@127.0.0.1:${port}${server.pathname}`;
  const pidFile = join(folder, "run", "pgbouncer.pid");
  const settings = [
    "[databases]",
    `* = host=${server.hostname} port=${server.port}`,
    "[pgbouncer]",
    `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =`,
    `auth_type = scram-sha-256\nauth_file = ${join(folder, "users.txt")}`,
    "pool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 200",
    `pidfile = ${pidFile}`,
  ];
  const files = [
    ["users.txt", `"${server.username}" "${server.password}"\n`],
    ["pgbouncer.ini", `${settings.join("\n")}\n`],
  ] as const;
  for (const [name, content] of files) writeFileSync(join(folder, name), content, { mode: 0o600 });
  mkdirSync(join(folder, "run"));
  if (owner !== null) {
    const paths = [folder, join(folder, "run"), ...files.map(([name]) => join(folder, name))];
    for (const path of paths) chownSync(path, owner.uid, owner.gid);
  }
  const start = (): Keeper => keep(programPath("pgbouncer") ?? "pgbouncer", [join(folder, "pgbouncer.ini")], owner);
  const pid = (): number => Number.parseInt(readFileSync(pidFile, "utf8"), 10);
  return serverOf({ url, folder, start, pid });
}

interface ServerParts {
  readonly url: string;
  readonly folder: string;
  readonly start: () => Keeper;
  /** Of the running server's first process. */
  readonly pid: () => number;
}

async function serverOf({ url, folder, start, pid }: ServerParts): Promise<TestServer> {
  let keeper = await startAgain(start, url);
  return {
    url,
    crash: async () => {
      const killed = keeper;
      process.kill(pid(), "SIGKILL");
      await killed.ended();
      keeper = await startAgain(start, url);
    },
    stop: async () => {
      keeper.end();
      await keeper.ended();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** What a killed server leaves behind keeps the next from starting until its own processes have noticed. */
async function startAgain(start: () => Keeper, url: string): Promise<Keeper> {
  let keeper = start();
  await until(
    "the server answers",
    async () => {
      if (keeper.lastWords() !== null) keeper = start();
      const pool = postgresPool(url, 1);
      try {
        return (await pool.query("SELECT 1")).rows.length === 1;
      } finally {
        await pool.end();
      }
    },
    60_000,
  );
  return keeper;
}
