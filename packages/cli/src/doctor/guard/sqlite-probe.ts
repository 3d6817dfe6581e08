/** SQLite for `doctor --guard`: scratch tables in a database file that is there already. */
import { statSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { sqliteFenceTableSql, sqliteFences, sqliteGuard } from "@holdfast/fence/sqlite";
import type { SqliteDatabase } from "@holdfast/fence/sqlite";
import { CommandFailure } from "../../command-failure.js";
import type { Finding } from "../finding.js";
import { ok, warning } from "../finding.js";
import type { GuardProbe, ProbedStore, StoredProbe } from "./examine-guard.js";
import type { ProbePlace } from "./probe-store.js";

interface Database extends SqliteDatabase {
  close(): void;
}

/** Of better-sqlite3 the module itself, of node:sqlite a part. */
type Driver =
  | (new (
      file: string,
      options: object,
    ) => Database)
  | { readonly DatabaseSync: new (file: string) => Database };

/** Each token goes through one of them: what one has written the others must see. */
const connections = 4;

export async function probeSqlite({ url, folder, scratch, driver, timeoutMs }: ProbePlace): Promise<ProbedStore> {
  const file = databaseFile(url, folder);
  const databases: Database[] = [];
  const closeAll = (): void => databases.forEach((database) => database.close());
  try {
    while (databases.length < connections) databases.push(opened(driver as Driver, file, timeoutMs));
    const [database] = databases as [Database, ...Database[]];
    const hasFences = rowsOf(database, "SELECT 1 FROM sqlite_schema WHERE name = 'holdfast_fences'").length > 0;
    const table = hasFences ? "holdfast_fences" : `${scratch}_fences`;
    const remove = (): void => {
      database.exec(`DROP TABLE IF EXISTS ${scratch}`);
      if (hasFences) database.exec(`DELETE FROM ${table} WHERE resource = '${scratch}'`);
      else database.exec(`DROP TABLE IF EXISTS ${table}`);
    };
    try {
      database.exec(`CREATE TABLE ${scratch} (id INTEGER PRIMARY KEY, body TEXT, fence INTEGER NOT NULL DEFAULT 0)`);
      database.exec(`INSERT INTO ${scratch} (id) VALUES (1), (2)`);
      if (!hasFences) database.exec(sqliteFenceTableSql({ table }));
    } catch (error) {
      remove();
      throw error;
    }
    return {
      name: `SQLite ${textOf(rowsOf(database, "SELECT sqlite_version() AS version")[0]?.["version"]) ?? ""}`,
      probes: [rowProbe(databases, scratch), tableProbe(databases, scratch, table, hasFences)],
      settings: [durability(database)],
      close: async () => {
        remove();
        closeAll();
      },
    };
  } catch (error) {
    closeAll();
    throw error;
  }
}

/** `sqlite:app.db`, `sqlite:///srv/app.db` and `file:///srv/app.db`. The drivers would make a file that isn't there. */
export function databaseFile(url: string, folder: string): string {
  const [, given = ""] = /^sqlite:(?:\/\/(?=\/))?([^/].*|\/(?!\/).*)$/s.exec(url) ?? [];
  const isFileUrl = /^file:\/\/\/./.test(url) && URL.canParse(url);
  if (given === "" && !isFileUrl) {
    const problem =
      "--guard wants the file of a SQLite database: sqlite:app.db, sqlite:///srv/app.db or file:///srv/app.db";
    throw new CommandFailure("usage", "invalid_argument", problem);
  }
  const file = isFileUrl ? fileURLToPath(url) : path.resolve(folder, given);
  const found = statSync(file, { throwIfNoEntry: false });
  if (found?.isFile() === true && found.size > 0) return file;
  const what = found === undefined ? "isn't there" : found.isFile() ? "is empty" : "is no file";
  throw new CommandFailure("error", "store_failed", `${file} ${what}: --guard checks a database, and makes none`);
}

function opened(driver: Driver, file: string, timeoutMs: number): Database {
  if (typeof driver === "function") return new driver(file, { fileMustExist: true, timeout: timeoutMs });
  const database = new driver.DatabaseSync(file);
  database.exec(`PRAGMA busy_timeout = ${timeoutMs}`);
  return database;
}

function rowProbe(databases: readonly Database[], scratch: string): GuardProbe {
  const guards = databases.map((database) => sqliteGuard(database, { table: scratch, key: "id", fence: "fence" }));
  return {
    form: `a fence in the row (${scratch})`,
    meeting: "one after the other",
    write: async (token, text) =>
      void guards[token % guards.length]?.update({ resource: scratch, token }, 1, { body: text }),
    stored: async () => storedIn(databases, `SELECT body, CAST(fence AS TEXT) AS token FROM ${scratch} WHERE id = 1`),
  };
}

function tableProbe(databases: readonly Database[], scratch: string, table: string, isReal: boolean): GuardProbe {
  const guards = databases.map((database) => ({ database, fences: sqliteFences(database, { table }) }));
  const token = `SELECT CAST(token AS TEXT) FROM ${table} WHERE resource = '${scratch}'`;
  return {
    form: isReal ? `the table of fences (${table})` : "a table of fences (made for this)",
    meeting: "one after the other",
    write: async (presented, text) => {
      const guard = guards[presented % guards.length];
      guard?.fences.transaction({ resource: scratch, token: presented }, () => {
        rowsOf(guard.database, `UPDATE ${scratch} SET body = ? WHERE id = 2 RETURNING id`, text);
      });
    },
    stored: async () => storedIn(databases, `SELECT body, (${token}) AS token FROM ${scratch} WHERE id = 2`),
  };
}

function storedIn(databases: readonly Database[], sql: string): StoredProbe {
  const row = databases[0] === undefined ? undefined : rowsOf(databases[0], sql)[0];
  return { text: textOf(row?.["body"]), token: textOf(row?.["token"]) };
}

/** Of a connection's own settings nobody else knows: what the driver begins with is what a program has that sets nothing. */
function durability(database: Database): Finding {
  const journal = Object.values(rowsOf(database, "PRAGMA journal_mode")[0] ?? {})[0];
  const synchronous = Number(Object.values(rowsOf(database, "PRAGMA synchronous")[0] ?? {})[0]);
  if (synchronous >= 2) {
    const seen = "a write that was acknowledged is on the disk, unless your program sets synchronous lower";
    return ok("durable", `${seen} (journal_mode is ${String(journal)})`);
  }
  return warning("durable", {
    node: null,
    seen: `with journal_mode ${String(journal)} this driver's connections begin with synchronous = ${synchronous === 1 ? "NORMAL" : "OFF"}`,
    why: "After a power failure the last writes are forgotten, and their fences with them: an old holder may get in.",
    mend: "PRAGMA synchronous = FULL on each connection that writes guarded data",
  });
}

function rowsOf(database: Database, sql: string, ...values: string[]): Record<string, unknown>[] {
  return database.prepare(sql).all(...(values as never[])) as Record<string, unknown>[];
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
