import { InvalidArgumentError, ResourceMissingError } from "../errors.js";
import { fenceOf } from "../fence.js";
import type { FenceSource } from "../fence.js";
import type { Guarded } from "../guarded.js";
import { checkOptionNames } from "../options.js";
import { StaleReporter, reportingOptionNames } from "../reporting.js";
import type { ReportingOptions } from "../reporting.js";
import { checkedRowKey, checkNotOwn, columnEntries, isSameInCapitals } from "../row-arguments.js";
import { quotedName, quotedTable } from "./identifiers.js";
import { takeRegister } from "./register.js";
import { attemptsMax, checkPool, checkedBodyRuns, runTransaction } from "./transaction.js";
import type { MysqlBody, MysqlTransactionOptions } from "./transaction.js";
import { rowsOf } from "./types.js";
import type { MysqlPool, MysqlQueryable, MysqlRow } from "./types.js";

export interface MysqlGuardOptions extends ReportingOptions {
  /** The guarded table, of InnoDB. One name, not a path: see `schema`. */
  readonly table: string;
  /** Default: the connection's database. */
  readonly schema?: string;
  /** A column with a primary key or a unique constraint. */
  readonly key: string;
  /** The column with the highest token accepted: `BIGINT UNSIGNED NOT NULL DEFAULT 0`. NULL counts as 0. */
  readonly fence: string;
}

/** Handed over as text: a number would make the server compare a column of text as numbers, and "42 or so" is 42 then. */
export type MysqlKey = string | number | bigint;

/**
 * Guards rows that bear their own fence, by a short transaction each: fence, write, COMMIT. Every method refuses a token below the
 * row's fence with StaleTokenError and a row that isn't there with ResourceMissingError, having changed nothing, and leaves the row's
 * fence at the token. A token equal to the fence is accepted again. Rejects with UnknownOutcomeError when the connection was lost
 * during COMMIT, and with InvalidArgumentError for a mistake in an argument; other errors of the database come as they are.
 */
export interface MysqlGuard {
  /** Writes the columns of `values`; resolves with the whole row as it stands then. */
  update<R extends object = MysqlRow>(lock: FenceSource, id: MysqlKey, values: object): Promise<R>;
  /** As `update`, but makes the row when it isn't there. It can't know the tokens of a row that was deleted. */
  upsert<R extends object = MysqlRow>(lock: FenceSource, id: MysqlKey, values: object): Promise<R>;
  /** Raises the fence and resolves with the row: from now on no older holder can change what was read. */
  read<R extends object = MysqlRow>(lock: FenceSource, id: MysqlKey): Promise<R>;
  /** Takes the row's fence, then runs `body`, in one transaction. An error of the body rolls back and comes as it is. */
  transaction<T>(lock: FenceSource, id: MysqlKey, body: MysqlBody<T>, options?: MysqlTransactionOptions): Promise<T>;
  /** Takes the row's fence inside a transaction of your own; make it the first statement, and roll back when it rejects. */
  take(connection: MysqlQueryable, lock: FenceSource, id: MysqlKey): Promise<void>;
}

/** @throws InvalidArgumentError naming the option. */
export function mysqlGuard(pool: MysqlPool, options: MysqlGuardOptions): MysqlGuard {
  checkPool(pool);
  return new RowGuard(pool, options);
}

class RowGuard implements MysqlGuard {
  readonly #pool: MysqlPool;
  readonly #options: MysqlGuardOptions;
  readonly #reporter: StaleReporter;
  readonly #table: string;
  readonly #key: string;
  readonly #fence: string;

  constructor(pool: MysqlPool, options: MysqlGuardOptions) {
    checkOptionNames(options, "options", ["table", "schema", "key", "fence", ...reportingOptionNames]);
    this.#table = quotedTable(options.table, options.schema);
    this.#key = quotedName(options.key, "options.key");
    this.#fence = quotedName(options.fence, "options.fence");
    if (isSameInCapitals(this.#key, this.#fence))
      throw new InvalidArgumentError("options.fence", "must be another column than the key");
    this.#pool = pool;
    this.#options = { ...options };
    this.#reporter = new StaleReporter("mysql", options, options.table);
  }

  async update<R extends object = MysqlRow>(lock: FenceSource, id: MysqlKey, values: object): Promise<R> {
    const { names, bound } = this.#checkedValues(values, 1);
    return this.#write<R>(lock, id, { names, bound, makesRow: false });
  }

  async upsert<R extends object = MysqlRow>(lock: FenceSource, id: MysqlKey, values: object): Promise<R> {
    const { names, bound } = this.#checkedValues(values, 0);
    return this.#write<R>(lock, id, { names, bound, makesRow: true });
  }

  async read<R extends object = MysqlRow>(lock: FenceSource, id: MysqlKey): Promise<R> {
    return this.#write<R>(lock, id, { names: [], bound: [], makesRow: false });
  }

  async transaction<T>(
    lock: FenceSource,
    id: MysqlKey,
    body: MysqlBody<T>,
    options: MysqlTransactionOptions = {},
  ): Promise<T> {
    const guarded = this.#guarded(lock, id);
    if (typeof body !== "function") throw new InvalidArgumentError("body", "must be a function");
    return runTransaction(this.#pool, {
      resource: guarded.resource,
      fences: [guarded],
      take: (connection) => this.#takeRow(connection, guarded, id),
      body,
      bodyRunsMax: checkedBodyRuns(options),
    });
  }

  async take(connection: MysqlQueryable, lock: FenceSource, id: MysqlKey): Promise<void> {
    await this.#takeRow(connection, this.#guarded(lock, id), id);
  }

  async #write<R extends object>(lock: FenceSource, id: MysqlKey, write: ColumnsWrite): Promise<R> {
    const guarded = this.#guarded(lock, id);
    const { names, bound, makesRow } = write;
    let isMissing = false;
    return runTransaction(this.#pool, {
      resource: guarded.resource,
      fences: [guarded],
      take: async (connection) => {
        isMissing = !(await this.#isTaken(connection, guarded, id));
        if (isMissing && !makesRow) throw this.#missing(guarded, id);
      },
      body: async (tx) => {
        const key = String(id);
        if (isMissing) {
          const columns = [this.#key, this.#fence, ...names];
          const marks = ["?", "CAST(? AS UNSIGNED)", ...bound.map(() => "?")];
          const sql = `INSERT INTO ${this.#table} (${columns.join(", ")}) VALUES (${marks.join(", ")})`;
          await tx.execute(sql, [key, String(guarded.token), ...bound]);
          // A server that isn't strict cuts a token down to what the column holds.
          await this.#takeRow(tx, guarded, id);
        } else if (names.length > 0) {
          const sets = names.map((name) => `${name} = ?`).join(", ");
          await tx.execute(`UPDATE ${this.#table} SET ${sets} WHERE ${this.#key} = ?`, [...bound, key]);
        }
        const [row] = await rowsOf(tx, `SELECT * FROM ${this.#table} WHERE ${this.#key} = ?`, [key]);
        if (row === undefined) throw this.#missing(guarded, id);
        return row as R;
      },
      bodyRunsMax: attemptsMax,
      isSingleWrite: true,
    });
  }

  async #takeRow(connection: MysqlQueryable, guarded: Guarded, id: MysqlKey): Promise<void> {
    if (!(await this.#isTaken(connection, guarded, id))) throw this.#missing(guarded, id);
  }

  #isTaken(connection: MysqlQueryable, guarded: Guarded, id: MysqlKey): Promise<boolean> {
    const fence = `COALESCE(${this.#fence}, 0)`;
    const token = String(guarded.token);
    const key = String(id);
    const statements = {
      raise:
        `UPDATE ${this.#table} SET ${this.#fence} = CAST(? AS UNSIGNED) ` +
        // A server that isn't strict takes any text for the number 0.
        `WHERE ${this.#key} = ? AND ${fence} <= CAST(? AS UNSIGNED) AND CAST(${fence} AS CHAR) REGEXP '^[0-9]+$'`,
      raiseValues: [token, key, token],
      look:
        `SELECT CAST(${fence} AS CHAR) AS highest, ${fence} = CAST(? AS UNSIGNED) AS held, ` +
        `${fence} > CAST(? AS UNSIGNED) AS newer FROM ${this.#table} WHERE ${this.#key} = ? FOR UPDATE`,
      lookValues: [token, token, key],
    };
    return takeRegister(connection, guarded, statements, this.#reporter);
  }

  #missing(guarded: Guarded, id: MysqlKey): ResourceMissingError {
    const { table, key } = this.#options;
    const problem = `no row of ${table} has ${key} = ${id} (guarded by ${guarded.resource})`;
    return new ResourceMissingError(guarded.resource, problem);
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
      if (value === undefined)
        throw new InvalidArgumentError(argument, "is undefined: leave the column out, or write null");
      return name;
    });
    return { names, bound: entries.map(([, value]) => value) };
  }
}

interface ColumnsWrite {
  readonly names: readonly string[];
  readonly bound: readonly unknown[];
  readonly makesRow: boolean;
}
