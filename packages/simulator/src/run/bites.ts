/** A fault counts only when it bites. For each kind a figure that rises when it does: looked at when it begins and when it ends. */
import type { FaultKind } from "./fault-kinds.js";
import type { Targets } from "./faults.js";
import type { World } from "./world.js";

type Figure = (world: World, targets: Targets) => number;

/** On the ways from and to a node; between two; between all; from and to any client. */
const cutOffAtNode: Figure = ({ network }, { node: { id } }) => network.cutOff((from, to) => from === id || to === id);
const cutOffBetween: Figure = ({ network }, { node, other }) =>
  network.cutOff((from, to) => (from === node.id && to === other.id) || (from === other.id && to === node.id));
const cutOffAmongNodes: Figure = (world) =>
  world.network.cutOff((from, to) => world.node(from) !== null && world.node(to) !== null);
const cutOffAtClients: Figure = (world) =>
  world.network.cutOff((from, to) => world.node(from) === null || world.node(to) === null);
const killed: Figure = ({ counts }) => counts.of("node killed");
const powerLost: Figure = ({ counts }) => counts.of("node lost power");
const frozen: Figure = ({ counts }) => counts.of("something came during a pause");
const asleepAtNode: Figure = ({ network }, { node: { id } }) => network.asleep((from, to) => from === id || to === id);
const asleepAtClients: Figure = (world) =>
  world.network.asleep((from, to) => world.node(from) === null || world.node(to) === null);
/** Clocks that have gone astray by whole milliseconds. */
const nodeStrayed: Figure = (_, { node }) => Math.floor(node.strayedMs);
const clientsStrayed: Figure = ({ clients }) => Math.floor(clients.strayedMs);
const stopped: Figure = ({ counts }) => counts.of("node ended: ok");

function ofDisk(figure: (counts: World["nodes"][number]["disk"]["counts"]) => number): Figure {
  return (_, { node }) => figure(node.disk.counts);
}

const figures: Readonly<Record<FaultKind, Figure>> = {
  isolate: cutOffAtNode,
  deafen: cutOffAtNode,
  silence: cutOffAtNode,
  cutLink: cutOffBetween,
  cutOneWay: cutOffBetween,
  split: cutOffAmongNodes,
  bridge: cutOffAmongNodes,
  chain: cutOffAmongNodes,
  cutAll: cutOffAmongNodes,
  flap: cutOffBetween,
  swizzle: cutOffAmongNodes,
  delay: ({ network }) => network.counts.slowedFrames,
  loss: ({ network }) => network.counts.retransmissions,
  throttle: ({ network }) => network.counts.throttledBytes,
  repeat: ({ network }) => network.counts.repeats,
  reset: ({ network }) => network.counts.resets,
  kill: killed,
  killAll: killed,
  powerLoss: powerLost,
  powerLossAll: powerLost,
  crashPoint: ({ counts }) => counts.of("died at a point"),
  crashLoop: (world, targets) => killed(world, targets) + powerLost(world, targets),
  pause: frozen,
  pauseAll: frozen,
  stall: frozen,
  stopInOrder: stopped,
  rollingRestart: stopped,
  lateEnd: ({ counts }) => counts.of("late end proposed"),
  transfer: ({ counts }) => counts.of("leadership handed on"),
  slowDisk: (_, { node }) => node.slowWrites,
  stalledDisk: ofDisk(({ stalledWrites }) => stalledWrites),
  failedWrite: ofDisk(({ failedWrites }) => failedWrites.io.kept + failedWrites.io.dropped),
  failedRead: ofDisk(({ failedReads }) => failedReads),
  failedOpen: ofDisk(({ failedOpens }) => failedOpens),
  fullDisk: ofDisk(({ failedWrites, refusedOpens }) => {
    return failedWrites.full.kept + failedWrites.full.dropped + refusedOpens.io;
  }),
  rot: ofDisk(({ refusedOpens }) => refusedOpens.damaged + refusedOpens.quarantined),
  lyingDisk: ofDisk(({ lostBatches }) => lostBatches),
  oldCopy: ofDisk(({ restores }) => restores),
  drift: nodeStrayed,
  runaway: nodeStrayed,
  wallJump: ({ counts }) => counts.of("wall clock jumped"),
  suspendNode: asleepAtNode,
  killClient: ({ counts }) => counts.of("client killed") + counts.of("client lost power"),
  pauseClient: frozen,
  suspendClient: asleepAtClients,
  driftClient: clientsStrayed,
  cutClient: cutOffAtClients,
  cutClientOneWay: cutOffAtClients,
  slowClient: ({ network }) => network.counts.throttledBytes,
  // More is asked at once than before.
  burst: ({ clients }) => clients.openCalls().length,
  addMember: ({ counts }) => counts.of("learner added"),
  removeMember: ({ counts }) => counts.of("member removed"),
  replaceMember: ({ counts }) => counts.of("member replaced"),
  resizeCluster: ({ counts }) => counts.of("cluster made larger") + counts.of("cluster made smaller"),
  wipeNode: ({ counts }) => counts.of("wiped node refused"),
  returnRemoved: ({ counts }) => counts.of("removed node came back and was refused"),
  strandChange: ({ counts }) => counts.of("configuration truncated"),
  oddRequest: ({ counts }) => counts.of("odd request refused"),
};

export function figureOf(kind: FaultKind, world: World, targets: Targets): number {
  return figures[kind](world, targets);
}
