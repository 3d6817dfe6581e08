import { InvalidArgumentError } from "../errors.js";
import type { Fence, FenceSource } from "../fence.js";
import { namedFences } from "../guarded.js";
import type { Guarded } from "../guarded.js";
import { checkOptionNames } from "../options.js";
import { StaleReporter, reportingOptionNames } from "../reporting.js";
import type { ReportingOptions } from "../reporting.js";
import { quotedName } from "./identifiers.js";
import { refusalFrom } from "./register.js";
import { checkDatabase, isInTransaction, rowsOf, runTransaction } from "./session.js";
import type { SqliteDatabase } from "./types.js";

export interface SqliteFenceTableOptions extends ReportingOptions {
  /** Default `holdfast_fences`. */
  readonly table?: string;
}

/**
 * Guards whatever a transaction touches by one row per resource in a table of fences. The fences stay when the data is deleted. A
 * resource must be guarded here or in its own row, never in both.
 */
export interface SqliteFences {
  /**
   * Takes the fence row of each lock's resource, then runs `body`, which must not be asynchronous, in one transaction. Throws
   * StaleTokenError (the body was not run, nothing was changed); an error of the body rolls back and comes as it is.
   */
  transaction<T>(locks: FenceSource | readonly FenceSource[], body: (fences: readonly Fence[]) => T): T;
  /** Takes the fence rows inside a transaction of your own; make it the first thing there, and roll back when it throws. */
  take(locks: FenceSource | readonly FenceSource[]): void;
}

/** @throws InvalidArgumentError naming the option. */
export function sqliteFences(database: SqliteDatabase, options: SqliteFenceTableOptions = {}): SqliteFences {
  checkDatabase(database);
  return new FenceTable(database, options);
}

/**
 * The SQL that makes the table of fences. Never delete its rows while their locks can be taken.
 * @throws InvalidArgumentError naming the option.
 */
export function sqliteFenceTableSql(options: SqliteFenceTableOptions = {}): string {
  return (
    `CREATE TABLE IF NOT EXISTS ${tableName(options)} (\n` +
    "  resource TEXT PRIMARY KEY NOT NULL,\n" +
    "  token INTEGER NOT NULL CHECK (typeof(token) = 'integer' AND token >= 1)\n" +
    ") WITHOUT ROWID;\n"
  );
}

class FenceTable implements SqliteFences {
  readonly #database: SqliteDatabase;
  readonly #take: string;
  readonly #read: string;
  readonly #reporter: StaleReporter;

  constructor(database: SqliteDatabase, options: SqliteFenceTableOptions) {
    const table = tableName(options);
    this.#database = database;
    this.#take =
      `INSERT INTO ${table} AS guarded (resource, token) VALUES (?, ?) ` +
      "ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE guarded.token <= excluded.token RETURNING resource";
    this.#read = `SELECT typeof(token) AS kind, CAST(token AS TEXT) AS highest FROM ${table} WHERE resource = ?`;
    this.#reporter = new StaleReporter("sqlite", options);
  }

  transaction<T>(locks: FenceSource | readonly FenceSource[], body: (fences: readonly Fence[]) => T): T {
    const fences = namedFences(locks);
    if (typeof body !== "function") throw new InvalidArgumentError("body", "must be a function");
    return runTransaction(
      this.#database,
      () => this.#takeAll(fences),
      () => body(fences),
    );
  }

  take(locks: FenceSource | readonly FenceSource[]): void {
    const fences = namedFences(locks);
    if (isInTransaction(this.#database) === false) {
      throw new InvalidArgumentError("database", "has no open transaction: the fence would not hold for what follows");
    }
    this.#takeAll(fences);
  }

  #takeAll(fences: readonly Guarded[]): void {
    for (const fence of fences) {
      if (rowsOf(this.#database, this.#take, [fence.resource, fence.token]).length > 0) continue;
      refusalFrom(rowsOf(this.#database, this.#read, [fence.resource])[0] ?? {}, fence, this.#reporter);
    }
  }
}

function tableName(options: SqliteFenceTableOptions): string {
  checkOptionNames(options, "options", ["table", ...reportingOptionNames]);
  return quotedName(options.table ?? "holdfast_fences", "options.table");
}
