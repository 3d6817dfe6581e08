import { InvalidArgumentError } from "../errors.js";
import { described } from "../fence.js";
import type { SqliteDatabase, SqliteRow } from "./types.js";

export function checkDatabase(database: unknown): void {
  const parts = database as Partial<SqliteDatabase> | null | undefined;
  if (typeof parts?.prepare !== "function" || typeof parts.exec !== "function") {
    throw new InvalidArgumentError("database", "must have the shape of a better-sqlite3 Database or a DatabaseSync");
  }
}

/**
 * Runs one statement. Whole numbers are bound as bigints: both drivers bind any number as a floating one, which a column without a type
 * keeps so, and of which a text column makes "42.0".
 */
export function rowsOf(database: SqliteDatabase, sql: string, values: readonly unknown[]): SqliteRow[] {
  const bound = values.map((value) => (Number.isSafeInteger(value) ? BigInt(value as number) : value));
  return database.prepare(sql).all(...(bound as never[])) as SqliteRow[];
}

/** Null when the driver doesn't tell. */
export function isInTransaction(database: SqliteDatabase): boolean | null {
  return database.inTransaction ?? database.isTransaction ?? null;
}

/**
 * BEGIN IMMEDIATE, `take`, `body`, COMMIT. The write lock is held from the beginning, so no other connection changes a fence before the
 * end. An error on the way rolls back and comes as it is.
 * @throws InvalidArgumentError when the body ended the transaction itself, or is asynchronous.
 */
export function runTransaction<T>(database: SqliteDatabase, take: () => void, body: () => T): T {
  if (typeof body !== "function") throw new InvalidArgumentError("body", "must be a function");
  database.exec("BEGIN IMMEDIATE");
  try {
    take();
    const result = body();
    if (typeof (result as { then?: unknown } | null | undefined)?.then === "function") {
      throw new InvalidArgumentError(
        "body",
        "must not be asynchronous: other statements would come into its transaction",
      );
    }
    if (isInTransaction(database) === false) {
      throw new InvalidArgumentError("body", "ended the transaction itself: what it wrote is not fenced");
    }
    database.exec("COMMIT");
    return result;
  } catch (error) {
    rollBack(database);
    throw error;
  }
}

/** SQLite has rolled back by itself after some errors; then there is nothing to roll back. */
function rollBack(database: SqliteDatabase): void {
  if (isInTransaction(database) === false) return;
  try {
    database.exec("ROLLBACK");
  } catch {
    // The error that led here is the one to see.
  }
}

/** What may be bound. SQLite's drivers take no other values, and a boolean or undefined would be an error of theirs without a name. */
export function checkBindable(value: unknown, argument: string): void {
  const isFine =
    value === null ||
    typeof value === "string" ||
    typeof value === "bigint" ||
    typeof value === "number" ||
    value instanceof Uint8Array;
  if (!isFine) throw new InvalidArgumentError(argument, `can't be stored by SQLite: ${described(value)}`);
}
