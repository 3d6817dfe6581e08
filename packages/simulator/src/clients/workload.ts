/**
 * What the applications of a run do, drawn per run (swarm testing): most runs leave out some kinds of action altogether, and so meet states
 * that an even mixture of everything never reaches.
 */
import type { Random } from "../random.js";

const actions = [
  "acquire",
  "acquireForever",
  "acquireAborted",
  "acquireAtOnce",
  "tryAcquire",
  "request",
  "requestIfAvailable",
  "inspect",
  "list",
  "sessions",
  "status",
  "forceRelease",
  "transfer",
] as const;

export type Action = (typeof actions)[number];

/** Those after which somebody may hold a lock: each run has one of them at least. */
const acquiring: readonly Action[] = ["acquire", "acquireForever", "acquireAborted", "tryAcquire", "request"];

const usualWeights: Readonly<Record<Action, number>> = {
  acquire: 30,
  acquireForever: 10,
  acquireAborted: 10,
  acquireAtOnce: 8,
  tryAcquire: 12,
  request: 10,
  requestIfAvailable: 5,
  inspect: 8,
  list: 2,
  sessions: 1,
  status: 2,
  forceRelease: 2,
  transfer: 0.3,
};

/** How an acquire differs from the plainest one: the chance of each. */
const traits = [
  "several",
  "shared",
  "manual",
  "stopOnJeopardy",
  "maxHold",
  "lockDelay",
  "ownTtl",
  "longHold",
  "afterMs",
  "releasedTwice",
  "releasedWhenLost",
  "leftAlone",
  "guarded",
  "read",
  "twin",
  "lateWrite",
  "staleWrite",
  "bodyThrows",
  "ownLook",
] as const;

export type Trait = (typeof traits)[number];

const usualChances: Readonly<Record<Trait, number>> = {
  several: 0.2,
  shared: 0.3,
  manual: 0.1,
  stopOnJeopardy: 0.2,
  maxHold: 0.15,
  lockDelay: 0.15,
  ownTtl: 0.1,
  longHold: 0.1,
  afterMs: 0.1,
  releasedTwice: 0.1,
  releasedWhenLost: 0.5,
  leftAlone: 0.03,
  guarded: 0.7,
  read: 0.3,
  twin: 0.5,
  lateWrite: 0.2,
  staleWrite: 0.5,
  bodyThrows: 0.1,
  ownLook: 0.5,
};

export interface Workload {
  /** Of each task. */
  readonly actionsMax: number;
  readonly names: readonly string[];
  readonly ttlMs: number;
  readonly weights: Readonly<Record<Action, number>>;
  readonly chances: Readonly<Record<Trait, number>>;
  /** How long an application thinks between two actions, at most. */
  readonly pauseMsMax: number;
  /** An ordinary hold, at most. */
  readonly holdMsMax: number;
  /** A long hold, at least; at most a TTL and a half. */
  readonly longHoldMsMin: number;
  readonly waitMsMax: number;
  /** How long close lets held locks end: null: the client isn't closed at the end of its work. */
  readonly drainMs: number | null;
}

export interface WorkloadWorld {
  /** 1,000,000 when left out. */
  readonly actionsMax?: number;
  /** What pauses are measured by: an election timeout. 100 when left out. */
  readonly unitMs?: number;
  readonly names: readonly string[];
  readonly ttlMs: number;
  /** Many holds may pass the TTL. False when left out. */
  readonly longHolds?: boolean;
}

export function drawWorkload(random: Random, world: WorkloadWorld): Workload {
  const { names, ttlMs, actionsMax = 1_000_000, unitMs = 100, longHolds = false } = world;
  const keptChance = random.pick([0.4, 0.7, 1]);
  const weights = { ...usualWeights };
  for (const action of actions) if (!random.chance(keptChance)) weights[action] = 0;
  if (acquiring.every((action) => weights[action] === 0)) weights[random.pick(acquiring)] = 10;
  const chances = { ...usualChances };
  for (const trait of traits) if (!random.chance(keptChance)) chances[trait] = 0;
  if (longHolds) chances.longHold = 0.6;
  return {
    actionsMax,
    names,
    ttlMs,
    weights,
    chances,
    pauseMsMax: random.logUniform(0.05, 8) * unitMs,
    holdMsMax: random.logUniform(5, ttlMs / 2),
    longHoldMsMin: longHolds ? ttlMs / 2 : 1,
    waitMsMax: random.logUniform(100, 3 * ttlMs),
    drainMs: random.chance(0.3) ? null : random.pick([0, 0, 500, Number.POSITIVE_INFINITY]),
  };
}

/** Everything, evenly: for tests, and for runs that don't swarm. */
export function wholeWorkload({ names, ttlMs, actionsMax = 1_000_000 }: WorkloadWorld): Workload {
  const times = { actionsMax, pauseMsMax: 100, holdMsMax: ttlMs / 10, longHoldMsMin: 1, waitMsMax: ttlMs, drainMs: 0 };
  return { names, ttlMs, weights: usualWeights, chances: usualChances, ...times };
}

export function pickAction(random: Random, weights: Readonly<Record<Action, number>>): Action {
  const total = actions.reduce((sum, action) => sum + weights[action], 0);
  let left = random.fraction() * total;
  for (const action of actions) {
    left -= weights[action];
    if (left < 0) return action;
  }
  return "acquire";
}
