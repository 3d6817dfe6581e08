/** One run: everything is started, loaded, hurt, healed, drained and stopped, and then judged. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { check, encodeHistory } from "@holdfast/checker";
import type { History } from "@holdfast/checker";
import { machineMs } from "../clock.js";
import { readNodeLogs } from "../history/committed-log.js";
import type { FinalState, NodeLog } from "../history/committed-log.js";
import type { MachineFaults } from "../machine/machine.js";
import type { Network, Parties } from "../network/network.js";
import { reportMarkdown } from "../report/report.js";
import { timelineSvg } from "../report/timeline.js";
import type { Scenario } from "../scenario/scenario.js";
import { PostgresServer } from "../store/postgres.js";
import { StoreWays } from "../store/store-ways.js";
import { acceptedOperations, makeTables, storeFigures } from "../store/tables.js";
import { until } from "../until.js";
import { Faults } from "./faults.js";
import { judge } from "./judge.js";
import { faultRecords, gapsAbove, loadFigures, ownElections, percentile, probeGrants, termAt } from "./measure.js";
import type { FaultContext } from "./measure.js";
import { tellerOf } from "../history/recorder.js";
import { carryOut } from "./schedule.js";
import type { DoneStep } from "./schedule.js";
import type { ClusterFigures, LogFigures, RunSummary, StoreFigures } from "./summary.js";
import { lockNames, nodeIds, prober, World, workerNames } from "./world.js";

export interface RunOptions {
  readonly scenario: Scenario;
  /** Made for this run. */
  readonly folder: string;
  readonly seed: number | null;
  readonly openNetwork: (parties: Parties) => Promise<Network>;
  readonly openMachine: () => Promise<MachineFaults>;
}

/** A cluster on a busy machine. */
const readyMs = 60_000;
/** After the last fault has ended: every open call ends, every client closes. */
const drainMs = 90_000;
const stopMs = 20_000;
/** Load before the first step, so that there is something to disturb. */
const warmUpMs = 1_000;
/** A grant to the probe takes a few milliseconds after its rest; a gap of this length is an outage. */
const outageMsMin = 200;
/** Steps of the search for an order, for each lock. */
const searchStepsMax = 300_000;

export interface RunResult {
  readonly summary: RunSummary;
  readonly history: History;
}

export async function runScenario(options: RunOptions): Promise<RunResult> {
  const { scenario, folder } = options;
  mkdirSync(join(folder, "data"), { recursive: true });
  const closers: (() => Promise<unknown>)[] = [];
  try {
    const parties = { nodes: nodeIds(scenario), workers: [prober, ...workerNames(scenario)] };
    const network = await options.openNetwork(parties);
    closers.push(() => network.close());
    const machine = await options.openMachine();
    closers.push(() => machine.close());
    const server = await PostgresServer.start();
    closers.push(() => server.stop());
    await makeTables(server.pool, lockNames(scenario));
    const storeWays = await StoreWays.open(network.harnessHost, server.port, workerNames(scenario));
    closers.push(() => storeWays.close());
    const world = new World({ scenario, folder, network, machine, server, storeWays });
    closers.push(() => killAll(world));
    return await runWorld(world, options);
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

async function runWorld(world: World, { scenario, folder, seed }: RunOptions): Promise<RunResult> {
  const { network, server } = world.parts;
  await start(world);
  const watching = world.watch();
  const startedWallTime = new Date().toISOString();
  await new Promise((resolve) => setTimeout(resolve, warmUpMs));
  const startedAt = machineMs();
  const steps = await carryOut(scenario.schedule, scenario.fastSeconds, new Faults(world), startedAt);
  const endedAt = machineMs();
  const finals = await drain(world, scenario, endedAt);
  world.stopWatching();
  await Promise.all(watching);
  const logs = await stopAndRead(world, finals);
  const accepted = await acceptedOperations(server.pool);
  const refused = world.recorder.guarded.filter(({ result }) => result === "refused").length;
  const store = await storeFigures(server.pool, refused);
  const evidence = { origin: scenario.name, nodes: nodeIds(scenario), electionTimeoutMs: scenario.electionTimeoutMs };
  const history = world.recorder.history({ ...evidence, finals, logs, accepted });
  writeFileSync(join(folder, "history.ndjson"), encodeHistory(history));
  const log = logFigures(logs, finals);
  const base = { seed, mode: network.mode, startedWallTime, startedAt, endedAt };
  const summary = summarize(world, scenario, { ...base, steps, store, log, history });
  writeFileSync(join(folder, "summary.json"), `${JSON.stringify(summary, null, 2)}\n`);
  writeFileSync(join(folder, "report.md"), reportMarkdown(summary, history.events));
  writeFileSync(join(folder, "timeline.svg"), timelineSvg(summary, history.events));
  return { summary, history };
}

async function start(world: World): Promise<void> {
  await Promise.all([...world.nodes.keys()].map((id) => world.startNode(id)));
  await until("a leader", readyMs, async () => {
    const [exit] = world.exits;
    if (exit !== undefined)
      throw new Error(`${exit.node} ended with ${exit.end} before any fault: see ${exit.node}.log`);
    return [...(await world.askAll()).values()].some(({ role, lastApplied }) => role === "leader" && lastApplied > 0);
  });
  await Promise.all([...world.workers.values()].map((worker) => worker.start()));
  for (const process of [...world.nodes.keys(), ...world.workers.keys()]) {
    for (const fault of world.machineFaultsOf(process)) {
      if (fault.kind === "clockRate") world.recorder.event({ kind: "clockRate", process, rate: fault.rate });
    }
  }
  await until("a grant to every worker", readyMs, () => {
    assertSound(world);
    const clients = new Set(
      world.recorder.events.flatMap((event) => (event.kind === "sessionOpened" ? [event.client] : [])),
    );
    return clients.size >= world.workers.size && probeGrants(world.recorder.events, prober).length > 0;
  });
}

/** After the faults: the probe gets its lock again, everybody comes to an end, and the nodes to rest. */
async function drain(world: World, scenario: Scenario, healedAt: number): Promise<readonly FinalState[]> {
  const refuses = scenario.expect.refusesToStart !== null;
  await until("a grant after all is healed", drainMs, () => {
    return probeGrants(world.recorder.events, prober).some((at) => at > healedAt);
  });
  for (const worker of world.workers.values()) worker.command({ kind: "drain" });
  await until("every worker has closed its client", drainMs, () => {
    assertSound(world);
    return [...world.workers.values()].every(({ isDrained }) => isDrained);
  });
  return until("all nodes have applied the same", drainMs, async () => {
    const statuses = [...(await world.askAll()).values()];
    const wanted = refuses ? world.nodes.size - 1 : world.nodes.size;
    const first = statuses[0];
    const isAtRest =
      statuses.length >= wanted &&
      statuses.every((each) => each.commitIndex === first?.lastIndex && each.lastApplied === first.lastIndex);
    return isAtRest
      ? statuses.map(({ id: node, commitIndex, lastApplied }) => ({ node, commitIndex, lastApplied }))
      : null;
  });
}

/** A worker that broke down is no fault that we made. */
function assertSound(world: World): void {
  if (world.problems.length > 0) throw new Error(world.problems.join("; "));
}

async function stopAndRead(world: World, finals: readonly FinalState[]): Promise<readonly NodeLog[]> {
  await Promise.all([...world.workers.values()].map((worker) => worker.kill()));
  await Promise.all([...world.nodes.values()].map((node) => node.stop(stopMs)));
  world.stopKeeping();
  const { written } = world;
  const logs = await readNodeLogs(finals, (node) => world.node(node).directory, written);
  written.remove();
  return logs;
}

async function killAll(world: World): Promise<void> {
  world.stopWatching();
  world.stopKeeping();
  const all = [...world.workers.values(), ...world.nodes.values()];
  await Promise.all(all.map((each) => each.kill()));
  await Promise.all(all.map((each) => each.closeLog()));
}

interface RunFacts {
  readonly seed: number | null;
  readonly mode: "proxy" | "netns";
  readonly startedWallTime: string;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly steps: readonly DoneStep[];
  readonly store: StoreFigures;
  readonly log: LogFigures;
  readonly history: History;
}

function summarize(world: World, scenario: Scenario, facts: RunFacts): RunSummary {
  const { steps, store, log, history, seed, mode, startedWallTime, startedAt, endedAt } = facts;
  const { events } = history;
  const grants = probeGrants(events, prober);
  const { electionTimeoutMs } = scenario;
  const context = { events, grants, electionTimeoutMs, endedAt, noise: world.noise };
  const faults = faultRecords(steps, context);
  const gaps = gapsAbove(
    grants.filter((at) => at >= startedAt),
    outageMsMin,
  );
  const load = loadFigures(events);
  const cluster = clusterFigures(history, startedAt, context);
  const verdict = check(history, { stepsMax: searchStepsMax });
  const refusals = world.exits.flatMap(({ end }) => (typeof end === "number" && end > 0 ? [end] : []));
  const findings = { faults, load, cluster, store, verdict, problems: world.problems, refusals };
  const expectations = judge(scenario.expect, findings);
  return {
    scenario: scenario.name,
    about: scenario.about,
    mode,
    seed,
    nodes: nodeIds(scenario),
    workers: workerNames(scenario),
    electionTimeoutMs,
    ttlMs: scenario.ttlMs,
    startedWallTime,
    startedAt,
    endedAt,
    faults,
    load,
    cluster,
    store,
    log,
    unavailability: { maxMs: gaps.at(-1) ?? 0, p99Ms: percentile(gaps, 0.99) },
    expectations,
    verdict,
    isPassed: verdict.ok && expectations.every(({ isMet }) => isMet),
  };
}

function logFigures(logs: readonly NodeLog[], finals: readonly FinalState[]): LogFigures {
  const commitIndex = Math.max(0, ...finals.map((final) => final.commitIndex));
  const withSnapshot = logs.filter(({ baseIndex }) => baseIndex > 0);
  const teller = tellerOf(logs, commitIndex);
  return {
    toldBy: teller === null ? null : teller.isOwn ? teller.node : `${teller.node} and others`,
    snapshots: withSnapshot.map(({ node, baseIndex: index, entries, isOwn }) => {
      return { node, index, isWhole: entries !== null && isOwn };
    }),
  };
}

function clusterFigures({ events }: History, startedAt: number, context: FaultContext): ClusterFigures {
  const after = events.filter(({ at }) => at >= startedAt);
  const count = (kind: string): number => after.filter((event) => event.kind === kind).length;
  const failovers = count("serving");
  const committed = events.filter(({ kind }) => kind === "committed").length;
  const termTo = termAt(events, Number.POSITIVE_INFINITY);
  const own = ownElections(events, startedAt, Number.POSITIVE_INFINITY, context);
  return {
    elections: count("leader"),
    ownElections: own,
    // What is read from the directories afterwards bears a hash.
    installs: after.filter((event) => event.kind === "installed" && event.stateHash === null).length,
    failovers,
    termFrom: termAt(events, startedAt),
    termTo,
    committed,
  };
}
