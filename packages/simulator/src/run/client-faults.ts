/** Faults of clients, and of the ways between them and the nodes. */
import type { ClientFaultKind } from "./fault-kinds.js";
import type { Action, FaultContext, Undo } from "./faults.js";

/** Mostly one that holds a lock: it has something to lose. */
function anyClient({ world, random }: FaultContext): string | null {
  const ids = world.clientIds();
  const holders = world.holderIds();
  if (holders.length > 0 && random.chance(0.7)) return random.pick(holders);
  return ids.length === 0 ? null : random.pick(ids);
}

function forClient(act: (client: string, context: FaultContext) => Undo | null): Action {
  return (context) => {
    const client = anyClient(context);
    return client === null ? null : act(client, context);
  };
}

function all(undos: readonly Undo[]): Undo {
  return () => {
    for (const undo of undos) undo();
  };
}

export const clientFaults: Readonly<Record<ClientFaultKind, Action>> = {
  killClient: forClient((client, { world, random }) => {
    world.killClient(client, random.chance(0.3) ? "machine" : "process");
    world.addClient();
    return null;
  }),
  pauseClient: forClient((client, { world, fault, random }) => {
    world.processes.pause(client, random.chance(0.5) ? fault.lastsMs : world.plan.ttlMs * (0.7 + random.fraction()));
    return null;
  }),
  suspendClient: forClient((client, { world, random }) => {
    world.processes.suspend(client, world.plan.ttlMs * random.logUniform(0.1, 2));
    return null;
  }),
  driftClient: forClient((client, { world, random }) => {
    world.processes.setRate(client, 1 + (2 * random.fraction() - 1) * world.plan.world.driftMax);
    return null;
  }),
  /** From the leader alone, or from all nodes. */
  cutClient: forClient((client, { world, node, random }) => {
    const nodes = random.chance(0.5) ? [node] : world.cluster;
    return all(nodes.flatMap(({ id }) => [world.cut(client, id), world.cut(id, client)]));
  }),
  cutClientOneWay: forClient((client, { world, random }) => {
    const isSent = random.chance(0.5);
    return all(world.cluster.map(({ id }) => (isSent ? world.cut(client, id) : world.cut(id, client))));
  }),
  slowClient: forClient((client, { world, random }) => {
    const bytesPerSecond = random.logUniform(500, 20_000);
    return all(world.cluster.map(({ id }) => world.network.throttle(id, client, bytesPerSecond)));
  }),
  burst: ({ world, random }) => {
    const count = 2 + random.integer(6);
    const ids = Array.from({ length: count }, () => world.addClient());
    return () => {
      for (const id of ids) world.drainClient(id);
    };
  },
};
