import { IncompatibleResourceError, InvalidArgumentError } from "../errors.js";
import type { FenceSource } from "../fence.js";
import { namedFences } from "../guarded.js";
import type { Guarded } from "../guarded.js";
import { checkOptionNames } from "../options.js";
import { StaleReporter, reportingOptionNames } from "../reporting.js";
import type { ReportingOptions } from "../reporting.js";
import { quotedTable } from "./identifiers.js";
import { takeRegister } from "./register.js";
import { checkPool, checkedBodyRuns, runTransaction } from "./transaction.js";
import type { MysqlBody, MysqlTransactionOptions } from "./transaction.js";
import type { MysqlPool, MysqlQueryable } from "./types.js";

export interface MysqlFenceTableOptions extends ReportingOptions {
  /** Default `holdfast_fences`. One name, not a path: see `schema`. */
  readonly table?: string;
  /** Default: the connection's database. */
  readonly schema?: string;
}

/**
 * Guards whatever a transaction touches, in any number of InnoDB tables, by one row per resource in a table of fences. The fences stay
 * when the data is deleted. A resource must be guarded here or in its own row, never in both.
 */
export interface MysqlFences {
  /**
   * Takes the fence row of each lock's resource, then runs `body`, in one transaction. Resolves with the body's result once it is
   * committed. Rejects with StaleTokenError (the body was not run, nothing was changed), UnknownOutcomeError when the connection
   * was lost during COMMIT, InvalidArgumentError; an error of the body rolls back and comes as it is.
   */
  transaction<T>(
    locks: FenceSource | readonly FenceSource[],
    body: MysqlBody<T>,
    options?: MysqlTransactionOptions,
  ): Promise<T>;
  /** Takes the fence rows inside a transaction of your own; make it the first thing there, and roll back when it rejects. */
  take(connection: MysqlQueryable, locks: FenceSource | readonly FenceSource[]): Promise<void>;
}

/** In bytes. A server that isn't strict would cut longer names off without an error, so that two of them become one. */
const resourceBytesMax = 1_024;

/** @throws InvalidArgumentError naming the option. */
export function mysqlFences(pool: MysqlPool, options: MysqlFenceTableOptions = {}): MysqlFences {
  checkPool(pool);
  return new FenceTable(pool, options);
}

/**
 * The SQL that makes the table of fences. Never delete its rows while their locks can be taken.
 * @throws InvalidArgumentError naming the option.
 */
export function mysqlFenceTableSql(options: MysqlFenceTableOptions = {}): string {
  // Bytes: every collation takes some names for the same, if only those that end in spaces.
  return (
    `CREATE TABLE IF NOT EXISTS ${tableName(options)} (\n` +
    `  resource VARBINARY(${resourceBytesMax}) NOT NULL PRIMARY KEY,\n` +
    "  token BIGINT UNSIGNED NOT NULL CHECK (token >= 1)\n" +
    ") ENGINE = InnoDB;\n"
  );
}

class FenceTable implements MysqlFences {
  readonly #pool: MysqlPool;
  readonly #raise: string;
  readonly #look: string;
  readonly #reporter: StaleReporter;

  constructor(pool: MysqlPool, options: MysqlFenceTableOptions) {
    const table = tableName(options);
    // The same bytes whatever the connection's character set is.
    const name = "CAST(CONVERT(? USING utf8mb4) AS BINARY)";
    this.#pool = pool;
    this.#raise =
      `INSERT INTO ${table} (resource, token) VALUES (${name}, CAST(? AS UNSIGNED)) ` +
      "ON DUPLICATE KEY UPDATE token = GREATEST(token, VALUES(token))";
    this.#look =
      "SELECT CAST(token AS CHAR) AS highest, token = CAST(? AS UNSIGNED) AS held, token > CAST(? AS UNSIGNED) AS newer " +
      `FROM ${table} WHERE resource = ${name} FOR UPDATE`;
    this.#reporter = new StaleReporter("mysql", options);
  }

  async transaction<T>(
    locks: FenceSource | readonly FenceSource[],
    body: MysqlBody<T>,
    options: MysqlTransactionOptions = {},
  ): Promise<T> {
    const fences = checkedFences(locks);
    if (typeof body !== "function") throw new InvalidArgumentError("body", "must be a function");
    return runTransaction(this.#pool, {
      resource: fences.map(({ resource }) => resource).join(", "),
      fences,
      take: (connection) => this.#takeAll(connection, fences),
      body,
      bodyRunsMax: checkedBodyRuns(options),
    });
  }

  async take(connection: MysqlQueryable, locks: FenceSource | readonly FenceSource[]): Promise<void> {
    await this.#takeAll(connection, checkedFences(locks));
  }

  async #takeAll(connection: MysqlQueryable, fences: readonly Guarded[]): Promise<void> {
    for (const fence of fences) {
      const { resource } = fence;
      const token = String(fence.token);
      const statements = {
        raise: this.#raise,
        raiseValues: [resource, token],
        look: this.#look,
        lookValues: [token, token, resource],
      };
      if (await takeRegister(connection, fence, statements, this.#reporter)) continue;
      throw new IncompatibleResourceError(
        resource,
        `the fence row of ${resource} is not there right after it was made`,
      );
    }
  }
}

function checkedFences(locks: FenceSource | readonly FenceSource[]): Guarded[] {
  const fences = namedFences(locks);
  const long = fences.find(({ resource }) => Buffer.byteLength(resource) > resourceBytesMax);
  if (long !== undefined) {
    throw new InvalidArgumentError("lock.resource", `must have at most ${resourceBytesMax} bytes`);
  }
  return fences;
}

function tableName(options: MysqlFenceTableOptions): string {
  checkOptionNames(options, "options", ["table", "schema", ...reportingOptionNames]);
  return quotedTable(options.table ?? "holdfast_fences", options.schema);
}
