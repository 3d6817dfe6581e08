/** Both SQLite guards, each in both drivers, behind the interface of the one suite. */
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ReportingOptions } from "@holdfast/fence";
import { sqliteFenceTableSql, sqliteFences, sqliteGuard } from "@holdfast/fence/sqlite";
import type { SqliteDatabase } from "@holdfast/fence/sqlite";
import { driver, skipWithoutDriver } from "../drivers.js";
import type { GuardedStore, NamedFence, Place, StoreKind, Stored } from "../guarded-store.js";
import { unavailable } from "../guarded-store.js";

export interface OpenDatabase extends SqliteDatabase {
  close(): void;
}

interface SqliteDriver {
  readonly name: string;
  readonly skip: string | false;
  open(path: string): OpenDatabase;
}

/** Writers of other processes hold the file for as long as the disk takes: on a busy machine that is long. */
const busyTimeoutMs = 60_000;

const nodeMajor = Number.parseInt(process.versions.node, 10);

function openBetterSqlite(path: string): OpenDatabase {
  const Database = driver("better-sqlite3") as new (path: string, options: object) => OpenDatabase;
  return new Database(path, { timeout: busyTimeoutMs });
}

const betterSqlite: SqliteDriver = {
  name: "better-sqlite3",
  skip: skipOnOtherNode(),
  open: openBetterSqlite,
};

const nodeSqlite: SqliteDriver = {
  name: "node:sqlite",
  skip: nodeMajor < 22 ? "node:sqlite comes with Node 22" : false,
  open(path) {
    // Through require: Node 20 has no such module, and its types neither.
    const { DatabaseSync } = createRequire(import.meta.url)("node:sqlite") as {
      readonly DatabaseSync: new (path: string) => OpenDatabase;
    };
    const database = new DatabaseSync(path);
    database.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    return database;
  },
};

export const sqliteDrivers: readonly SqliteDriver[] = [betterSqlite, nodeSqlite];

/** The add-on is compiled for the Node that installed it. On a newer one node:sqlite is there to be tested. */
function skipOnOtherNode(): string | false {
  const missing = skipWithoutDriver("better-sqlite3");
  if (missing !== false || nodeMajor < 22) return missing;
  try {
    openBetterSqlite(":memory:").close();
    return false;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_DLOPEN_FAILED") throw error;
    return "better-sqlite3 was built for another Node";
  }
}

/** A database in a folder of its own, with the tables of these tests. One driver's is in WAL mode, the other's in the usual one. */
export function sqliteFile(from: SqliteDriver): { readonly path: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-sqlite-"));
  const path = join(folder, "notes.db");
  const database = from.open(path);
  if (from === betterSqlite) database.exec("PRAGMA journal_mode = WAL");
  database.exec(`
    CREATE TABLE notes (name TEXT PRIMARY KEY, body TEXT, lines TEXT NOT NULL DEFAULT '[]', fence INTEGER);
    ${sqliteFenceTableSql()}`);
  database.close();
  return { path, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

function kindsOf(from: SqliteDriver): StoreKind[] {
  const common = {
    guard: "sqlite",
    changesSeveral: true,
    crashes: false,
    skip: from.skip,
    start: async (): Promise<Place> => {
      const { path, remove } = sqliteFile(from);
      return { address: path, stop: async () => remove(), crash: unavailable };
    },
  };
  return [
    {
      ...common,
      kind: `SQLite by ${from.name}, fence in the row`,
      remembersRemoved: false,
      open: async (address, reporting) => rowStore(from.open(address), reporting),
    },
    {
      ...common,
      kind: `SQLite by ${from.name}, table of fences`,
      remembersRemoved: true,
      open: async (address, reporting) => tableStore(from.open(address), reporting),
    },
  ];
}

export const sqliteKinds: readonly StoreKind[] = sqliteDrivers.flatMap(kindsOf);

function all(database: OpenDatabase, sql: string, ...values: string[]): Record<string, unknown>[] {
  return database.prepare(sql).all(...(values as never[])) as Record<string, unknown>[];
}

function run(database: OpenDatabase, sql: string, ...values: string[]): void {
  all(database, `${sql} RETURNING name`, ...values);
}

const setBody = "INSERT INTO notes (name, body) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET body = excluded.body";
const makeRow = "INSERT INTO notes (name) VALUES (?) ON CONFLICT DO NOTHING";

/** Adds a line by a read and a write, as an application would. */
function addLine(database: OpenDatabase, name: string, line: string): void {
  const [row] = all(database, "SELECT lines FROM notes WHERE name = ?", name);
  const lines = [...(JSON.parse((row?.["lines"] as string | undefined) ?? "[]") as string[]), line];
  run(
    database,
    "INSERT INTO notes (name, lines) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET lines = excluded.lines",
    name,
    JSON.stringify(lines),
  );
}

/** One statement is one moment. */
function storedBy(database: OpenDatabase, sql: string, name: string): Stored {
  const row = all(database, sql, name)[0] as
    | { body: string | null; lines: string | null; token: string | null; type: string }
    | undefined;
  if (row !== undefined && row.token !== null && row.type !== "integer") throw new Error(`the fence is a ${row.type}`);
  return {
    body: row?.body ?? null,
    lines: JSON.parse(row?.lines ?? "[]") as string[],
    token: row === undefined || row.token === null ? null : Number(row.token),
  };
}

function rowStore(database: OpenDatabase, reporting: ReportingOptions): GuardedStore {
  const notes = sqliteGuard(database, { table: "notes", key: "name", fence: "fence", ...reporting });
  const select = "SELECT body, lines, CAST(fence AS TEXT) AS token, typeof(fence) AS type FROM notes WHERE name = ?";
  return {
    write: async (fence, body) => void notes.upsert(fence, fence.resource, { body }),
    read: async (fence) => notes.read<{ body: string | null }>(fence, fence.resource).body,
    append: async (fence, line) => {
      run(database, makeRow, fence.resource);
      notes.transaction(fence, fence.resource, () => addLine(database, fence.resource, line));
    },
    remove: async (fence) =>
      notes.transaction(fence, fence.resource, () => run(database, "DELETE FROM notes WHERE name = ?", fence.resource)),
    writeAll: async ([first, ...others], body) => {
      if (first === undefined) return;
      for (const { resource } of [first, ...others]) run(database, makeRow, resource);
      notes.transaction(first, first.resource, () => {
        for (const fence of others) notes.take(fence, fence.resource);
        for (const { resource } of [first, ...others]) run(database, setBody, resource, body);
      });
    },
    stored: async (name) => storedBy(database, select, name),
    close: async () => database.close(),
  };
}

function tableStore(database: OpenDatabase, reporting: ReportingOptions): GuardedStore {
  const fences = sqliteFences(database, reporting);
  const select =
    "SELECT body, lines, CAST(token AS TEXT) AS token, typeof(token) AS type FROM (SELECT ? AS wanted) " +
    "LEFT JOIN notes ON name = wanted LEFT JOIN holdfast_fences ON resource = wanted";
  const writeAll = async (of: readonly NamedFence[], body: string): Promise<void> =>
    fences.transaction(of, () => {
      for (const { resource } of of) run(database, setBody, resource, body);
    });
  return {
    write: (fence, body) => writeAll([fence], body),
    read: async (fence) =>
      fences.transaction(fence, () => {
        const [row] = all(database, "SELECT body FROM notes WHERE name = ?", fence.resource);
        return (row?.["body"] as string | null | undefined) ?? null;
      }),
    append: async (fence, line) => fences.transaction(fence, () => addLine(database, fence.resource, line)),
    remove: async (fence) =>
      fences.transaction(fence, () => run(database, "DELETE FROM notes WHERE name = ?", fence.resource)),
    writeAll,
    stored: async (name) => storedBy(database, select, name),
    close: async () => database.close(),
  };
}
