/** One run from its plan to its verdict: faults first, then a healthy core must get on, then everything ends and must be at rest. */
import { check, historyVersion } from "@holdfast/checker";
import type { History, Verdict } from "@holdfast/checker";
import { probed } from "../node/host-access.js";
import { InvariantError } from "../invariants/index.js";
import { Faults } from "./active-faults.js";
import type { Core } from "./core.js";
import { countHistory } from "./history-counts.js";
import { expectProgress, expectRest } from "./liveness.js";
import type { Times } from "./liveness.js";
import type { Plan } from "./plan.js";
import { StuckError } from "./stuck-error.js";
import { World } from "./world.js";

export interface RunResult {
  readonly seed: number;
  readonly hash: string;
  /** What was broken, one line each; none is good. */
  readonly problems: readonly Problem[];
  readonly virtualMs: number;
  readonly events: number;
  readonly counts: ReadonlyMap<string, number>;
  readonly times: Times;
  readonly verdict: Verdict | null;
  readonly history: History;
  /** For people; empty unless asked for. */
  readonly lines: readonly { readonly atMs: number; readonly process: string; readonly text: string }[];
}

export interface Problem {
  readonly rule: string;
  readonly message: string;
}

export interface RunOptions {
  readonly isShown?: boolean;
  /** Steps of the linearizability search for each lock; 0: none. */
  readonly stepsMax?: number;
}

export async function run(plan: Plan, options: RunOptions = {}): Promise<RunResult> {
  const world = new World(plan, { isShown: options.isShown === true });
  const times: Times = { leaderMs: null, callsMs: null, sessionsMs: null };
  let error: Error | null = null;
  try {
    await live(world, times);
  } catch (thrown) {
    error = thrown instanceof Error ? thrown : new Error(String(thrown));
  }
  const history = historyOf(world);
  // The search for an order takes long where there is none; a run that broke a rule is broken without it.
  const verdict = check(history, {
    stepsMax: error === null ? (options.stepsMax ?? 3_000_000) : 0,
    searchesBroken: false,
  });
  return {
    seed: plan.seed,
    hash: world.hash.digest(),
    problems: problemsOf(error, verdict),
    virtualMs: world.nowMs,
    events: world.scheduler.ran,
    counts: countsOf(world, verdict, history),
    times,
    verdict,
    history,
    lines: world.recorder.lines ?? [],
  };
}

async function live(world: World, times: Times): Promise<void> {
  const { plan } = world;
  world.start();
  const faults = new Faults(world);
  faults.begin(plan.faults);
  await world.run(plan.faultyMs);
  const core = faults.endInCore();
  // A suspend lasts as long as it does, and a stop that was asked for takes its time.
  await world.run(4 * world.longestTtlMs, () => areAwake(world, core));
  await expectProgress(world, core, times);
  await expectRest(world, core, times);
  tellFinal(world, core);
}

function areAwake(world: World, core: Core): boolean {
  const ids = [...core.nodes.map(({ id }) => id), ...world.clientIds()];
  return core.nodes.every((node) => !node.isStopping) && ids.every((id) => world.process(id)?.isPaused !== true);
}

function tellFinal(world: World, { nodes: core }: Core): void {
  world.watch.assertConverged(core.map(({ id }) => id));
  for (const { id, host } of core) {
    if (host === null) continue;
    const { raft, applier } = probed(host);
    const { commitIndex, configuration } = raft;
    const voters = configuration.voters.map((voter) => voter.id).join();
    const stateHash = host.stateHash();
    const { lastApplied } = applier;
    world.recorder.emit({ kind: "final", node: id, commitIndex, lastApplied, stateHash, configuration: voters });
  }
}

function historyOf(world: World): History {
  const { plan, nodes, recorder } = world;
  return {
    version: historyVersion,
    origin: `seed ${plan.seed}`,
    nodes: nodes.map(({ id }) => id),
    electionTimeoutMs: plan.timing.electionTimeoutMs,
    firstIndex: plan.firstIndex,
    events: recorder.events,
  };
}

function problemsOf(error: Error | null, verdict: Verdict): Problem[] {
  const problems: Problem[] = [];
  if (error !== null) {
    if (error instanceof InvariantError || error instanceof StuckError)
      problems.push({ rule: error.rule, message: error.message });
    else problems.push({ rule: "error", message: error.stack ?? error.message });
  }
  for (const { rule, message } of verdict.violations) problems.push({ rule, message });
  return problems;
}

function countsOf(world: World, verdict: Verdict, history: History): Map<string, number> {
  const counts = new Map(world.counts.entries());
  const add = (name: string, by: number): void => {
    if (by > 0) counts.set(name, (counts.get(name) ?? 0) + by);
  };
  for (const [name, count] of Object.entries(world.network.counts)) add(`network: ${name}`, Number(count));
  for (const { disk } of world.nodes) {
    const { killsInFlight, failedWrites, rots, refusedOpens, ...plain } = disk.counts;
    for (const [name, count] of Object.entries(plain)) add(`disk: ${name}`, count);
    for (const [name, count] of Object.entries(refusedOpens)) add(`disk: refused ${name}`, count);
    for (const [name, count] of Object.entries(rots)) add(`disk: rot of ${name}`, count);
    add("disk: kill with a write in flight, kept", killsInFlight.kept);
    add("disk: kill with a write in flight, dropped", killsInFlight.dropped);
    for (const [name, fate] of Object.entries(failedWrites)) {
      add(`disk: failed write (${name}), kept`, fate.kept);
      add(`disk: failed write (${name}), dropped`, fate.dropped);
    }
  }
  for (const [rule, count] of Object.entries(verdict.counts.judged)) add(`judged: ${rule}`, count);
  for (const [rule, count] of Object.entries(verdict.counts.excluded)) add(`excluded: ${rule}`, count);
  countHistory(history, add);
  add("outcome unknown, happened", verdict.counts.unknowns.happened);
  add("outcome unknown, never happened", verdict.counts.unknowns.never);
  return counts;
}
