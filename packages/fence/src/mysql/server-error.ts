interface ServerError {
  readonly errno: number;
  readonly sqlState: string;
}

/** The server's own answer, or null for what the driver or the network says. */
function serverErrorOf(error: unknown): ServerError | null {
  if (typeof error !== "object" || error === null) return null;
  const { errno, sqlState } = error as Partial<ServerError>;
  return typeof errno === "number" && typeof sqlState === "string" ? { errno, sqlState } : null;
}

/** ER_LOCK_DEADLOCK: the whole transaction was rolled back, and a new one may well succeed. */
export function isDeadlock(error: unknown): boolean {
  return serverErrorOf(error)?.errno === 1213;
}

/** ER_DUP_ENTRY. */
export function isDuplicate(error: unknown): boolean {
  return serverErrorOf(error)?.errno === 1062;
}

/** After these the transaction may be gone, and each further statement would stand for itself. ER_LOCK_WAIT_TIMEOUT, ER_LOCK_DEADLOCK. */
export function mayHaveRolledBack(error: unknown): boolean {
  const errno = serverErrorOf(error)?.errno;
  return errno === 1205 || errno === 1213;
}

/** Shutdown, an interrupted or killed connection, a failure in the commit itself: they can follow the commit. */
const afterEffect = new Set([1053, 1080, 1180, 1317, 1927, 3169]);

/** The statement certainly had no effect: the server refused it, or the driver could not even write it down. */
export function hadNoEffect(error: unknown): boolean {
  if (error instanceof TypeError || error instanceof RangeError) return true;
  const found = serverErrorOf(error);
  return found !== null && !found.sqlState.startsWith("08") && !afterEffect.has(found.errno);
}
