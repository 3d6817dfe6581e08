import { IncompatibleResourceError } from "../errors.js";
import type { Guarded } from "../guarded.js";
import type { StaleReporter } from "../reporting.js";
import { rowsOf } from "./types.js";
import type { MysqlQueryable } from "./types.js";

/** Two statements inside one transaction. Tokens are handed over as text and compared by the server, as numbers. */
export interface RegisterStatements {
  /** Writes the token if the register holds no greater one, and locks the row till the end of the transaction. */
  readonly raise: string;
  readonly raiseValues: readonly unknown[];
  /**
   * What the register holds then: `highest` (text), `held` and `newer`. A locking read, which sees the newest row at every isolation
   * level. It is looked at rather than the count of changed rows, which depends on a flag of the connection.
   */
  readonly look: string;
  readonly lookValues: readonly unknown[];
}

/**
 * Resolves with whether there is a register: a row, for a fence in the row.
 * @throws StaleTokenError, or IncompatibleResourceError for a register that can't hold the token or isn't one.
 */
export async function takeRegister(
  connection: MysqlQueryable,
  guarded: Guarded,
  statements: RegisterStatements,
  reporter: StaleReporter,
): Promise<boolean> {
  await connection.execute(statements.raise, [...statements.raiseValues] as never[]);
  const [row, second] = await rowsOf(connection, statements.look, statements.lookValues);
  if (row === undefined) return false;
  const { resource, token } = guarded;
  if (second !== undefined) {
    throw new IncompatibleResourceError(
      resource,
      `the key of ${resource} is not unique: several rows share one value, and each would need its own lock`,
    );
  }
  const text = String(row["highest"]);
  const highest = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(highest)) {
    throw new IncompatibleResourceError(resource, `the fence of ${resource} holds ${text}, which is no token`);
  }
  if (Number(row["newer"]) === 1) throw reporter.refusal(guarded, highest);
  if (Number(row["held"]) === 1) return true;
  throw new IncompatibleResourceError(
    resource,
    `the register of ${resource} holds ${text} after token ${token} was written to it: ` +
      "its column may be too small, or a trigger may stop the write",
  );
}
