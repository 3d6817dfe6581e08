/**
 * Where a restored cluster continues (docs/operations.md, "Restore"). Every token that the old cluster gave out must lie below, also those
 * that it gave out after the backup, which nobody here knows. Time bounds them: no cluster appends 2^20 entries in every second since 1970,
 * so its indexes lie below the seconds of the Unix clock x 2^20; and so do those of a cluster that was restored by this very rule.
 */

const entriesPerSecond = 2 ** 20;
/** 2024-01-01: a machine that says less has lost its time, and would put new tokens below old ones. */
const wallMsMin = 1_704_067_200_000;
/** Leaves room for as many entries again. */
export const aboveMax: number = 2 ** 52;
/** Of the clock: leaves room for 10^15 entries, and is reached in the year 2208. */
const clockIndexMax = Number.MAX_SAFE_INTEGER - 2 ** 50;

/** A restore that could give a token out twice. */
export class RestoreIndexError extends Error {
  readonly code: "absurd_clock" | "unsafe_above" | "index_unknown";

  constructor(code: RestoreIndexError["code"], problem: string) {
    super(problem);
    this.name = "RestoreIndexError";
    this.code = code;
  }
}

export interface RestoreIndex {
  /** The new log's entries come after it. */
  readonly index: number;
  /** Unix milliseconds before which the cluster must not begin: a second restore that starts later lands higher. */
  readonly notBeforeMs: number;
  /** `--above` was higher than what the clock says: the clock won't vouch for the next restore. */
  readonly isAheadOfClock: boolean;
}

/** `backupIndex`: of the backup; `above`: what somebody knows of the tokens out there, or null. Throws RestoreIndexError. */
export function restoreIndexFor(backupIndex: number, above: number | null, wallMs: number): RestoreIndex {
  if (above !== null && (!Number.isSafeInteger(above) || above < 0 || above > aboveMax)) {
    throw new RestoreIndexError("unsafe_above", `--above ${above} is not a whole number from 0 to ${aboveMax}`);
  }
  const second = Math.floor(wallMs / 1_000);
  const clockIndex = second * entriesPerSecond;
  if (!(wallMs >= wallMsMin) || clockIndex > clockIndexMax) {
    const now = Number.isFinite(wallMs) ? new Date(wallMs).toISOString() : String(wallMs);
    throw new RestoreIndexError("absurd_clock", `this machine's clock says ${now}: set it right first`);
  }
  const index = Math.max(clockIndex, above ?? 0);
  // At the backup's own index the tokens given out after it would be given out again.
  if (index <= backupIndex) {
    const problem = `the backup ends with index ${backupIndex}, and this machine's clock vouches for ${clockIndex} only`;
    const advice = "set the clock right, or say with --above a number above every token that was given out since";
    throw new RestoreIndexError("index_unknown", `${problem}: ${advice}`);
  }
  return { index, notBeforeMs: (second + 1) * 1_000, isAheadOfClock: index > clockIndex };
}
