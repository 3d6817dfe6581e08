/**
 * Where a restored cluster continues (docs/operations.md, "Restore"). Every token that the old cluster gave out must lie below, also those
 * that it gave out after the backup, which nobody here knows. Time bounds them: no cluster appends 2^20 entries in every second since 1970,
 * so its indexes lie below the seconds of the Unix clock x 2^20; and so do those of a cluster that was restored by this very rule.
 * Not those of a cluster that was put ahead of the clock (--above, --first-index): its backups tell, and somebody must say where to go on.
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

/** What a backup says of its cluster. */
export interface BackupMoment {
  /** The last entry that it has. */
  readonly index: number;
  /** Unix milliseconds when that entry was there already, by the clock of another machine perhaps. */
  readonly takenAtMs: number;
}

/** `above`: what somebody knows of the tokens out there, or null. Throws RestoreIndexError. */
export function restoreIndexFor(backup: BackupMoment, above: number | null, wallMs: number): RestoreIndex {
  if (above !== null && (!Number.isSafeInteger(above) || above < 0 || above > aboveMax)) {
    throw new RestoreIndexError("unsafe_above", `--above ${above} is not a whole number from 0 to ${aboveMax}`);
  }
  const clockIndex = clockIndexAt(wallMs);
  if (!(wallMs >= wallMsMin) || clockIndex > clockIndexMax) {
    throw new RestoreIndexError("absurd_clock", `this machine's clock says ${timeText(wallMs)}: set it right first`);
  }
  // A number that the backup is beyond says nothing of what was given out since.
  if (above === null || above <= backup.index) assertClockVouches(backup, wallMs);
  const index = Math.max(clockIndex, above ?? 0);
  const notBeforeMs = (Math.floor(wallMs / 1_000) + 1) * 1_000;
  return { index, notBeforeMs, isAheadOfClock: index > clockIndex };
}

/** All that was there at `takenAtMs` was there before now. Throws RestoreIndexError. */
export function assertClockAfter(takenAtMs: number, wallMs: number): void {
  if (wallMs >= takenAtMs) return;
  const problem = `this machine's clock says ${timeText(wallMs)}, and what is to be restored is of ${timeText(takenAtMs)}`;
  throw new RestoreIndexError("index_unknown", `${problem}: ${advice}`);
}

const advice = "set the clock right, or say with --above a number above every token that was given out since";

/**
 * A cluster whose index lay below the clock's when the backup was taken stays below it. One that ran ahead (by --above or --first-index)
 * need not be overtaken yet, even if the clock has passed the backup: nobody here knows how far it went since.
 */
function assertClockVouches({ index, takenAtMs }: BackupMoment, wallMs: number): void {
  assertClockAfter(takenAtMs, wallMs);
  const clockIndex = clockIndexAt(takenAtMs);
  if (index < clockIndex) return;
  const problem = `the backup ends with index ${index}, and the clock vouched for ${clockIndex} only when it was taken`;
  const reason = `its cluster ran ahead of the clock (${timeText(takenAtMs)})`;
  const remedy = `say with --above a number above ${index} and every token that was given out since`;
  throw new RestoreIndexError("index_unknown", `${problem}: ${reason}; ${remedy}`);
}

function clockIndexAt(wallMs: number): number {
  return Math.floor(wallMs / 1_000) * entriesPerSecond;
}

function timeText(wallMs: number): string {
  const time = new Date(wallMs);
  return Number.isNaN(time.getTime()) ? String(wallMs) : time.toISOString();
}
