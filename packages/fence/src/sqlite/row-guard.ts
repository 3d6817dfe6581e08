import { IncompatibleResourceError, InvalidArgumentError, ResourceMissingError } from "../errors.js";
import { fenceOf } from "../fence.js";
import type { FenceSource } from "../fence.js";
import type { Guarded } from "../guarded.js";
import { checkOptionNames } from "../options.js";
import { StaleReporter, reportingOptionNames } from "../reporting.js";
import type { ReportingOptions } from "../reporting.js";
import { checkedRowKey, checkNotOwn, columnEntries, isSameInCapitals } from "../row-arguments.js";
import { quotedName } from "./identifiers.js";
import { refusalFrom } from "./register.js";
import { checkBindable, checkDatabase, isInTransaction, rowsOf, runTransaction } from "./session.js";
import type { SqliteDatabase, SqliteRow } from "./types.js";

export interface SqliteGuardOptions extends ReportingOptions {
  readonly table: string;
  /** A column with a primary key or a unique constraint. */
  readonly key: string;
  /** The column with the highest token accepted: `INTEGER NOT NULL DEFAULT 0`. NULL counts as 0. */
  readonly fence: string;
}

export type SqliteKey = string | number | bigint;

/**
 * Guards rows that bear their own fence. Every method refuses a token below the row's fence with StaleTokenError and a row that isn't
 * there with ResourceMissingError, having changed nothing, and leaves the row's fence at the token. A token equal to the fence is
 * accepted again. Throws InvalidArgumentError for a mistake in an argument; errors of the database come as they are.
 */
export interface SqliteGuard {
  /** Writes the columns of `values` in one statement; returns the whole row as it stands then. */
  update<R extends object = SqliteRow>(lock: FenceSource, id: SqliteKey, values: object): R;
  /** As `update`, but makes the row when it isn't there. It can't know the tokens of a row that was deleted. */
  upsert<R extends object = SqliteRow>(lock: FenceSource, id: SqliteKey, values: object): R;
  /** Raises the fence and returns the row: from now on no older holder can change what was read. */
  read<R extends object = SqliteRow>(lock: FenceSource, id: SqliteKey): R;
  /** Takes the row's fence, then runs `body`, which must not be asynchronous, in one transaction. */
  transaction<T>(lock: FenceSource, id: SqliteKey, body: () => T): T;
  /** Takes the row's fence inside a transaction of your own; make it the first statement, and roll back when it throws. */
  take(lock: FenceSource, id: SqliteKey): void;
}

/** @throws InvalidArgumentError naming the option. */
export function sqliteGuard(database: SqliteDatabase, options: SqliteGuardOptions): SqliteGuard {
  checkDatabase(database);
  return new RowGuard(database, options);
}

class RowGuard implements SqliteGuard {
  readonly #database: SqliteDatabase;
  readonly #options: SqliteGuardOptions;
  readonly #reporter: StaleReporter;
  readonly #table: string;
  readonly #key: string;
  readonly #fence: string;

  constructor(database: SqliteDatabase, options: SqliteGuardOptions) {
    checkOptionNames(options, "options", ["table", "key", "fence", ...reportingOptionNames]);
    this.#table = quotedName(options.table, "options.table");
    this.#key = quotedName(options.key, "options.key");
    this.#fence = quotedName(options.fence, "options.fence");
    if (isSameInCapitals(this.#key, this.#fence)) {
      throw new InvalidArgumentError("options.fence", "must be another column than the key");
    }
    this.#database = database;
    this.#options = { ...options };
    this.#reporter = new StaleReporter("sqlite", options, options.table);
  }

  update<R extends object = SqliteRow>(lock: FenceSource, id: SqliteKey, values: object): R {
    const { names, bound } = this.#checkedValues(values, 1);
    const sets = [...names, this.#fence].map((name) => `${name} = ?`).join(", ");
    const guarded = this.#guarded(lock, id);
    const sql = `UPDATE ${this.#table} SET ${sets} WHERE ${this.#key} = ? AND ${this.#isOpen(this.#fence)} RETURNING *`;
    return this.#run<R>(guarded, id, sql, [...bound, guarded.token, id, guarded.token]);
  }

  upsert<R extends object = SqliteRow>(lock: FenceSource, id: SqliteKey, values: object): R {
    const { names, bound } = this.#checkedValues(values, 0);
    const guarded = this.#guarded(lock, id);
    const sets = [this.#fence, ...names].map((name) => `${name} = excluded.${name}`).join(", ");
    const sql =
      `INSERT INTO ${this.#table} AS guarded (${[this.#key, this.#fence, ...names].join(", ")}) ` +
      `VALUES (${["?", "?", ...bound.map(() => "?")].join(", ")}) ` +
      `ON CONFLICT (${this.#key}) DO UPDATE SET ${sets} WHERE ${this.#isOpen(`guarded.${this.#fence}`)} RETURNING *`;
    return this.#run<R>(guarded, id, sql, [id, guarded.token, ...bound, guarded.token]);
  }

  read<R extends object = SqliteRow>(lock: FenceSource, id: SqliteKey): R {
    return this.#raise(this.#guarded(lock, id), id) as R;
  }

  transaction<T>(lock: FenceSource, id: SqliteKey, body: () => T): T {
    const guarded = this.#guarded(lock, id);
    return runTransaction(this.#database, () => void this.#raise(guarded, id), body);
  }

  take(lock: FenceSource, id: SqliteKey): void {
    const guarded = this.#guarded(lock, id);
    if (isInTransaction(this.#database) === false) {
      throw new InvalidArgumentError("database", "has no open transaction: the fence would not hold for what follows");
    }
    this.#raise(guarded, id);
  }

  #raise(guarded: Guarded, id: SqliteKey): SqliteRow {
    const sql = `UPDATE ${this.#table} SET ${this.#fence} = ? WHERE ${this.#key} = ? AND ${this.#isOpen(this.#fence)} RETURNING *`;
    return this.#run(guarded, id, sql, [guarded.token, id, guarded.token]);
  }

  /** SQLite compares any text as greater than any number, and text with text by its letters: only integers are compared. */
  #isOpen(fence: string): string {
    return `typeof(COALESCE(${fence}, 0)) = 'integer' AND COALESCE(${fence}, 0) <= ?`;
  }

  #run<R extends object>(guarded: Guarded, id: SqliteKey, sql: string, values: readonly unknown[]): R {
    const [row, second] = rowsOf(this.#database, sql, values);
    const { table, key } = this.#options;
    if (second !== undefined) {
      throw new IncompatibleResourceError(
        guarded.resource,
        `${table}.${key} is not unique: several rows share one value, and each would need its own lock`,
      );
    }
    if (row !== undefined) return row as R;
    const read =
      `SELECT typeof(COALESCE(${this.#fence}, 0)) AS kind, CAST(COALESCE(${this.#fence}, 0) AS TEXT) AS highest ` +
      `FROM ${this.#table} WHERE ${this.#key} = ?`;
    refusalFrom(rowsOf(this.#database, read, [id])[0], guarded, this.#reporter);
    throw new ResourceMissingError(
      guarded.resource,
      `no row of ${table} has ${key} = ${id} (guarded by ${guarded.resource})`,
    );
  }

  #guarded(lock: FenceSource, id: unknown): Guarded {
    const key = checkedRowKey(id);
    const fence = fenceOf(lock);
    return { ...fence, resource: fence.resource ?? `${this.#options.table}/${key}` };
  }

  #checkedValues(values: unknown, columnsMin: number): { names: string[]; bound: unknown[] } {
    const entries = columnEntries(values, columnsMin);
    const own = { key: this.#key, fence: this.#fence, isSame: isSameInCapitals };
    const names = entries.map(([column, value]) => {
      const argument = `values.${column}`;
      const name = quotedName(column, argument);
      checkNotOwn(name, argument, own);
      checkBindable(value, argument);
      return name;
    });
    return { names, bound: entries.map(([, value]) => value) };
  }
}
