import { InvalidArgumentError } from "../errors.js";
import { checkOptionNames } from "../options.js";
import { reportingOptionNames } from "../reporting.js";
import type { ReportingOptions } from "../reporting.js";
import { checkNotOwn, columnEntries } from "../row-arguments.js";
import { quotedIdentifier, quotedTable } from "./identifiers.js";

export interface PostgresGuardOptions extends ReportingOptions {
  /** The guarded table. One name, not a path: see `schema`. */
  readonly table: string;
  /** Default: the connection's search_path. */
  readonly schema?: string;
  /** A column with a primary key or a unique constraint. */
  readonly key: string;
  /** The column with the highest token accepted: `bigint NOT NULL DEFAULT 0`. NULL counts as 0. */
  readonly fence: string;
  /** The key of the row that a lock guards, for `transaction(lock, body)`. Default: the lock's name itself. */
  readonly keyFor?: (resource: string) => PostgresKey;
}

export type PostgresKey = string | number | bigint;

/** Parameters: $1 the token, $2 the key, from $3 on the values in the order of their columns. */
export interface RowStatements {
  readonly update: (columns: readonly string[]) => string;
  readonly upsert: (columns: readonly string[]) => string;
  /** Raises the fence alone. */
  readonly raise: string;
  /** As `raise`, and returns the id of the transaction. */
  readonly take: string;
  /** The row, if its fence is exactly the token. */
  readonly readHeld: string;
  /** What the fence holds, after a statement that found no row to change. */
  readonly readFence: string;
}

/** @throws InvalidArgumentError naming the option. */
export function rowStatements(options: PostgresGuardOptions): RowStatements {
  checkOptionNames(options, "options", ["table", "schema", "key", "fence", "keyFor", ...reportingOptionNames]);
  if (options.keyFor !== undefined && typeof options.keyFor !== "function") {
    throw new InvalidArgumentError("options.keyFor", "must be a function from a lock's name to a key");
  }
  const table = quotedTable(options.table, options.schema);
  const key = quotedIdentifier(options.key, "options.key");
  const fence = quotedIdentifier(options.fence, "options.fence");
  if (key === fence) throw new InvalidArgumentError("options.fence", "must be another column than the key");

  // The one rule, in one statement: the database compares and writes under the row's lock. A statement that waited for another
  // writer looks at the row again before it writes.
  const isTaken = `${key} = $2 AND COALESCE(${fence}, 0) <= $1::bigint`;
  const quoted = (column: string): string => valueColumn(column, key, fence);
  const raise = `UPDATE ${table} SET ${fence} = $1::bigint WHERE ${isTaken}`;
  return {
    update: (columns) => {
      const sets = columns.map((column, at) => `${quoted(column)} = $${at + 3}`);
      return `UPDATE ${table} SET ${[...sets, `${fence} = $1::bigint`].join(", ")} WHERE ${isTaken} RETURNING *`;
    },
    upsert: (columns) => {
      const names = columns.map(quoted);
      const values = columns.map((_, at) => `$${at + 3}`);
      const sets = names.map((name) => `${name} = EXCLUDED.${name}`);
      return (
        `INSERT INTO ${table} AS guarded (${[key, fence, ...names].join(", ")}) ` +
        `VALUES (${["$2", "$1::bigint", ...values].join(", ")}) ` +
        `ON CONFLICT (${key}) DO UPDATE SET ${[...sets, `${fence} = $1::bigint`].join(", ")} ` +
        `WHERE COALESCE(guarded.${fence}, 0) <= $1::bigint RETURNING *`
      );
    },
    raise: `${raise} RETURNING *`,
    take: `${raise} RETURNING txid_current()::text AS transaction`,
    readHeld: `SELECT * FROM ${table} WHERE ${key} = $2 AND ${fence} = $1::bigint`,
    readFence:
      `SELECT COALESCE(${fence}, 0)::text AS highest, COALESCE(${fence}, 0) > $1::bigint AS newer ` +
      `FROM ${table} WHERE ${key} = $2`,
  };
}

/** Columns and values of an object, in one order. `undefined` is refused: the driver would write NULL. */
export function checkedValues(values: unknown, columnsMin: number): { columns: string[]; parameters: unknown[] } {
  const entries = columnEntries(values, columnsMin);
  const missing = entries.find(([, value]) => value === undefined);
  if (missing !== undefined) {
    throw new InvalidArgumentError(`values.${missing[0]}`, "is undefined: leave the column out, or write null");
  }
  return { columns: entries.map(([column]) => column), parameters: entries.map(([, value]) => value) };
}

function valueColumn(column: string, key: string, fence: string): string {
  const argument = `values.${column}`;
  const quoted = quotedIdentifier(column, argument);
  checkNotOwn(quoted, argument, { key, fence, isSame: Object.is });
  return quoted;
}
