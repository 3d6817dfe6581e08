/** The kinds of faults (docs/testing.md), as data: whom they hit, when, for how long, how hard. run/faults.ts carries them out. */
import type { Random } from "../random.js";

export type ClientFaultKind =
  | "killClient"
  | "pauseClient"
  | "suspendClient"
  | "driftClient"
  | "cutClient"
  | "cutClientOneWay"
  | "slowClient"
  | "burst";

export type MemberFaultKind =
  | "addMember"
  | "removeMember"
  | "replaceMember"
  | "resizeCluster"
  | "wipeNode"
  | "returnRemoved"
  | "oddRequest"
  | "strandChange";

export type FaultKind =
  | ClientFaultKind
  | MemberFaultKind
  | "isolate"
  | "deafen"
  | "silence"
  | "cutLink"
  | "cutOneWay"
  | "split"
  | "bridge"
  | "chain"
  | "cutAll"
  | "flap"
  | "swizzle"
  | "delay"
  | "loss"
  | "throttle"
  | "repeat"
  | "reset"
  | "kill"
  | "killAll"
  | "powerLoss"
  | "powerLossAll"
  | "crashPoint"
  | "crashLoop"
  | "pause"
  | "pauseAll"
  | "stall"
  | "stopInOrder"
  | "rollingRestart"
  | "transfer"
  | "lateEnd"
  | "slowDisk"
  | "stalledDisk"
  | "failedWrite"
  | "failedRead"
  | "failedOpen"
  | "fullDisk"
  | "rot"
  | "lyingDisk"
  | "oldCopy"
  | "drift"
  | "runaway"
  | "wallJump"
  | "suspendNode";

/** `index` picks among those that fit. */
export interface Target {
  readonly who: "leader" | "follower" | "any";
  readonly index: number;
}

export interface PlannedFault {
  readonly atMs: number;
  readonly lastsMs: number;
  readonly kind: FaultKind;
  readonly target: Target;
  readonly other: Target;
  /** From 0 to 1: how hard. */
  readonly size: number;
}

interface KindFacts {
  readonly family: "network" | "process" | "disk" | "clock" | "client" | "directory" | "members";
  /** Nodes that it takes at least. */
  readonly nodesMin?: number;
}

const faultKinds: Readonly<Record<FaultKind, KindFacts>> = {
  // The network between nodes.
  isolate: { family: "network" },
  deafen: { family: "network", nodesMin: 3 },
  silence: { family: "network", nodesMin: 3 },
  cutLink: { family: "network", nodesMin: 3 },
  cutOneWay: { family: "network", nodesMin: 3 },
  split: { family: "network", nodesMin: 3 },
  bridge: { family: "network", nodesMin: 3 },
  chain: { family: "network", nodesMin: 3 },
  cutAll: { family: "network", nodesMin: 3 },
  flap: { family: "network", nodesMin: 3 },
  swizzle: { family: "network", nodesMin: 3 },
  delay: { family: "network", nodesMin: 3 },
  loss: { family: "network", nodesMin: 3 },
  throttle: { family: "network", nodesMin: 3 },
  repeat: { family: "network", nodesMin: 3 },
  reset: { family: "network", nodesMin: 3 },
  // Node processes and their machines.
  kill: { family: "process" },
  killAll: { family: "process" },
  powerLoss: { family: "process" },
  powerLossAll: { family: "process" },
  crashPoint: { family: "process" },
  crashLoop: { family: "process" },
  pause: { family: "process" },
  pauseAll: { family: "process" },
  stall: { family: "process" },
  stopInOrder: { family: "process" },
  rollingRestart: { family: "process", nodesMin: 3 },
  transfer: { family: "process", nodesMin: 3 },
  lateEnd: { family: "process" },
  // Disks.
  slowDisk: { family: "disk" },
  stalledDisk: { family: "disk" },
  failedWrite: { family: "disk" },
  failedRead: { family: "disk" },
  failedOpen: { family: "disk" },
  fullDisk: { family: "disk" },
  rot: { family: "disk", nodesMin: 3 },
  // Directories that hold less than they promised. Peers find them out when they hear them, so nothing else may keep them apart.
  lyingDisk: { family: "directory", nodesMin: 3 },
  oldCopy: { family: "directory", nodesMin: 3 },
  // Clocks.
  drift: { family: "clock" },
  runaway: { family: "clock" },
  wallJump: { family: "clock" },
  suspendNode: { family: "clock" },
  // Clients.
  killClient: { family: "client" },
  pauseClient: { family: "client" },
  suspendClient: { family: "client" },
  driftClient: { family: "client" },
  cutClient: { family: "client" },
  cutClientOneWay: { family: "client" },
  slowClient: { family: "client" },
  burst: { family: "client" },
  // Who belongs to the cluster.
  addMember: { family: "members" },
  removeMember: { family: "members", nodesMin: 3 },
  replaceMember: { family: "members", nodesMin: 3 },
  resizeCluster: { family: "members", nodesMin: 3 },
  wipeNode: { family: "members", nodesMin: 3 },
  returnRemoved: { family: "members", nodesMin: 3 },
  oddRequest: { family: "members" },
  strandChange: { family: "members", nodesMin: 3 },
};

export function changesMembers(kind: FaultKind): boolean {
  return faultKinds[kind].family === "members";
}

export const faultNames: readonly FaultKind[] = Object.keys(faultKinds) as FaultKind[];

/** Nodes that a fault takes at least. */
export function nodesMinOf(kind: FaultKind): number {
  return faultKinds[kind].nodesMin ?? 1;
}

/** A directory that holds less than it promised, which peers find out when they hear it. */
export function isOfDirectory(kind: FaultKind): boolean {
  return faultKinds[kind].family === "directory";
}

/** What may be in one run with such a directory: it keeps no peers apart. */
export function isQuiet(kind: FaultKind): boolean {
  return faultKinds[kind].family === "client" || kind === "slowDisk" || kind === "wallJump";
}

interface FaultRoom {
  readonly nodes: number;
  readonly faultyMs: number;
  readonly ttlMs: number;
  readonly timing: { readonly electionTimeoutMs: number };
}

export function drawFaults(random: Random, room: FaultRoom): PlannedFault[] {
  const kinds = drawKinds(random, room);
  const { electionTimeoutMs } = room.timing;
  const meanGapMs = random.logUniform(0.7 * electionTimeoutMs, 8 * electionTimeoutMs);
  const longestMs = random.logUniform(electionTimeoutMs, 2 * room.ttlMs);
  const faults: PlannedFault[] = [];
  // At times a cluster has to form under faults.
  const beginMs = random.chance(0.2) ? random.logUniform(1, 500) : 4 * electionTimeoutMs;
  for (let atMs = beginMs; ; ) {
    atMs += 2 * meanGapMs * random.fraction();
    if (atMs >= room.faultyMs) return faults;
    const kind = random.pick(kinds);
    const lastsMs = Math.round(random.logUniform(electionTimeoutMs / 20, longestMs));
    faults.push({
      atMs: Math.round(atMs),
      lastsMs: Math.max(lastsMs, leastTimeouts(kind) * electionTimeoutMs),
      kind,
      target: drawTarget(random),
      other: drawTarget(random),
      size: random.fraction(),
    });
  }
}

/** A crash point waits until the node comes by, and an errand takes several requests. */
function leastTimeouts(kind: FaultKind): number {
  if (changesMembers(kind)) return 8;
  return kind === "crashPoint" ? 6 : 0;
}

/** The leader changes every TTL/2 or a little more, for 20 TTL, and holders die (promise 6). */
export function drawRelay(random: Random, room: FaultRoom): PlannedFault[] {
  const { electionTimeoutMs } = room.timing;
  const kinds: readonly FaultKind[] = ["transfer", "kill", "kill", "powerLoss", "stopInOrder", "isolate"];
  const leader: Target = { who: "leader", index: 0 };
  const faults: PlannedFault[] = [];
  for (let atMs = 4 * electionTimeoutMs; atMs < room.faultyMs; atMs += 0.5 * room.ttlMs + electionTimeoutMs) {
    const lastsMs = 4 * electionTimeoutMs;
    const others = { other: drawTarget(random), size: random.fraction() };
    faults.push({ atMs, lastsMs, kind: random.pick(kinds), target: leader, ...others });
    if (random.chance(0.3)) faults.push({ atMs: atMs + 1, lastsMs: 1, kind: "killClient", target: leader, ...others });
  }
  return faults;
}

/**
 * Leaders are cut off with their clients, overtaken and found again, or die at once: logs part, and small snapshots bring them together. In
 * half of the runs frames come again all the time.
 */
export function drawDivergence(random: Random, room: FaultRoom): PlannedFault[] {
  const kinds: readonly FaultKind[] = [
    "isolate",
    "isolate",
    "split",
    "deafen",
    "silence",
    "kill",
    "powerLoss",
    "reset",
  ];
  const faults = drawOf(random, room, kinds, { gap: [1, 4], lasts: [1.5, 5] });
  if (!random.chance(0.5)) return faults;
  const target = drawTarget(random);
  const atMs = 2 * room.timing.electionTimeoutMs;
  return [{ atMs, lastsMs: room.faultyMs, kind: "repeat", target, other: target, size: random.fraction() }, ...faults];
}

/** Nodes die between two of their effects, followers that lag behind most of all. */
export function drawCrashes(random: Random, room: FaultRoom): PlannedFault[] {
  const kinds: readonly FaultKind[] = ["crashPoint", "crashPoint", "crashPoint", "isolate", "kill"];
  return drawOf(random, room, kinds, { gap: [0.7, 3], lasts: [2, 6] });
}

/** The members change all the time, while leaders are cut off, die and are stopped. */
export function drawMembers(random: Random, room: FaultRoom): PlannedFault[] {
  const changes: readonly FaultKind[] = [
    "addMember",
    "addMember",
    "removeMember",
    "replaceMember",
    "replaceMember",
    "resizeCluster",
    "resizeCluster",
    "wipeNode",
    "returnRemoved",
    "oddRequest",
    "strandChange",
    "strandChange",
  ];
  const others: readonly FaultKind[] = [
    "isolate",
    "split",
    "deafen",
    "silence",
    "kill",
    "powerLoss",
    "crashPoint",
    "pause",
    "reset",
    "transfer",
    "stopInOrder",
    "rot",
  ];
  const able = changes.filter((kind) => nodesMinOf(kind) <= room.nodes);
  const drawn = random.shuffle(others).slice(0, random.integer(5));
  const errands = drawOf(random, room, able, { gap: [1, 5], lasts: [6, 12] });
  if (drawn.length === 0) return errands;
  return [...errands, ...drawOf(random, room, drawn, { gap: [1, 6], lasts: [0.5, 4] })].sort((a, b) => a.atMs - b.atMs);
}

/** Holders are cut off, stopped or sent to sleep for about a TTL, at times while leaders change: leases run out under them. */
export function drawLapses(random: Random, room: FaultRoom): PlannedFault[] {
  const kinds: readonly FaultKind[] = [
    "cutClient",
    "cutClient",
    "cutClientOneWay",
    "cutClientOneWay",
    "pauseClient",
    "suspendClient",
    "slowClient",
    "kill",
    "transfer",
  ];
  const ttl = room.ttlMs / room.timing.electionTimeoutMs;
  return drawOf(random, room, kinds, { gap: [0.2 * ttl, 1.2 * ttl], lasts: [0.9 * ttl, 1.6 * ttl] });
}

/** `gap` and `lasts` in election timeouts. */
function drawOf(
  random: Random,
  room: FaultRoom,
  kinds: readonly FaultKind[],
  { gap, lasts }: { readonly gap: readonly [number, number]; readonly lasts: readonly [number, number] },
): PlannedFault[] {
  const { electionTimeoutMs } = room.timing;
  const draw = ([least, most]: readonly [number, number]): number =>
    Math.round(random.logUniform(least, most) * electionTimeoutMs);
  const faults: PlannedFault[] = [];
  for (let atMs = 4 * electionTimeoutMs; atMs < room.faultyMs; atMs += draw(gap)) {
    const kind = random.pick(kinds);
    const lastsMs = draw(lasts);
    faults.push({
      atMs,
      lastsMs,
      kind,
      target: drawTarget(random),
      other: drawTarget(random),
      size: random.fraction(),
    });
  }
  return faults;
}

function drawKinds(random: Random, { nodes }: FaultRoom): readonly FaultKind[] {
  const fitting = faultNames.filter((name) => nodesMinOf(name) <= nodes);
  if (nodes > 1 && random.chance(0.06)) {
    const quiet = fitting.filter(isQuiet);
    return [random.pick(["lyingDisk", "oldCopy"] as const), ...random.shuffle(quiet).slice(0, 2)];
  }
  const able = fitting.filter((name) => !isOfDirectory(name));
  // Rare ones would end most runs early, or take the promises away that are judged.
  const isRare = (name: FaultKind): boolean => name === "runaway" || name === "rot" || changesMembers(name);
  const usual = able.filter((name) => !isRare(name) || random.chance(0.15));
  const share = random.pick([0.1, 0.25, 0.5]);
  const drawn = usual.filter(() => random.chance(share));
  return drawn.length === 0 ? [random.pick(usual)] : drawn;
}

function drawTarget(random: Random): Target {
  return { who: random.pick(["leader", "leader", "follower", "any"] as const), index: random.integer(1_000) };
}
