/** In some runs the members change once more when all is calm: then each step has a bound, and a removed node that runs learns of it (invariant 22). */
import { membershipBounds } from "@holdfast/raft";
import type { Member, PeerStatus } from "@holdfast/raft";
import { probed } from "../node/host-access.js";
import type { SimulatedNode } from "../node/simulated-node.js";
import type { Change } from "./administrator.js";
import { hasAdvanced, standOf } from "./advancing.js";
import type { Core } from "./core.js";
import { memberFor } from "./members.js";
import { StuckError } from "./stuck-error.js";
import type { World } from "./world.js";

/** Peers find one another: dials, back-offs, greetings. */
const connectMs = 2_500;
/** What the storm has begun is finished, and who was removed has ended. */
export async function expectSettled(world: World, core: Core): Promise<void> {
  const limitMs = 5 * world.plan.timing.electionTimeoutMs + connectMs;
  await world.run(limitMs, () => isSettled(world));
  if (!isSettled(world)) throw new StuckError("change-open", `a change of members is open ${limitMs} ms later`);
  await world.run(limitMs, () => core.unaware.length === 0);
  const unaware = core.unaware.map(({ id }) => id);
  if (unaware.length > 0)
    throw new StuckError("removed-runs", `${unaware.join(", ")} runs ${limitMs} ms after its removal`);
}

export async function changeInCalm(world: World, core: Core): Promise<void> {
  const random = world.stream("calm change");
  if (world.plan.spares === 0 || !random.chance(0.7)) return;
  const spare = world.nodes.find((node) => !node.isInUse) ?? null;
  const isFull = world.members.configuration.voters.length >= membershipBounds.votersMax;
  const isReplaced = random.chance(0.5) || isFull;
  const isLeaderGoing = random.chance(0.3);
  if (spare !== null) await bring(world, spare);
  const promote = spare === null ? [] : [spare.id];
  const remove = isReplaced || spare === null ? goingWith(world, core, promote, isLeaderGoing) : [];
  if (promote.length + remove.length === 0 || (isFull && remove.length === 0)) return;
  if (spare !== null) core.add(spare);
  await demandDone(world, { promote, remove });
  world.counts.add("changed in the calm");
  await expectSettled(world, core);
}

async function bring(world: World, spare: SimulatedNode): Promise<void> {
  const { electionTimeoutMs } = world.plan.timing;
  spare.start();
  await world.run(electionTimeoutMs, () => spare.directory.instance !== null);
  await demandDone(world, { add: [memberFor(spare.id, spare.directory.instance ?? "")] });
  await expectCaughtUp(world, spare);
}

/** It gets the whole log, however long that is; what it lacked when it got its vote, the change would wait for. */
async function expectCaughtUp(world: World, { id }: SimulatedNode): Promise<void> {
  const limitMs = 10 * world.plan.timing.electionTimeoutMs + connectMs;
  const peer = (): PeerStatus | undefined => {
    const host = world.leader()?.host ?? null;
    return host === null
      ? undefined
      : probed(host)
          .raft.status()
          .peers.find((each) => each.id === id);
  };
  const isThere = (): boolean => peer()?.isCaughtUp === true && peer()?.behindEntries === 0;
  for (;;) {
    const before = peer();
    await world.run(limitMs, isThere);
    if (isThere()) return;
    const now = peer();
    if (!hasAdvanced(before, now))
      throw new StuckError("learner-behind", `${id} is ${standOf(now)}, and was ${standOf(before)} ${limitMs} ms ago`);
  }
}

/** One whose going leaves the core a majority: the leader, or whoever is left out of the core. */
function goingWith(world: World, core: Core, promote: readonly string[], isLeaderGoing: boolean): string[] {
  const { voters } = world.members.configuration;
  const joining: Member[] = promote.map((id) => memberFor(id, ""));
  const isWell = (node: SimulatedNode): boolean => core.has(node) || promote.includes(node.id);
  const may = voters.filter(({ id }) => {
    const left = [...voters.filter((voter) => voter.id !== id), ...joining];
    const knowsClients = world.members.firstMembers.some((node) => node.id !== id && core.has(node));
    return left.length > 0 && knowsClients && world.members.isMajority(left, isWell);
  });
  const leaderId = world.leader()?.id;
  const leader = isLeaderGoing ? may.find(({ id }) => id === leaderId) : undefined;
  const going = leader ?? may.find(({ id }) => !core.nodes.some((node) => node.id === id)) ?? may[0];
  return going === undefined ? [] : [going.id];
}

async function demandDone(world: World, change: Change): Promise<void> {
  const { administrator } = world;
  const { electionTimeoutMs } = world.plan.timing;
  const limitMs = 5 * electionTimeoutMs + connectMs;
  const untilMs = world.nowMs + limitMs;
  let last = "nothing";
  while (world.nowMs < untilMs) {
    let answer: string | null = null;
    void administrator.ask(change, { patienceMs: untilMs - world.nowMs }).then((said) => void (answer = said));
    await world.run(untilMs - world.nowMs, () => answer !== null);
    if (answer === "completed" || administrator.isDone(change)) return;
    last = answer ?? "nothing";
    await world.run(Math.min(electionTimeoutMs / 4, untilMs - world.nowMs));
  }
  if (administrator.isDone(change)) return;
  throw new StuckError("change-open", `${JSON.stringify(change)} is not done within ${limitMs} ms: ${last}`);
}

function isSettled(world: World): boolean {
  const host = world.leader()?.host ?? null;
  return host !== null && !probed(host).raft.status().isChanging;
}
