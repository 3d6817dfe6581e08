import { IncompatibleResourceError } from "../errors.js";
import type { Guarded } from "../guarded.js";
import type { StaleReporter } from "../reporting.js";
import type { SqliteRow } from "./types.js";

/**
 * Why a guarded statement changed no row, from a row with `kind` (its SQLite type) and `highest` (text: a driver may round a number or
 * refuse it). Returns "missing" when there is no row.
 * @throws StaleTokenError, or IncompatibleResourceError when the register holds something else than a token, or no newer one.
 */
export function refusalFrom(row: SqliteRow | undefined, guarded: Guarded, reporter: StaleReporter): "missing" {
  if (row === undefined) return "missing";
  const { resource, token } = guarded;
  const highest = row["kind"] === "integer" ? Number(row["highest"]) : Number.NaN;
  if (!Number.isSafeInteger(highest) || highest < 0) {
    throw new IncompatibleResourceError(
      resource,
      `the fence of ${resource} holds ${String(row["highest"])} of type ${String(row["kind"])}, which is no token: is its column an INTEGER?`,
    );
  }
  if (highest > token) throw reporter.refusal(guarded, highest);
  throw new IncompatibleResourceError(
    resource,
    `the register of ${resource} holds no newer token than ${token}, yet it was not written: look for a trigger that stops the write`,
  );
}
