/** Debian's MariaDB on a free port, with its files in a temporary folder. */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { MysqlConnection } from "@holdfast/fence/mysql";
import { until } from "../harness/until.js";
import { driver, mayMiss, skipWithoutDriver } from "./drivers.js";
import { freePort, keep, programPath } from "./keeper.js";
import type { Keeper } from "./keeper.js";

/** The part of a pool of `mysql2/promise` that tests use. */
export interface TestMysqlPool {
  getConnection(): Promise<MysqlConnection & { readonly threadId: number }>;
  query(sql: string, values?: unknown[]): Promise<[unknown, unknown]>;
  end(): Promise<void>;
}

export interface TestMariadb {
  readonly url: string;
  /** Kills the server, starts it on the same port and files, and resolves when it answers. */
  crash(): Promise<void>;
  stop(): Promise<void>;
}

/** For a test's `skip`: what to install, or false. With CI set nothing may be missing. */
export function skipWithoutMariadb(): string | false {
  if (!mayMiss()) return false;
  if (programPath("mariadbd") === null || programPath("mariadb-install-db") === null) {
    return "MariaDB is not installed: run `apt-get install mariadb-server-core mariadb-client-core`";
  }
  return skipWithoutDriver("mysql2");
}

export function mysqlPool(url: string, options: object = {}): TestMysqlPool {
  const { createPool } = driver("mysql2/promise") as { createPool(options: object): TestMysqlPool };
  return createPool({ uri: url, connectionLimit: 10, ...options });
}

export async function startMariadb(): Promise<TestMariadb> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-mariadb-"));
  const data = join(folder, "data");
  // One that starts clears away what it takes for leavings in its folder for temporary files, and two share the machine's.
  const temporary = join(folder, "tmp");
  mkdirSync(temporary);
  const { username } = userInfo();
  // Without root's socket login, and without the tables that only the plugins need.
  const install = [
    "--no-defaults",
    `--datadir=${data}`,
    `--tmpdir=${temporary}`,
    `--user=${username}`,
    "--auth-root-authentication-method=normal",
  ];
  await promisify(execFile)(programPath("mariadb-install-db") ?? "mariadb-install-db", [...install, "--skip-test-db"]);
  const port = await freePort();
  const start = (): Keeper =>
    keep(programPath("mariadbd") ?? "mariadbd", [
      "--no-defaults",
      `--datadir=${data}`,
      `--tmpdir=${temporary}`,
      `--user=${username}`,
      `--port=${port}`,
      "--bind-address=127.0.0.1",
      `--socket=${join(folder, "socket")}`,
      `--pid-file=${join(folder, "pid")}`,
      "--innodb-buffer-pool-size=32M",
      "--innodb-log-file-size=16M",
    ]);
  let keeper = start();
  const url = `mysql://root@127.0.0.1:${port}/notes`;
  await untilReady(`mysql://root@127.0.0.1:${port}/mysql`, keeper);
  await once(`mysql://root@127.0.0.1:${port}/mysql`, "CREATE DATABASE IF NOT EXISTS notes CHARACTER SET utf8mb4");
  return {
    url,
    crash: async () => {
      const old = keeper;
      process.kill(Number(readFileSync(join(folder, "pid"), "utf8")), "SIGKILL");
      await old.ended();
      keeper = start();
      await untilReady(url, keeper);
    },
    stop: async () => {
      keeper.end();
      await keeper.ended();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function untilReady(url: string, keeper: Keeper): Promise<void> {
  await until(
    "MariaDB answers",
    async () => {
      const words = keeper.lastWords();
      if (words !== null) throw new Error(`MariaDB did not start: ${words}`);
      await once(url, "SELECT 1");
      return true;
    },
    60_000,
  );
}

async function once(url: string, sql: string): Promise<void> {
  const pool = mysqlPool(url, { connectionLimit: 1 });
  try {
    await pool.query(sql);
  } finally {
    await pool.end();
  }
}
