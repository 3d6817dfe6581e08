/** The SQLSTATE of a database's answer, or null for anything else. (`EPIPE` has five capitals too, but no digit in front.) */
export function sqlStateOf(error: unknown): string | null {
  if (typeof error !== "object" || error === null || !("code" in error)) return null;
  const code = error.code;
  return typeof code === "string" && /^(?:[0-9][0-9A-Z]|F0|HV|P0|XX)[0-9A-Z]{3}$/.test(code) ? code : null;
}

/** Serialization failure or deadlock: the transaction was rolled back, and a new one may well succeed. */
export function isSerializationFailure(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === "40001" || state === "40P01";
}

/**
 * The statement certainly had no effect: the database refused it, or the driver could not even write it down. False for lost
 * connections, driver timeouts, servers going down (57Pxx), I/O and internal errors: those can follow the commit itself.
 */
export function hadNoEffect(error: unknown): boolean {
  if (error instanceof TypeError || error instanceof RangeError) return true;
  const state = sqlStateOf(error);
  if (state === null || state === "40003" || state.startsWith("57P")) return false;
  return !["08", "53", "58", "F0", "XX"].includes(state.slice(0, 2));
}
