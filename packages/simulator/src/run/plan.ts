/**
 * What one run will be, as plain data: drawn from a seed, or cut down by the shrinker. Faults name whom they hit by role, since who leads is
 * not known before the run.
 */
import type { RaftLimits } from "@holdfast/raft";
import { streamOf } from "../random.js";
import type { Random } from "../random.js";
import { changesMembers, drawCrashes, drawDivergence, drawFaults, drawLapses } from "./fault-kinds.js";
import { drawMembers, drawRelay } from "./fault-kinds.js";
import type { PlannedFault } from "./fault-kinds.js";

export interface Plan {
  readonly seed: number;
  /** Those that the cluster begins with. */
  readonly nodes: 1 | 3 | 5;
  /** Machines that may be added. */
  readonly spares: number;
  readonly firstIndex: number;
  readonly timing: PlannedTiming;
  readonly limits: PlannedLimits;
  readonly world: PlannedWorld;
  readonly clients: number;
  /** Clients that speak the protocol by hand, and badly. */
  readonly rawClients: number;
  /** Of each client's task: how much it does, at most. */
  readonly actionsMax: number;
  /** What clients' pauses are measured by. */
  readonly unitMs: number;
  readonly locks: number;
  /** Most holds last for about a TTL. */
  readonly longHolds: boolean;
  readonly ttlMs: number;
  readonly faults: readonly PlannedFault[];
  /** How long faults go on; then a healthy core must get on. */
  readonly faultyMs: number;
  /** Whether the others stay broken for ever, or are healed too. */
  readonly healsAll: boolean;
}

export interface PlannedTiming {
  readonly electionTimeoutMs: number;
  readonly heartbeatMs: number;
  readonly diskStallMs: number;
}

export interface PlannedLimits extends RaftLimits {
  readonly snapshotEntries: number;
  readonly recordsPerPiece: number;
  readonly sessionsMax: number;
  readonly unappliedEntriesMax: number;
  readonly clientBufferedBytesMax: number;
  readonly peerBufferedBytesMax: number;
}

export interface PlannedWorld {
  /** One way, at most. */
  readonly latencyMsMax: number;
  readonly syncMsMax: number;
  readonly readMsMax: number;
  /** Clock rates lie within 1 - this and 1 + this. */
  readonly driftMax: number;
  /** The share of events that cost their process time. */
  readonly busy: number;
  /** Of one direction of a socket, in both kernels together. */
  readonly kernelBytes: number;
}

/** Swarm testing: each seed has its own few kinds of faults and its own sizes; what all runs have in common finds less. */
export function drawPlan(seed: number): Plan {
  const random = streamOf(seed, "plan");
  const nodes = random.pick([1, 3, 3, 3, 3, 5, 5] as const);
  const theme = nodes === 1 ? "any" : drawTheme(random);
  const isRelay = theme === "relay";
  const isLapses = theme === "lapses";
  const timing = drawTiming(random, isRelay);
  const ttlMs = isRelay ? 30 * timing.electionTimeoutMs : drawTtl(random, timing.electionTimeoutMs);
  const room = { nodes, ttlMs, timing };
  const faultyMs = isRelay
    ? 20 * ttlMs
    : Math.min(Math.max(16 * timing.electionTimeoutMs, (isLapses ? 8 : 2.5) * ttlMs), 32 * timing.electionTimeoutMs);
  const faults = draws[theme](random, { ...room, faultyMs });
  return {
    seed,
    nodes,
    spares: faults.some(({ kind }) => changesMembers(kind)) ? random.between(2, 6) : 0,
    firstIndex: random.chance(0.1) ? 1_000_000_000_001 : 1,
    timing,
    limits: withRoom({
      ...drawLimits(random),
      ...(theme === "divergence" || theme === "crashes" || theme === "members" ? drawSmallSnapshots(random) : {}),
    }),
    world: {
      latencyMsMax: random.pick([0.5, 1, 5, timing.electionTimeoutMs / 20]),
      syncMsMax: random.pick([1, 2, 5, timing.electionTimeoutMs / 10]),
      readMsMax: random.pick([0.2, 3]),
      driftMax: random.pick([0, 0.001, 0.0049]),
      busy: random.pick([0, 0, 0, 0, 0.01, 0.05, 0.2]),
      kernelBytes: random.pick([1_024, 4_096, 65_536, 262_144]),
    },
    clients: random.between(isLapses ? 3 : 1, 5),
    rawClients: random.chance(0.3) ? 1 : 0,
    actionsMax: random.pick([20, 50, 100]),
    unitMs: isRelay ? 30 * timing.electionTimeoutMs : timing.electionTimeoutMs,
    locks: random.between(1, isLapses ? 3 : 5),
    longHolds: isLapses,
    ttlMs,
    faults,
    faultyMs,
    healsAll: random.chance(0.5),
  };
}

const draws = {
  any: drawFaults,
  relay: drawRelay,
  divergence: drawDivergence,
  crashes: drawCrashes,
  lapses: drawLapses,
  members: drawMembers,
} as const;

/** Some runs have one story, which chance tells too seldom. */
function drawTheme(random: Random): keyof typeof draws {
  const draw = random.fraction();
  if (draw < 0.02) return "relay";
  if (draw < 0.14) return "divergence";
  if (draw < 0.24) return "crashes";
  if (draw < 0.36) return "lapses";
  return draw < 0.5 ? "members" : "any";
}

function drawSmallSnapshots(
  random: Random,
): Pick<PlannedLimits, "snapshotEntries" | "trailingEntriesMax" | "recordsPerPiece"> {
  return {
    snapshotEntries: random.pick([10, 10, 40, 100_000]),
    trailingEntriesMax: random.pick([0, 5]),
    // In many chunks, or all in one: that can come once more.
    recordsPerPiece: random.pick([1, 5, 1_000, 1_000]),
  };
}

function drawTiming(random: Random, isLong: boolean): PlannedTiming {
  const electionTimeoutMs = isLong ? 500 : random.pick([500, 1_000, 2_000, 3_000]);
  return {
    electionTimeoutMs,
    heartbeatMs: Math.round(electionTimeoutMs / random.pick([5, 5, 10])),
    diskStallMs: random.pick([2, 4]) * electionTimeoutMs,
  };
}

/** The least that the configuration allows, or at times 30 election timeouts, from where on promise 6 is judged. */
function drawTtl(random: Random, electionTimeoutMs: number): number {
  const leastMs = 3 * electionTimeoutMs + 500;
  if (random.chance(0.15)) return 30 * electionTimeoutMs;
  return Math.round(leastMs * random.pick([1, 1, 1.5, 3]));
}

function drawLimits(random: Random): PlannedLimits {
  const isTight = random.chance(0.25);
  // Not both as small as can be: one entry in each round trip is less than the clients ask for.
  const window = random.pick([
    { appendsInFlightMax: 1, appendEntriesMax: 256 },
    { appendsInFlightMax: 2, appendEntriesMax: 4 },
    { appendsInFlightMax: 8, appendEntriesMax: 1 },
    { appendsInFlightMax: 8, appendEntriesMax: 256 },
  ]);
  return {
    uncommittedBytesMax: isTight ? 1_500 : 1_000_000,
    reservedBytesMax: isTight ? 4_000 : 100_000,
    ...window,
    appendBytesMax: random.pick([1_000, 4_096, 65_536]),
    recordsPerPiece: random.pick([1, 2, 5, 1_000]),
    committedBytesPerOutputMax: random.pick([200, 65_536]),
    trailingEntriesMax: random.pick([0, 5, 100]),
    snapshotEntries: random.pick([10, 40, 200, 100_000]),
    sessionsMax: 10_000,
    unappliedEntriesMax: isTight ? 16 : 8_192,
    clientBufferedBytesMax: random.pick([4_096, 16_384, 65_536, 8_388_608]),
    // As little as there may be, or the usual.
    peerBufferedBytesMax: random.chance(0.5) ? 0 : 33_554_432,
  };
}

/** A full window and a piece of a snapshot fit in what a link may buffer, or it would be reset again and again: the configuration sees to that. */
function withRoom(drawn: PlannedLimits): PlannedLimits {
  return { ...drawn, peerBufferedBytesMax: Math.max(drawn.peerBufferedBytesMax, roomBytesFor(drawn)) };
}

export function roomBytesFor(limits: PlannedLimits): number {
  return limits.appendsInFlightMax * limits.appendBytesMax + 2_048 * Math.min(limits.recordsPerPiece, 32);
}
