/**
 * Carries planned faults out. Each returns what ends it, or null when it has no end of its own. A fault draws from a stream of its own, so that
 * leaving one out doesn't change the others.
 */
import { decodePeerFrame } from "@holdfast/wire";
import type { SimulatedNode } from "../node/simulated-node.js";
import { crashPoints } from "../node/directory.js";
import type { Random } from "../random.js";
import { betweenMagnitudes, streamOf } from "../random.js";
import { clientFaults } from "./client-faults.js";
import type { FaultKind, PlannedFault, Target } from "./fault-kinds.js";
import { memberFaults } from "./member-faults.js";
import type { World } from "./world.js";

export interface FaultContext extends Targets {
  readonly world: World;
  readonly random: Random;
  readonly fault: PlannedFault;
}

/** Who is hit, and another one than that. */
export interface Targets {
  readonly node: SimulatedNode;
  readonly other: SimulatedNode;
}

export type Undo = () => void;
export type Action = (context: FaultContext) => Undo | null;

export function targetsOf(world: World, fault: PlannedFault): Targets {
  const node = nodeFor(world, fault.target, null);
  return { node, other: nodeFor(world, fault.other, node) };
}

export function beginFault(world: World, fault: PlannedFault, position: number, targets: Targets): Undo | null {
  const random = streamOf(world.plan.seed, `fault ${position}`);
  return actions[fault.kind]({ world, random, fault, ...targets });
}

function nodeFor(world: World, { who, index }: Target, except: SimulatedNode | null): SimulatedNode {
  const able = world.cluster.filter((node) => node !== except);
  const leader = world.leader();
  const fitting =
    who === "leader"
      ? able.filter((node) => node === leader)
      : who === "follower"
        ? able.filter((node) => node !== leader)
        : able;
  const among = fitting.length > 0 ? fitting : able.length > 0 ? able : world.nodes;
  return among[index % among.length] as SimulatedNode;
}

function both(...undos: readonly Undo[]): Undo {
  return () => {
    for (const undo of undos) undo();
  };
}

/** Cuts the ways between all of `from` and all of `to`. */
function cutBetween(
  world: World,
  from: readonly SimulatedNode[],
  to: readonly SimulatedNode[],
  ways: { readonly there: boolean; readonly back: boolean },
): Undo {
  const undos: Undo[] = [];
  for (const a of from) {
    for (const b of to) {
      if (a === b) continue;
      if (ways.there) undos.push(world.cut(a.id, b.id));
      if (ways.back) undos.push(world.cut(b.id, a.id));
    }
  }
  return both(...undos);
}

const bothWays = { there: true, back: true };

function isolate({ world, node, random }: FaultContext, ways: { there: boolean; back: boolean }): Undo {
  const undos = [cutBetween(world, [node], world.cluster, ways)];
  if (ways.there && ways.back && random.chance(0.3)) {
    for (const client of world.clientIds()) undos.push(world.cut(client, node.id), world.cut(node.id, client));
  }
  return both(...undos);
}

function restartLater(node: SimulatedNode): Undo {
  return () => node.start();
}

/** Goes on and off until it is ended. */
function repeat(world: World, everyMs: () => number, step: () => void): Undo {
  let isOver = false;
  const again = (): void => {
    world.later(everyMs(), () => {
      if (isOver) return;
      step();
      again();
    });
  };
  step();
  again();
  return () => void (isOver = true);
}

function flap({ world, node, other, random }: FaultContext): Undo {
  const { electionTimeoutMs } = world.plan.timing;
  const periodMs = random.logUniform(0.2, 3) * electionTimeoutMs;
  const [there, back] = random.pick([
    [true, true],
    [true, false],
    [false, true],
  ] as const);
  let undo: Undo | null = null;
  const end = repeat(
    world,
    () => periodMs * (0.5 + random.fraction()) * 0.5,
    () => {
      undo?.();
      undo = undo === null ? cutBetween(world, [node], [other], { there, back }) : null;
    },
  );
  return both(end, () => undo?.());
}

/** Links go down one by one, and come back in another order. */
function swizzle({ world, random, fault }: FaultContext): Undo {
  const pairs = world.cluster.flatMap((a) => world.cluster.filter((b) => b !== a).map((b) => [a, b] as const));
  const stepMs = fault.lastsMs / (2 * pairs.length + 1);
  const undos: Undo[] = [];
  for (const [at, [a, b]] of random.shuffle(pairs).entries()) {
    world.later(at * stepMs, () => {
      const undo = world.cut(a.id, b.id);
      undos.push(undo);
      world.later((1 + random.fraction()) * (fault.lastsMs / 2), undo);
    });
  }
  return () => {
    for (const undo of undos) undo();
  };
}

function crashAtPoint({ world, node, random }: FaultContext): Undo {
  const kind = random.chance(0.3) ? "machine" : "process";
  const point = random.pick(crashPoints);
  node.armCrash(point, 1 + random.integer(3), () => {
    world.counts.add("died at a point");
    world.counts.add(`died ${point}`);
    world.crash(node, kind);
  });
  return () => {
    node.disarm();
    node.start();
  };
}

function crashLoop({ world, node, random }: FaultContext): Undo {
  const { electionTimeoutMs } = world.plan.timing;
  const end = repeat(
    world,
    () => random.logUniform(0.6, 6) * electionTimeoutMs,
    () => {
      world.crash(node, random.chance(0.2) ? "machine" : "process");
      world.later(random.fraction() * electionTimeoutMs, () => node.start());
    },
  );
  return both(end, restartLater(node));
}

function rollingRestart({ world, fault }: FaultContext): Undo {
  const nodes = world.cluster;
  const stepMs = Math.max(fault.lastsMs, 4 * world.plan.timing.electionTimeoutMs) / nodes.length;
  for (const [at, node] of nodes.entries()) {
    world.later(at * stepMs, () => node.stopInOrder());
    world.later((at + 0.5) * stepMs, () => node.start());
  }
  return () => {
    for (const node of nodes) node.start();
  };
}

function slowDisk({ world, node, random, fault }: FaultContext): Undo {
  // A node that is asked to stop doesn't wait for its disk for ever.
  node.harms.add("disk");
  const worstMs = world.plan.world.syncMsMax + betweenMagnitudes(1, 2 * world.plan.timing.diskStallMs, fault.size);
  node.disk.syncMs = () => 0.5 + random.fraction() * worstMs;
  return () => world.mendDisk(node);
}

/** The next chunk of a snapshot can't be read: at a start, or when it is sent to another node. */
function failRead({ world, node, random }: FaultContext): Undo {
  node.harms.add("disk");
  node.disk.failNextRead();
  if (random.chance(0.5)) restartSoon(world, node);
  return restartLater(node);
}

function failOpen({ world, node }: FaultContext): Undo {
  node.harms.add("disk");
  node.disk.failNextOpen();
  restartSoon(world, node);
  return restartLater(node);
}

/** A handshake can't come twice; snapshots are rare. */
function repeatChance(bytes: Uint8Array, usual: number): number {
  const frame = decodePeerFrame(bytes);
  if (frame.kind !== "raft") return 0;
  return frame.messages.some(({ kind }) => kind === "snapshotChunk") ? 0.9 : usual;
}

function restartSoon(world: World, node: SimulatedNode): void {
  world.crash(node, "process");
  world.later(1, () => node.start());
}

/** Its directory is damaged for good, and what was damaged is found at the next start. At most a minority is lost so. */
function rot({ world, node, random }: FaultContext): Undo | null {
  if (!world.canLose(node)) return null;
  world.crash(node, "process");
  node.rot(random);
  return restartLater(node);
}

/** Takes place while all else is well: nothing else of this run comes between a node and those who know its promises. */
function lyingDisk({ world, node, fault }: FaultContext): Undo | null {
  if (!world.canLose(node) || node === world.leader() || !node.isRunning) return null;
  node.disk.isLying = true;
  node.harms.add("lie");
  world.later(fault.lastsMs, () => {
    world.crash(node, "machine");
    node.disk.isLying = false;
    node.start();
  });
  return null;
}

function oldCopy({ world, node, fault }: FaultContext): Undo | null {
  if (!world.canLose(node) || node === world.leader() || !node.isRunning || !node.directory.isFormed) return null;
  const image = node.directory.copy();
  world.later(fault.lastsMs, () => {
    // Another may have been lost meanwhile.
    if (!world.canLose(node)) return;
    world.crash(node, "process");
    node.directory.restore(image);
    node.harms.add("copy");
    world.watch.forgive(node.id);
    world.counts.add("old copy restored");
    node.start();
  });
  return null;
}

function forAll(world: World, action: (node: SimulatedNode) => void): Undo {
  const nodes = world.cluster;
  for (const node of nodes) action(node);
  return () => {
    for (const node of nodes) node.start();
  };
}

const actions: Readonly<Record<FaultKind, Action>> = {
  isolate: (context) => isolate(context, bothWays),
  deafen: (context) => isolate(context, { there: false, back: true }),
  silence: (context) => isolate(context, { there: true, back: false }),
  cutLink: ({ world, node, other }) => cutBetween(world, [node], [other], bothWays),
  cutOneWay: ({ world, node, other }) => cutBetween(world, [node], [other], { there: true, back: false }),
  split: ({ world, random }) => {
    const nodes = random.shuffle(world.cluster);
    const size = 1 + random.integer(nodes.length - 1);
    return cutBetween(world, nodes.slice(0, size), nodes.slice(size), bothWays);
  },
  bridge: ({ world, node }) => {
    const others = world.cluster.filter((each) => each !== node);
    return cutBetween(world, others, others, { there: true, back: false });
  },
  chain: ({ world, random }) => {
    const nodes = random.shuffle(world.cluster);
    const undos = nodes.map((a, at) => cutBetween(world, [a], nodes.slice(at + 2), bothWays));
    return both(...undos);
  },
  cutAll: ({ world }) => cutBetween(world, world.cluster, world.cluster, { there: true, back: false }),
  flap,
  swizzle,
  delay: ({ world, fault }) => {
    const jitterMs = 3 * fault.size * world.plan.timing.electionTimeoutMs;
    return world.impair(both(...world.ways().map(([a, b]) => world.network.slow(a, b, { delayMs: 0, jitterMs }))));
  },
  loss: ({ world, fault }) =>
    world.impair(both(...world.ways().map(([a, b]) => world.network.lossy(a, b, 0.3 * fault.size)))),
  throttle: ({ world, node, random }) => {
    const bytesPerSecond = random.logUniform(5_000, 100_000);
    const ways = world.ways().filter(([a, b]) => a === node.id || b === node.id);
    return world.impair(both(...ways.map(([a, b]) => world.network.throttle(a, b, bytesPerSecond))));
  },
  repeat: ({ world, fault, random }) => {
    const withinMs = random.logUniform(0.1, 10) * world.plan.timing.electionTimeoutMs;
    const repeats = { withinMs, chanceFor: (bytes: Uint8Array) => repeatChance(bytes, 0.3 * fault.size) };
    return both(...world.ways().map(([a, b]) => world.network.repeating(a, b, repeats)));
  },
  reset: ({ world, node, other, random }) => {
    if (random.chance(0.5)) world.network.reset(node.id, other.id);
    else for (const [a, b] of world.ways()) world.network.reset(a, b);
    return null;
  },
  kill: ({ world, node }) => {
    world.crash(node, "process");
    return restartLater(node);
  },
  killAll: ({ world }) => forAll(world, (node) => world.crash(node, "process")),
  powerLoss: ({ world, node }) => {
    world.crash(node, "machine");
    return restartLater(node);
  },
  powerLossAll: ({ world }) => forAll(world, (node) => world.crash(node, "machine")),
  crashPoint: crashAtPoint,
  crashLoop,
  pause: ({ world, node, fault }) => {
    world.processes.pause(node.id, fault.lastsMs);
    return null;
  },
  pauseAll: ({ world, fault, random }) => {
    for (const node of world.cluster) world.processes.pause(node.id, fault.lastsMs * (0.7 + 0.3 * random.fraction()));
    return null;
  },
  stall: ({ world, node, random }) => {
    world.processes.pause(node.id, random.logUniform(0.1, 4) * world.plan.timing.electionTimeoutMs);
    return null;
  },
  stopInOrder: ({ node }) => {
    node.stopInOrder();
    return restartLater(node);
  },
  rollingRestart,
  lateEnd: ({ world, random }) => {
    world.leader()?.proposeLateEnds(random, () => world.counts.add("late end proposed"));
    return null;
  },
  transfer: ({ world, other, random }) => {
    world.leader()?.transfer(random.chance(0.5) ? other.id : null);
    return null;
  },
  slowDisk,
  stalledDisk: ({ node }) => {
    node.harms.add("disk");
    node.disk.isStalled = true;
    return () => void (node.disk.isStalled = false);
  },
  failedWrite: ({ node }) => {
    node.harms.add("disk");
    node.disk.failNextWrite();
    return restartLater(node);
  },
  failedRead: failRead,
  failedOpen: failOpen,
  fullDisk: ({ node }) => {
    node.harms.add("disk");
    node.disk.isFull = true;
    return () => {
      node.disk.isFull = false;
      node.start();
    };
  },
  rot,
  lyingDisk,
  oldCopy,
  drift: ({ world, node, random }) => {
    world.processes.setRate(node.id, 1 + (2 * random.fraction() - 1) * world.plan.world.driftMax);
    return null;
  },
  runaway: ({ world, node, random }) => {
    world.processes.setRate(node.id, random.pick([0.9, 1.1]));
    return () => world.processes.setRate(node.id, 1);
  },
  wallJump: ({ world, node, random }) => {
    for (const each of [node.id, ...world.clientIds()])
      world.processes.jumpWall(each, (random.fraction() - 0.5) * 7_200_000);
    return null;
  },
  suspendNode: ({ world, node, fault }) => {
    world.processes.suspend(node.id, fault.lastsMs);
    return null;
  },
  ...clientFaults,
  ...memberFaults,
};
