/** Both MySQL guards behind the interface of the one suite, on MariaDB. */
import type { ReportingOptions } from "@holdfast/fence";
import { mysqlFenceTableSql, mysqlFences, mysqlGuard } from "@holdfast/fence/mysql";
import type { MysqlTransaction } from "@holdfast/fence/mysql";
import type { GuardedStore, NamedFence, Place, StoreKind, Stored } from "../guarded-store.js";
import { mysqlPool, skipWithoutMariadb, startMariadb } from "../mariadb-server.js";
import type { TestMysqlPool } from "../mariadb-server.js";

const noteTable = `
  CREATE TABLE notes (
    name VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin PRIMARY KEY,
    body TEXT,
    \`lines\` TEXT NOT NULL DEFAULT '[]',
    fence BIGINT UNSIGNED
  ) ENGINE = InnoDB`;

const common = {
  guard: "mysql",
  skip: skipWithoutMariadb(),
  changesSeveral: true,
  crashes: true,
  start: async (): Promise<Place> => {
    const mariadb = await startMariadb();
    const pool = mysqlPool(mariadb.url);
    await pool.query(noteTable);
    await pool.query(mysqlFenceTableSql());
    await pool.end();
    return { address: mariadb.url, stop: mariadb.stop, crash: mariadb.crash };
  },
};

const setBody = "INSERT INTO notes (name, body) VALUES (?, ?) ON DUPLICATE KEY UPDATE body = VALUES(body)";
const makeRow = "INSERT IGNORE INTO notes (name) VALUES (?)";

async function rowsFrom(result: Promise<readonly [unknown, ...unknown[]]>): Promise<Record<string, unknown>[]> {
  return (await result)[0] as Record<string, unknown>[];
}

/** Adds a line by a read and a write, as an application would. */
async function addLine(tx: MysqlTransaction, name: string, line: string): Promise<void> {
  const [row] = await rowsFrom(tx.execute("SELECT `lines` FROM notes WHERE name = ?", [name]));
  const lines = [...(JSON.parse((row?.["lines"] as string | undefined) ?? "[]") as string[]), line];
  await tx.execute(
    "INSERT INTO notes (name, `lines`) VALUES (?, ?) ON DUPLICATE KEY UPDATE `lines` = VALUES(`lines`)",
    [name, JSON.stringify(lines)],
  );
}

async function storedBy(pool: TestMysqlPool, sql: string, values: unknown[]): Promise<Stored> {
  const [row] = (await rowsFrom(pool.query(sql, values))) as {
    body: string | null;
    lines: string | null;
    token: string | null;
  }[];
  return {
    body: row?.body ?? null,
    lines: JSON.parse(row?.lines ?? "[]") as string[],
    token: row === undefined || row.token === null ? null : Number(row.token),
  };
}

export const mysqlRows: StoreKind = {
  ...common,
  kind: "MariaDB, fence in the row",
  remembersRemoved: false,
  async open(address: string, reporting: ReportingOptions): Promise<GuardedStore> {
    const pool = mysqlPool(address);
    const notes = mysqlGuard(pool, { table: "notes", key: "name", fence: "fence", ...reporting });
    return {
      write: async (fence, body) => void (await notes.upsert(fence, fence.resource, { body })),
      read: async (fence) => (await notes.read<{ body: string | null }>(fence, fence.resource)).body,
      append: async (fence, line) => {
        await pool.query(makeRow, [fence.resource]);
        await notes.transaction(fence, fence.resource, (tx) => addLine(tx, fence.resource, line));
      },
      remove: (fence) =>
        notes.transaction(fence, fence.resource, async (tx) => {
          await tx.execute("DELETE FROM notes WHERE name = ?", [fence.resource]);
        }),
      writeAll: async ([first, ...others], body) => {
        if (first === undefined) return;
        for (const { resource } of [first, ...others]) await pool.query(makeRow, [resource]);
        await notes.transaction(first, first.resource, async (tx) => {
          for (const fence of others) await notes.take(tx, fence, fence.resource);
          for (const { resource } of [first, ...others]) await tx.execute(setBody, [resource, body]);
        });
      },
      stored: (name) =>
        storedBy(pool, "SELECT body, `lines`, CAST(fence AS CHAR) AS token FROM notes WHERE name = ?", [name]),
      close: () => pool.end(),
    };
  },
};

export const mysqlFenceTable: StoreKind = {
  ...common,
  kind: "MariaDB, table of fences",
  remembersRemoved: true,
  async open(address: string, reporting: ReportingOptions): Promise<GuardedStore> {
    const pool = mysqlPool(address);
    const fences = mysqlFences(pool, reporting);
    const writeAll = (of: readonly NamedFence[], body: string): Promise<void> =>
      fences.transaction(of, async (tx) => {
        for (const { resource } of of) await tx.execute(setBody, [resource, body]);
      });
    const stored =
      "SELECT body, `lines`, CAST(token AS CHAR) AS token FROM (SELECT 1) AS one " +
      "LEFT JOIN notes ON name = ? LEFT JOIN holdfast_fences ON resource = CAST(? AS BINARY)";
    return {
      write: (fence, body) => writeAll([fence], body),
      read: (fence) =>
        fences.transaction(fence, async (tx) => {
          const [row] = await rowsFrom(tx.execute("SELECT body FROM notes WHERE name = ?", [fence.resource]));
          return (row?.["body"] as string | null | undefined) ?? null;
        }),
      append: (fence, line) => fences.transaction(fence, (tx) => addLine(tx, fence.resource, line)),
      remove: (fence) =>
        fences.transaction(fence, async (tx) => {
          await tx.execute("DELETE FROM notes WHERE name = ?", [fence.resource]);
        }),
      writeAll,
      stored: (name) => storedBy(pool, stored, [name, name]),
      close: () => pool.end(),
    };
  },
};
