import { InvalidArgumentError } from "../errors.js";
import { fenceOf } from "../fence.js";
import type { FenceSource } from "../fence.js";
import { checkOptionNames, quotedTable } from "./identifiers.js";
import { neverTaken, refusalFrom } from "./register.js";
import type { Guarded } from "./register.js";
import { attemptsMax, checkPool } from "./session.js";
import type { PostgresSession } from "./session.js";
import { checkedTransactionOptions, runTransaction } from "./transaction.js";
import type { TransactionBody, TransactionOptions } from "./transaction.js";
import type { PostgresPool, PostgresQueryable } from "./types.js";

export interface FenceTableOptions {
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

  constructor(pool: PostgresPool, options: FenceTableOptions) {
    this.#pool = pool;
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
    const fences = checkedFences(locks);
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
    await this.#takeAll(client, checkedFences(locks));
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
      refusalFrom(await client.query(this.#read, parameters), fence);
    }
    throw neverTaken(fence);
  }
}

/** In one order everywhere, so that two transactions over the same resources wait for each other and don't deadlock. */
function checkedFences(locks: FenceSource | readonly FenceSource[]): Guarded[] {
  const isList = Array.isArray(locks);
  const sources: readonly FenceSource[] = isList ? locks : [locks];
  if (sources.length === 0) throw new InvalidArgumentError("locks", "is empty");
  const tokens = new Map<string, number>();
  for (const [at, source] of sources.entries()) {
    const argument = isList ? `locks[${at}]` : "lock";
    const { resource, token } = fenceOf(source, argument);
    if (resource === undefined)
      throw new InvalidArgumentError(`${argument}.resource`, "is needed: it names the fence row");
    if ((tokens.get(resource) ?? token) !== token) {
      throw new InvalidArgumentError(argument, `is a second fence of ${resource} with another token`);
    }
    tokens.set(resource, token);
  }
  const byName = [...tokens].sort(([a], [b]) => (a < b ? -1 : 1));
  return byName.map(([resource, token]) => ({ resource, token }));
}

function fenceTableName(options: FenceTableOptions): string {
  checkOptionNames(options, "options", ["table", "schema"]);
  return quotedTable(options.table ?? "holdfast_fences", options.schema);
}
