/** Changes of the members, as faults that are planned: each a small errand of the administrator. What it is about ends with it, or with the faults. */
import type { SimulatedNode } from "../node/simulated-node.js";
import { pickSome } from "./administrator.js";
import type { Change } from "./administrator.js";
import type { MemberFaultKind } from "./fault-kinds.js";
import type { Action, FaultContext } from "./faults.js";
import { memberFor } from "./members.js";

type Errand = (context: FaultContext) => Promise<void>;

/** What is wrong inside of an errand is the run's failure; what it waits for when the faults are over never comes. */
function errand(run: Errand): Action {
  return (context) => {
    run(context).catch((error: unknown) => context.world.fail(error));
    return null;
  };
}

/** A learner that comes, and mostly gets a vote; at times it is asked for before it can have caught up. */
async function addMember({ world, random, fault }: FaultContext): Promise<void> {
  const { administrator, counts } = world;
  const node = await administrator.startSpare();
  if (node === null || !(await administrator.add(node, fault.lastsMs))) return;
  counts.add("learner added");
  if (random.chance(0.2)) return;
  const patienceMs = fault.lastsMs / 4;
  if (random.chance(0.3)) await administrator.ask({ promote: [node.id] }, { patienceMs });
  await administrator.untilCaughtUp(node, fault.lastsMs);
  if (await administrator.insist({ promote: [node.id] }, { forMs: fault.lastsMs })) counts.add("learner promoted");
}

async function removeMember({ world, node, random, fault }: FaultContext): Promise<void> {
  const { administrator, members, counts } = world;
  const learners = members.configuration.learners.map(({ id }) => id);
  const id = learners.length > 0 && random.chance(0.2) ? random.pick(learners) : node.id;
  const isLeader = world.leader()?.id === id;
  const isForced = fault.size > 0.85;
  if (!(await administrator.insist({ remove: [id] }, { forMs: fault.lastsMs, isForced }))) return;
  counts.add("member removed");
  if (isLeader) counts.add("leader removed itself");
}

/** A dead or a living one gives its place to a new id, in one change. */
async function replaceMember({ world, node, random, fault }: FaultContext): Promise<void> {
  const { administrator, counts } = world;
  const spare = await administrator.startSpare();
  if (spare === null) return;
  if (random.chance(0.5)) world.crash(node, random.chance(0.3) ? "machine" : "process");
  if (!(await administrator.add(spare, fault.lastsMs))) return;
  await administrator.untilCaughtUp(spare, fault.lastsMs);
  const isReplaced = await administrator.insist({ promote: [spare.id], remove: [node.id] }, { forMs: fault.lastsMs });
  if (isReplaced) counts.add("member replaced");
  // It was dead, and comes back: as it was, or to learn that it has no place any more.
  if (random.chance(0.7)) node.start();
}

/** From three to five in one change, and back. */
async function resizeCluster({ world, random, fault }: FaultContext): Promise<void> {
  const { administrator, members, counts } = world;
  const { voters } = members.configuration;
  const options = { forMs: fault.lastsMs };
  if (voters.length > 3) {
    const going = pickSome(random, members.nodes, members.nodes.length).filter(({ id }) => members.isVoter(id));
    const ids = going.slice(0, 2).map(({ id }) => id);
    if (await administrator.insist({ remove: ids }, options)) counts.add("cluster made smaller");
    return;
  }
  const added: SimulatedNode[] = [];
  for (let count = 0; count < 2; count += 1) {
    const spare = await administrator.startSpare();
    if (spare === null || !(await administrator.add(spare, fault.lastsMs))) break;
    added.push(spare);
  }
  for (const node of added) await administrator.untilCaughtUp(node, fault.lastsMs);
  if (added.length < 2) return;
  if (await administrator.insist({ promote: added.map(({ id }) => id) }, options)) counts.add("cluster made larger");
}

/** A member's machine is set up anew, and started under its old id: nobody may take it for the old one. */
async function wipeNode({ world, node, fault }: FaultContext): Promise<void> {
  const { members } = world;
  const { voters, learners, outgoing } = members.configuration;
  const isKnown = [...voters, ...learners, ...outgoing].some(({ id }) => id === node.id);
  if (!isKnown || !node.directory.isFormed || !world.canLose(node) || world.watch.configuration === null) return;
  world.crash(node, "process");
  world.wipe(node);
  await world.sleep(Math.min(fault.lastsMs, world.plan.timing.electionTimeoutMs));
  node.start();
}

/** It is started once more, with what it has. */
async function returnRemoved({ world, random }: FaultContext): Promise<void> {
  const gone = world.nodes.filter((node) => node.isInUse && !node.isRunning && world.members.isRemoved(node.id));
  if (gone.length === 0) return;
  await world.sleep(1);
  const node = random.pick(gone);
  world.counts.add("removed node started again");
  node.startAgain();
}

/**
 * A leader that nobody hears any more is asked, and asked again: what it writes into its log is cut off, once it hears of its successor. That
 * one is asked for another change as soon as it leads (Ongaro, raft-dev 2015).
 */
async function strandChange({ world, random, fault }: FaultContext): Promise<void> {
  const { administrator, members, plan } = world;
  const spare = random.chance(0.5) ? await administrator.startSpare() : null;
  const leader = world.leader();
  if (leader === null) return;
  const undos = world.cluster
    .filter((node) => node !== leader)
    .flatMap(({ id }) => [world.cut(leader.id, id), world.cut(id, leader.id)]);
  const { voters } = members.configuration;
  const joining =
    spare === null ? memberFor("ghost", strangeInstance(0)) : memberFor(spare.id, spare.directory.instance ?? "");
  const changes: readonly Change[] = [{ add: [joining] }, { remove: [random.pick(voters).id] }];
  const asking = { at: leader, patienceMs: fault.lastsMs };
  for (const change of random.shuffle(changes)) void administrator.ask(change, asking);
  const untilMs = world.nowMs + random.logUniform(3, 6) * plan.timing.electionTimeoutMs;
  await administrator.nextLeader(untilMs - world.nowMs);
  void administrator.ask(random.pick(changes), { patienceMs: fault.lastsMs });
  await world.sleep(untilMs - world.nowMs);
  for (const undo of undos) undo();
}

/** What must be refused, and what was asked before. */
async function oddRequest({ world, node, other, random, fault }: FaultContext): Promise<void> {
  const { administrator, members } = world;
  const { voters, learners, removed } = members.configuration;
  const patienceMs = fault.lastsMs / 2;
  const some = random.pick([...voters, ...learners]);
  const gone = removed.length === 0 ? null : random.pick(removed);
  const odd = random.pick([
    () => administrator.ask({}, { patienceMs }),
    () => administrator.ask({ promote: ["nobody"] }, { patienceMs }),
    () => administrator.ask({ add: [{ ...some, id: "copy" }] }, { patienceMs }),
    () => administrator.ask({ add: [{ ...some, instance: strangeInstance(1) }] }, { patienceMs }),
    () =>
      administrator.ask({ add: [{ ...memberFor("neighbour", strangeInstance(2)), peer: some.peer }] }, { patienceMs }),
    () => administrator.ask({ promote: [some.id], remove: [some.id] }, { patienceMs }),
    () => administrator.ask({ promote: [some.id] }, { patienceMs, at: node }),
    () => administrator.ask({ add: [memberFor(gone ?? "stranger", strangeInstance(3))] }, { patienceMs, at: other }),
    // Nobody will ever start it.
    () => administrator.ask({ add: [memberFor("ghost", strangeInstance(0))] }, { patienceMs }),
    () => administrator.ask({ remove: learners.map(({ id }) => id) }, { patienceMs, isForced: true }),
  ]);
  const first = odd();
  if (random.chance(0.3)) void odd();
  if ((await first) !== "completed") world.counts.add("odd request refused");
}

export const memberFaults: Readonly<Record<MemberFaultKind, Action>> = {
  addMember: errand(addMember),
  removeMember: errand(removeMember),
  replaceMember: errand(replaceMember),
  resizeCluster: errand(resizeCluster),
  wipeNode: errand(wipeNode),
  returnRemoved: errand(returnRemoved),
  oddRequest: errand(oddRequest),
  strandChange: errand(strandChange),
};

/** Of no directory of the run. */
function strangeInstance(which: number): string {
  return which.toString(16).padStart(32, "f");
}
