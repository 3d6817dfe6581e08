import { InvalidArgumentError } from "../errors.js";
import type { FenceSource } from "../fence.js";
import { namedFences } from "../guarded.js";
import type { Guarded } from "../guarded.js";
import { checkOptionNames } from "../options.js";
import { StaleReporter, reportingOptionNames } from "../reporting.js";
import type { ReportingOptions } from "../reporting.js";
import { quotedTable } from "./identifiers.js";
import { neverTaken, refusalFrom } from "./register.js";
import { attemptsMax, checkPool } from "./session.js";
import type { PostgresSession } from "./session.js";
import { checkedTransactionOptions, runTransaction } from "./transaction.js";
import type { TransactionBody, TransactionOptions } from "./transaction.js";
import type { PostgresPool, PostgresQueryable } from "./types.js";

export interface FenceTableOptions extends ReportingOptions {
  /** Default `holdfast_fences`. One name, not a path: see `schema`. */
  readonly table?: string;
  /** Default: the connection's search_path. */
  readonly schema?: string;
}

/**
 * Guards whatever a transaction touches, in any number of tables, by one row per resource in a table of fences. The fences stay
 * when the data is deleted. A resource must be guarded here or in its own row, never in both.
 */
export interface PostgresFences {
  /**
   * Takes the fence row of each lock's resource, then runs `body`, in one transaction. Resolves with the body's result once it is
   * committed. Rejects with StaleTokenError (the body was not run, nothing was changed), UnknownOutcomeError when the connection
   * was lost during COMMIT, InvalidArgumentError; an error of the body rolls back and comes as it is.
   */
  transaction<T>(
    locks: FenceSource | readonly FenceSource[],
    body: TransactionBody<T>,
    options?: TransactionOptions,
  ): Promise<T>;
  /**
   * Takes the fence rows inside a transaction of your own; make it the first thing there, and roll back when it rejects.
   * A serialization failure (40001) comes as it is.
   */
  take(client: PostgresQueryable, locks: FenceSource | readonly FenceSource[]): Promise<void>;
}

/** @throws InvalidArgumentError naming the option. */
export function postgresFences(pool: PostgresPool, options: FenceTableOptions = {}): PostgresFences {
  checkPool(pool);
  return new FenceTable(pool, options);
}

/**
 * The SQL that makes the table of fences; run it once, with your migrations. Never delete its rows while their locks can be taken.
 * @throws InvalidArgumentError naming the option.
 */
export function fenceTableSql(options: FenceTableOptions = {}): string {
  // Collation "C": names are bytes, and no update of the system's locales can put the index out of order.
  return (
    `CREATE TABLE IF NOT EXISTS ${fenceTableName(options)} (\n` +
    '  resource text COLLATE "C" PRIMARY KEY,\n' +
    "  token bigint NOT NULL CHECK (token >= 1)\n" +
    ");\n"
  );
}

class FenceTable implements PostgresFences {
  readonly #pool: PostgresPool;
  readonly #take: string;
  readonly #read: string;
  readonly #reporter: StaleReporter;

  constructor(pool: PostgresPool, options: FenceTableOptions) {
    this.#pool = pool;
    this.#reporter = new StaleReporter("postgres", options);
    const table = fenceTableName(options);
    this.#take =
      `INSERT INTO ${table} AS guarded (resource, token) VALUES ($1, $2::bigint) ` +
      "ON CONFLICT (resource) DO UPDATE SET token = EXCLUDED.token WHERE guarded.token <= EXCLUDED.token " +
      "RETURNING txid_current()::text AS transaction";
    this.#read = `SELECT token::text AS highest, token > $2::bigint AS newer FROM ${table} WHERE resource = $1`;
  }

  async transaction<T>(
    locks: FenceSource | readonly FenceSource[],
    body: TransactionBody<T>,
    options: TransactionOptions = {},
  ): Promise<T> {
    const fences = namedFences(locks);
    if (typeof body !== "function") throw new InvalidArgumentError("body", "must be a function");
    const plan = {
      ...checkedTransactionOptions(options),
      resource: fences.map(({ resource }) => resource).join(", "),
      fences,
      take: (session: PostgresSession) => this.#takeAll(session, fences),
    };
    return runTransaction(this.#pool, plan, body);
  }

  async take(client: PostgresQueryable, locks: FenceSource | readonly FenceSource[]): Promise<void> {
    await this.#takeAll(client, namedFences(locks));
  }

  async #takeAll(client: PostgresQueryable, fences: readonly Guarded[]): Promise<string> {
    let transactionId = "";
    for (const fence of fences) transactionId = await this.#takeOne(client, fence);
    return transactionId;
  }

  async #takeOne(client: PostgresQueryable, fence: Guarded): Promise<string> {
    const parameters = [fence.resource, fence.token];
    for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
      const taken = await client.query(this.#take, parameters);
      const row = taken.rows[0];
      if (row !== undefined) return String(row["transaction"]);
      refusalFrom(await client.query(this.#read, parameters), fence, this.#reporter);
    }
    throw neverTaken(fence);
  }
}

function fenceTableName(options: FenceTableOptions): string {
  checkOptionNames(options, "options", ["table", "schema", ...reportingOptionNames]);
  return quotedTable(options.table ?? "holdfast_fences", options.schema);
}
