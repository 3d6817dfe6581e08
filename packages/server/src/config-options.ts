/** Every number of the configuration file, with default and bounds: the schema and docs/configuration.md are made from this table. */
import { limits } from "@holdfast/wire";

export interface NumberOption {
  readonly path: string;
  readonly defaultValue: number;
  /** The words for a default that depends on another option; else the number itself. */
  readonly defaultText?: string;
  readonly min: number;
  readonly max: number;
}

export type TimingName = "heartbeatMs" | "electionTimeoutMs" | "diskStallMs" | "ttlMsMin" | "ttlMsMax";

export type LimitName =
  | "uncommittedBytesMax"
  | "unappliedEntriesMax"
  | "reservedBytesMax"
  | "appendsInFlightMax"
  | "appendBytesMax"
  | "appendEntriesMax"
  | "committedBytesPerOutputMax"
  | "trailingEntriesMax"
  | "snapshotEntries"
  | "snapshotBytes"
  | "clientConnectionsMax"
  | "httpRequestsMax"
  | "sessionsMax"
  | "clientBufferedBytesSlow"
  | "clientBufferedBytesMax"
  | "peerBufferedBytesMax";

const kib = 1024;
const mib = 1024 * kib;
const gib = 1024 * mib;

export const timingOptions: Readonly<Record<TimingName, NumberOption>> = {
  heartbeatMs: { path: "timing.heartbeatMs", defaultValue: 100, min: 10, max: 5_000 },
  electionTimeoutMs: { path: "timing.electionTimeoutMs", defaultValue: 500, min: 50, max: 20_000 },
  diskStallMs: {
    path: "timing.diskStallMs",
    defaultValue: 1_000,
    defaultText: "1000, or 2 x electionTimeoutMs if that is more",
    min: 100,
    max: 60_000,
  },
  ttlMsMin: {
    path: "timing.ttlMsMin",
    defaultValue: 2_000,
    defaultText: "2000, or 3 x electionTimeoutMs + 500 if that is more",
    min: 650,
    max: limits.ttlMsMax,
  },
  ttlMsMax: { path: "timing.ttlMsMax", defaultValue: limits.ttlMsMax, min: 650, max: limits.ttlMsMax },
};

function limit(name: LimitName, defaultValue: number, min: number, max: number): NumberOption {
  return { path: `limits.${name}`, defaultValue, min, max };
}

export const limitOptions: Readonly<Record<LimitName, NumberOption>> = {
  uncommittedBytesMax: limit("uncommittedBytesMax", limits.uncommittedBytesMax, 512 * kib, gib),
  unappliedEntriesMax: limit("unappliedEntriesMax", limits.unappliedEntriesMax, 64, 10_000_000),
  reservedBytesMax: limit("reservedBytesMax", limits.reservedBytesMax, 512 * kib, gib),
  appendsInFlightMax: limit("appendsInFlightMax", limits.appendsInFlightMax, 1, 1_024),
  appendBytesMax: limit("appendBytesMax", limits.appendBytesMax, limits.commandBytesMax, limits.peerFrameBytesMax),
  appendEntriesMax: limit("appendEntriesMax", limits.appendEntriesMax, 1, 8_000),
  committedBytesPerOutputMax: limit(
    "committedBytesPerOutputMax",
    limits.committedBytesPerOutputMax,
    limits.commandBytesMax,
    64 * mib,
  ),
  trailingEntriesMax: limit("trailingEntriesMax", limits.trailingEntriesMax, 0, 10_000_000),
  snapshotEntries: limit("snapshotEntries", 100_000, 10, 10_000_000),
  snapshotBytes: limit("snapshotBytes", 64 * mib, 64 * kib, gib),
  clientConnectionsMax: limit("clientConnectionsMax", limits.clientConnectionsMax, 1, 100_000),
  // Who waits over HTTP has a socket for it: as with connections, the process's file limit has to allow them.
  httpRequestsMax: limit("httpRequestsMax", 4_096, 1, 100_000),
  sessionsMax: limit("sessionsMax", limits.sessionsMax, 1, 1_000_000),
  clientBufferedBytesSlow: limit("clientBufferedBytesSlow", limits.clientBufferedBytesSlow, 64 * kib, gib),
  clientBufferedBytesMax: limit(
    "clientBufferedBytesMax",
    limits.clientBufferedBytesMax,
    2 * limits.serverFrameBytesMax,
    gib,
  ),
  peerBufferedBytesMax: limit("peerBufferedBytesMax", limits.peerBufferedBytesMax, limits.peerFrameBytesMax, gib),
};

/** In the order of docs/configuration.md. */
export const numberOptions: readonly NumberOption[] = [...Object.values(timingOptions), ...Object.values(limitOptions)];
