/** The replicated lock machine: sessions, locks, queues, tokens. Pure: it knows no clock, no disk and no network. */
export type * from "./types.js";
export { LockMachine } from "./lock-machine.js";
export { NewerSnapshotError, SnapshotError } from "./record-reader.js";
export type { SnapshotCursor } from "./snapshot-cursor.js";
export { SnapshotLoader } from "./snapshot-loader.js";
export type { SnapshotPiece, SnapshotRecord, SnapshotValue } from "./snapshot-records.js";
export { checkVersion, commandVersions, firstVersion, versionProblem, versionRange, VersionError } from "./versions.js";
export type { VersionRange } from "./versions.js";
export type { LockList, RunningDelay, TimedHold } from "./views.js";
