/**
 * The cluster version says which commands may stand in the log and what a snapshot may hold. It is a number in the replicated state, it only
 * rises, and nothing of a version is written before the cluster has reached it: until then the release before can go on from the same data.
 */
import type { Command } from "./types.js";

export interface VersionRange {
  readonly min: number;
  readonly max: number;
}

/** Of a cluster that was never told otherwise, and of every log and snapshot that names none. */
export const firstVersion = 1;

/** The cluster versions in which this release can run. */
export const versionRange: VersionRange = { min: firstVersion, max: 2 };

/** From which cluster version on a command may be proposed. A new one gets `versionRange.max`, which rises with each release that has some. */
export const commandVersions: Readonly<Record<Command["kind"], number>> = {
  openSession: 1,
  closeSession: 1,
  acquire: 1,
  release: 1,
  cancel: 1,
  setInfo: 1,
  expireSessions: 1,
  suspectSessions: 1,
  renewSuspects: 1,
  forceRelease: 1,
  endLockDelay: 1,
  endHold: 1,
  setClusterVersion: 1,
  setSigningKey: 2,
};

/** This release can't run the cluster version that the log or a snapshot has reached. Nothing is wrong with the data. */
export class VersionError extends Error {
  override readonly name: string = "VersionError";
  readonly code = "wrong_version";
  readonly version: number;

  constructor(version: number, problem: string) {
    super(problem);
    this.version = version;
  }
}

/** What a person has to do about it, as a sentence; null when a release with this range can go on from a state of this version. */
export function versionProblem(version: number, range: VersionRange): string | null {
  if (version >= range.min && version <= range.max) return null;
  const own = range.min === range.max ? `version ${range.max}` : `versions ${range.min} to ${range.max}`;
  const start = `the cluster is at version ${version}, and this release runs ${own}`;
  if (version > range.max) return `${start}: start the newer release again, the upgrade to it was finalized`;
  return `${start}: upgrade by way of the releases between, and finalize each`;
}

/** Throws VersionError. */
export function checkVersion(version: number, range: VersionRange): void {
  const problem = versionProblem(version, range);
  if (problem !== null) throw new VersionError(version, problem);
}
