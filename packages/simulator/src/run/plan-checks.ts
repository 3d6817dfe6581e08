/**
 * Checks a plan that comes from a file. It may be what drawPlan or the shrinker can make of one, nothing else: outside of these ranges the
 * bounds and the promises that a run is judged by are not meant to hold, and its findings would be false.
 */
import { faultNames, isOfDirectory, isQuiet, nodesMinOf } from "./fault-kinds.js";
import type { PlannedFault } from "./fault-kinds.js";
import { roomBytesFor } from "./plan.js";
import type { Plan } from "./plan.js";

export interface PlanProblem {
  /** Where in the plan, e.g. "faults[2].target.who"; empty for the plan as a whole. */
  readonly path: string;
  readonly problem: string;
}

/** A plan, or all that is wrong with what should be one. */
export type Checked = { readonly plan: Plan } | { readonly problems: readonly PlanProblem[] };

/** Of a plan as JSON. */
export function parsePlan(text: string): Checked {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { problems: [{ path: "", problem: `is not JSON: ${(error as Error).message}` }] };
  }
  return checkPlan(value);
}

export function checkPlan(value: unknown): Checked {
  const problems = problemsIn("", value, planShape);
  if (problems.length > 0) return { problems };
  const plan = value as Plan;
  const others = crossChecks(plan);
  return others.length > 0 ? { problems: others } : { plan };
}

/** What is wrong with one value; null when nothing is. */
type Leaf = (value: unknown) => string | null;
type Shape = Leaf | readonly [Shape] | { readonly [name: string]: Shape };
/** Every field of a type, so that a new one can't be forgotten here. */
type ShapeOf<T> = { readonly [Name in keyof T]-?: Shape };

/** A number from `min` to `max`, both included. */
function number(min: number, max: number): Leaf {
  return (value) => {
    if (typeof value !== "number") return `${show(value)} is not a number`;
    return value >= min && value <= max ? null : `${value} is not from ${min} to ${max}`;
  };
}

function whole(min: number, max: number): Leaf {
  const inRange = number(min, max);
  return (value) =>
    typeof value === "number" && !Number.isSafeInteger(value) ? `${value} is not a whole number` : inRange(value);
}

function oneOf(allowed: readonly (string | number)[]): Leaf {
  return (value) =>
    (allowed as readonly unknown[]).includes(value) ? null : `${show(value)} is not one of ${allowed.join(", ")}`;
}

const yesOrNo: Leaf = (value) => (typeof value === "boolean" ? null : `${show(value)} is not true or false`);

const target: ShapeOf<PlannedFault["target"]> = {
  who: oneOf(["leader", "follower", "any"]),
  index: whole(0, 999),
};

const fault: ShapeOf<PlannedFault> = {
  atMs: number(0, 600_000),
  lastsMs: number(0, 600_000),
  kind: (value) =>
    (faultNames as readonly unknown[]).includes(value)
      ? null
      : `${show(value)} is no kind of fault (docs/testing.md lists them)`,
  target,
  other: target,
  size: number(0, 1),
};

const timing: ShapeOf<Plan["timing"]> = {
  electionTimeoutMs: whole(500, 3_000),
  heartbeatMs: whole(50, 600),
  diskStallMs: whole(1_000, 12_000),
};

const limits: ShapeOf<Plan["limits"]> = {
  uncommittedBytesMax: whole(1_500, 1_000_000),
  reservedBytesMax: whole(4_000, 100_000),
  appendsInFlightMax: whole(1, 8),
  appendEntriesMax: whole(1, 256),
  appendBytesMax: whole(1_000, 65_536),
  committedBytesPerOutputMax: whole(200, 65_536),
  trailingEntriesMax: whole(0, 100),
  snapshotEntries: whole(10, 100_000),
  recordsPerPiece: whole(1, 1_000),
  sessionsMax: whole(1_000, 10_000),
  unappliedEntriesMax: whole(16, 8_192),
  clientBufferedBytesMax: whole(4_096, 8_388_608),
  peerBufferedBytesMax: whole(3_048, 33_554_432),
};

const world: ShapeOf<Plan["world"]> = {
  latencyMsMax: number(0.5, 150),
  syncMsMax: number(1, 300),
  readMsMax: number(0.2, 3),
  driftMax: number(0, 0.0049),
  busy: number(0, 0.2),
  kernelBytes: whole(1_024, 262_144),
};

const planShape: ShapeOf<Plan> = {
  seed: whole(1, Number.MAX_SAFE_INTEGER),
  nodes: oneOf([1, 3, 5]),
  spares: whole(0, 6),
  firstIndex: whole(1, 1_000_000_000_001),
  timing,
  limits,
  world,
  clients: whole(1, 5),
  rawClients: whole(0, 1),
  actionsMax: whole(1, 100),
  unitMs: number(500, 15_000),
  locks: whole(1, 5),
  longHolds: yesOrNo,
  ttlMs: whole(2_000, 90_000),
  faults: [fault],
  faultyMs: number(500, 300_000),
  healsAll: yesOrNo,
};

function problemsIn(path: string, value: unknown, shape: Shape): PlanProblem[] {
  if (typeof shape === "function") {
    const problem = value === undefined ? "is missing" : shape(value);
    return problem === null ? [] : [{ path, problem }];
  }
  if (value === undefined) return [{ path, problem: "is missing" }];
  if (isList(shape)) {
    if (!Array.isArray(value)) return [{ path, problem: `${show(value)} is not a list` }];
    return value.flatMap((item, at) => problemsIn(`${path}[${at}]`, item, shape[0]));
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return [{ path, problem: `${show(value)} is not an object` }];
  const inner = (name: string): string => (path === "" ? name : `${path}.${name}`);
  const fields = value as Readonly<Record<string, unknown>>;
  const unknowns = Object.keys(fields).filter((name) => !Object.hasOwn(shape, name));
  return [
    ...Object.entries(shape).flatMap(([name, each]) =>
      problemsIn(inner(name), Object.hasOwn(fields, name) ? fields[name] : undefined, each),
    ),
    ...unknowns.map((name) => ({ path: inner(name), problem: "is no field of a plan" })),
  ];
}

function isList(shape: Shape): shape is readonly [Shape] {
  return Array.isArray(shape);
}

/** What values must be to each other; each is right by itself. */
function crossChecks(plan: Plan): PlanProblem[] {
  const { electionTimeoutMs, heartbeatMs, diskStallMs } = plan.timing;
  const { appendsInFlightMax, appendEntriesMax, peerBufferedBytesMax } = plan.limits;
  const { latencyMsMax, syncMsMax } = plan.world;
  const problems: PlanProblem[] = [];
  const demand = (isRight: boolean, path: string, problem: string): void => {
    if (!isRight) problems.push({ path, problem });
  };
  const most = (path: string, value: number, max: number, what: string): void =>
    demand(value <= max, path, `${value} is above ${max}, ${what}`);
  const least = (path: string, value: number, min: number, what: string): void =>
    demand(value >= min, path, `${value} is below ${min}, ${what}`);
  most("timing.heartbeatMs", heartbeatMs, electionTimeoutMs / 3, "a third of timing.electionTimeoutMs");
  least("timing.diskStallMs", diskStallMs, electionTimeoutMs, "timing.electionTimeoutMs");
  least("ttlMs", plan.ttlMs, 3 * electionTimeoutMs + 500, "3 x timing.electionTimeoutMs + 500");
  least("unitMs", plan.unitMs, electionTimeoutMs, "timing.electionTimeoutMs");
  most("world.latencyMsMax", latencyMsMax, Math.max(5, electionTimeoutMs / 20), "what the election timeout allows");
  most("world.syncMsMax", syncMsMax, Math.max(5, electionTimeoutMs / 10), "what the election timeout allows");
  least(
    "limits.peerBufferedBytesMax",
    peerBufferedBytesMax,
    roomBytesFor(plan.limits),
    "limits.appendsInFlightMax x limits.appendBytesMax and a piece of a snapshot",
  );
  const entries = appendsInFlightMax * appendEntriesMax;
  demand(entries >= 8, "limits.appendEntriesMax", `${entries} entries in flight are fewer than the clients ask for`);
  return [...problems, ...plan.faults.flatMap((each, at) => faultProblems(plan, each, `faults[${at}]`))];
}

function faultProblems(plan: Plan, { kind, lastsMs }: PlannedFault, path: string): PlanProblem[] {
  const problems: PlanProblem[] = [];
  const nodesMin = nodesMinOf(kind);
  if (plan.nodes < nodesMin) problems.push({ path: `${path}.kind`, problem: `${kind} takes ${nodesMin} nodes` });
  // The run waits for a machine that sleeps, and no longer than this allows.
  if (kind === "suspendNode" && lastsMs > 2 * plan.ttlMs)
    problems.push({ path: `${path}.lastsMs`, problem: `${lastsMs} is above ${2 * plan.ttlMs}, 2 x ttlMs` });
  const spoilt = plan.faults.map((each) => each.kind).find((each) => isOfDirectory(each) && each !== kind);
  if (spoilt !== undefined && !isQuiet(kind))
    problems.push({ path: `${path}.kind`, problem: `${kind} can't be in one run with ${spoilt}` });
  return problems;
}

const shownLengthMax = 60;

function show(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > shownLengthMax ? `${text.slice(0, shownLengthMax)}...` : text;
}
