/** A fault counts only when it bites. For each kind a figure that rises when it does: looked at when it begins and when it ends. */
import type { FaultKind } from "./fault-kinds.js";
import type { World } from "./world.js";

type Figure = (world: World) => number;

const held: Figure = ({ network }) => network.counts.framesHeld;
const killed: Figure = ({ counts }) => counts.of("node killed");
const powerLost: Figure = ({ counts }) => counts.of("node lost power");
const frozen: Figure = ({ counts }) => counts.of("something came during a pause");
const ratesSet: Figure = ({ counts }) => counts.of("clock rate changed");
const stopped: Figure = ({ counts }) => counts.of("node ended: ok");

function ofDisks(figure: (counts: World["nodes"][number]["disk"]["counts"]) => number): Figure {
  return ({ nodes }) => nodes.reduce((sum, { disk }) => sum + figure(disk.counts), 0);
}

const figures: Readonly<Record<FaultKind, Figure>> = {
  isolate: held,
  deafen: held,
  silence: held,
  cutLink: held,
  cutOneWay: held,
  split: held,
  bridge: held,
  chain: held,
  cutAll: held,
  flap: held,
  swizzle: held,
  delay: ({ network }) => network.counts.slowedFrames,
  loss: ({ network }) => network.counts.retransmissions,
  throttle: ({ network }) => network.counts.throttledBytes,
  reset: ({ network }) => network.counts.resets,
  kill: killed,
  killAll: killed,
  powerLoss: powerLost,
  powerLossAll: powerLost,
  crashPoint: ({ counts }) => counts.of("died at a point"),
  crashLoop: (world) => killed(world) + powerLost(world),
  pause: frozen,
  pauseAll: frozen,
  stall: frozen,
  stopInOrder: stopped,
  rollingRestart: stopped,
  lateEnd: ({ counts }) => counts.of("late end proposed"),
  transfer: ({ counts }) => counts.of("leader elected"),
  slowDisk: ofDisks(({ writes }) => writes),
  stalledDisk: ofDisks(({ stalledWrites }) => stalledWrites),
  failedWrite: ofDisks(({ failedWrites }) => failedWrites.io.kept + failedWrites.io.dropped),
  failedRead: ofDisks(({ failedReads }) => failedReads),
  failedOpen: ofDisks(({ failedOpens }) => failedOpens),
  fullDisk: ofDisks(({ failedWrites, refusedOpens }) => {
    return failedWrites.full.kept + failedWrites.full.dropped + refusedOpens.io;
  }),
  rot: ofDisks(({ refusedOpens }) => refusedOpens.damaged + refusedOpens.quarantined),
  lyingDisk: ofDisks(({ lostBatches }) => lostBatches),
  oldCopy: ofDisks(({ restores }) => restores),
  drift: ratesSet,
  runaway: ratesSet,
  wallJump: ({ counts }) => counts.of("wall clock jumped"),
  suspendNode: frozen,
  killClient: ({ counts }) => counts.of("client killed") + counts.of("client lost power"),
  pauseClient: frozen,
  suspendClient: frozen,
  driftClient: ratesSet,
  cutClient: held,
  cutClientOneWay: held,
  slowClient: ({ network }) => network.counts.throttledBytes,
  burst: ({ clients }) => clients.started,
};

export function figureOf(kind: FaultKind, world: World): number {
  return figures[kind](world);
}
