/**
 * What must not be left when all is at rest (invariant 23): nobody is there any more, so nothing waits, nothing is owned, and sockets and
 * timers are back to what an idle cluster has.
 */
import { restingParts } from "../node/host-access.js";
import type { SimulatedNode } from "../node/simulated-node.js";
import type { World } from "./world.js";

/** Two lanes in both directions; one that is broken for ever calls again and again, and each call waits until its time is over. */
const socketsPerPeerMax = 4;
const socketsPerBrokenMax = 12;
const socketsMax = 2;
/** A turn, the sweeps of clients and of peers, the disk; a peer's calls and when to call next. */
const timersMax = 5;
const timersPerPeerMax = 4;
const timersPerBrokenMax = 12;

/** Of the core's nodes that run, and of clients' machines. One line each; none is good. */
export function leftoversOf(world: World, core: readonly SimulatedNode[]): string[] {
  const left: string[] = [];
  for (const node of core) {
    for (const [what, count] of countsOf(world, node)) if (count > 0) left.push(`${node.id}: ${count} ${what}`);
    left.push(...excessOf(world, core, node));
  }
  for (const place of world.network.allPlaces()) {
    const sockets = place.endpoints.size;
    if (world.node(place.name) === null && sockets > 0) left.push(`${place.name}: ${sockets} sockets`);
  }
  return left;
}

function countsOf(world: World, { host }: SimulatedNode): readonly (readonly [string, number])[] {
  if (host === null) return [];
  const { gateway, keeper, rounds, answers, transfers, proposals, queue } = restingParts(host);
  const { owners, openings } = gateway.sessions;
  // Of a client that went with its machine the node hears nothing: it finds out when the connection was silent for long.
  const isThere = ({ remote }: { readonly remote: string }): boolean => !world.network.place(hostOf(remote)).isOff;
  const connections = [...gateway.connections.keys()].filter(isThere);
  const watching = [...gateway.watches.all.keys()].filter(isThere).length;
  const isGone = gateway.watches.all.size === 0;
  return [
    ["connections of clients", connections.length],
    ["openings", openings.byKey.size],
    ["connections with openings", openings.keysOf.size],
    ["owners of sessions", owners.owners.size],
    ["connections that own sessions", [...owners.sessionsOf.keys()].filter(isThere).length],
    ["connections with resumes", owners.resumes.size],
    ["open queries", gateway.queries.open.size],
    ["forced releases", gateway.queries.forces.length],
    ["connections with watches", watching],
    ["watched names", isGone ? gateway.watches.byName.size : 0],
    ["watched prefixes", isGone ? gateway.watches.byPrefix.size : 0],
    ["transfers", transfers.waiting.length],
    ["callers of the next quorum round", rounds.gathering.length],
    ["callers of a later quorum round", rounds.patient.length],
    ["confirmed answers that leases may hang on", answers.ofLeases.length],
    ["confirmed answers to questions", answers.questions.length],
    ["quorum rounds in flight", rounds.inFlight.size],
    ["quorum rounds that wait for the state machine", rounds.unapplied.length],
    ["leases", keeper.leases.size],
    ["keepalives that wait for a round", keeper.gathering.size],
    ["renewals", keeper.toRenew.size],
    ["leases that wait for a round", keeper.awaitingRound.length],
    ["leases that are ready to expire", keeper.readyToExpire.length],
    ["expiries in flight", keeper.expiriesInFlight],
    ["refusals", proposals.refusals.size],
    ["connections whose frames wait for a turn", queue.clients.lanes.size],
  ];
}

function excessOf(world: World, core: readonly SimulatedNode[], node: SimulatedNode): string[] {
  const { process } = node;
  if (process === null) return [];
  const peers = core.length - 1;
  const { voters, learners } = world.members.configuration;
  // Of those that were removed lately links may be left; and members may be no machines at all.
  const broken =
    Math.max(world.nodes.filter(({ isInUse }) => isInUse).length, voters.length + learners.length) - core.length;
  const excess: string[] = [];
  const { endpoints } = world.network.place(node.id);
  const sockets = endpoints.size;
  const dead = [...endpoints].filter((end) => end.connection.otherPlace(end).isOff).length;
  const most = {
    sockets: socketsMax + socketsPerPeerMax * peers + socketsPerBrokenMax * broken + dead,
    timers: timersMax + timersPerPeerMax * peers + timersPerBrokenMax * broken + dead,
  };
  if (sockets > most.sockets) excess.push(`${node.id}: ${sockets} sockets, more than ${most.sockets}`);
  if (process.timerCount > most.timers)
    excess.push(`${node.id}: ${process.timerCount} timers, more than ${most.timers}`);
  return excess;
}

/** Of "host:port". */
function hostOf(remote: string): string {
  return remote.slice(0, remote.lastIndexOf(":"));
}
