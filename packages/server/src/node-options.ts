/** From the configuration file to the options of the parts. */
import { versionRange } from "@holdfast/lock";
import type { Config } from "./config.js";
import type { NodeHostOptions } from "./node-host-types.js";

/** One synced batch: large enough to share a slow disk's sync among many, small enough to be written in some milliseconds. */
const writeBytesMax = 4 * 1024 * 1024;
/** Of a snapshot: a million locks at less than 10 ms a turn. */
const usualRecordsPerPiece = 1_000;

export function nodeHostOptionsFor(
  config: Config,
  nodeId: string,
  clusterId: string,
  version: string,
  recordsPerPiece: number = usualRecordsPerPiece,
): NodeHostOptions {
  const { timing, limits } = config;
  return {
    clusterId,
    versions: versionRange,
    raft: {
      id: nodeId,
      electionTimeoutMsMin: timing.electionTimeoutMs,
      heartbeatMs: timing.heartbeatMs,
      diskStallMs: timing.diskStallMs,
      limits: {
        uncommittedBytesMax: limits.uncommittedBytesMax,
        reservedBytesMax: limits.reservedBytesMax,
        appendsInFlightMax: limits.appendsInFlightMax,
        appendBytesMax: limits.appendBytesMax,
        appendEntriesMax: limits.appendEntriesMax,
        committedBytesPerOutputMax: limits.committedBytesPerOutputMax,
        trailingEntriesMax: limits.trailingEntriesMax,
      },
    },
    gateway: { nodeId, version, ttlMsMin: timing.ttlMsMin, ttlMsMax: timing.ttlMsMax, sessionsMax: limits.sessionsMax },
    unappliedEntriesMax: limits.unappliedEntriesMax,
    snapshots: { snapshotEntries: limits.snapshotEntries, snapshotBytes: limits.snapshotBytes, recordsPerPiece },
    writeBytesMax,
  };
}
