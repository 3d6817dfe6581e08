import { IncompatibleResourceError } from "../errors.js";
import type { Guarded } from "../guarded.js";
import type { StaleReporter } from "../reporting.js";
import type { PostgresResult } from "./types.js";

/** What a register holds when it took no token: read back by a statement with the columns `highest` (text) and `newer` (boolean). */
export type Refusal = "missing" | "not-newer";

/**
 * Why a guarded statement changed no row. The comparison itself was made by the database, on bigints: `pg` hands them over as
 * strings, and "10" < "9".
 * @throws StaleTokenError when the register holds a newer token.
 */
export function refusalFrom(found: PostgresResult, guarded: Guarded, reporter: StaleReporter): Refusal {
  const row = found.rows[0];
  if (row === undefined) return "missing";
  const highest = tokenFrom(row["highest"], guarded.resource);
  if (row["newer"] === true) throw reporter.refusal(guarded, highest);
  return "not-newer";
}

/** The race was lost again and again, or something lets the row be read and not be written. */
export function neverTaken(guarded: Guarded): IncompatibleResourceError {
  return new IncompatibleResourceError(
    guarded.resource,
    `the register of ${guarded.resource} is there and holds no newer token than ${guarded.token}, yet it was not written: ` +
      "look for a trigger or a row-level security policy that stops the write",
  );
}

function tokenFrom(text: unknown, resource: string): number {
  const token = typeof text === "string" && /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(token)) {
    throw new IncompatibleResourceError(resource, `the fence of ${resource} holds ${String(text)}, which is no token`);
  }
  return token;
}
