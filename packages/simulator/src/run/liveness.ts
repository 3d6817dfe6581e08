/** The second half of a run: from the healing on everything has a bound (invariant 22), and in the end all is at rest (invariant 24). */
import type { PeerStatus, Raft } from "@holdfast/raft";
import { probed } from "../node/host-access.js";
import type { SimulatedNode } from "../node/simulated-node.js";
import { hasAdvanced } from "./advancing.js";
import { changeInCalm, expectSettled } from "./calm-change.js";
import type { Core } from "./core.js";
import { leftoversOf } from "./leftovers.js";
import { StuckError } from "./stuck-error.js";
import { unansweredKeepalives } from "./unanswered.js";
import type { World } from "./world.js";

/** How long things took from the healing on, in virtual milliseconds; null: it didn't come to that. */
export interface Times {
  leaderMs: number | null;
  callsMs: number | null;
  sessionsMs: number | null;
}

/** Peers and clients find one another again: redials, back-offs, greetings. */
const reconnectMs = 2_500;
/** A node gives up a client's connection that was silent for two periods of five seconds. */
const silenceMs = 16_000;
/** From here on promise 6 is judged (the checker says why). */
const judgedTtl = 30;

/** A leader that serves soon, and every call ends: what is held is given back, so every waiter is granted. */
export async function expectProgress(world: World, core: Core, times: Times): Promise<void> {
  const { electionTimeoutMs } = world.plan.timing;
  const healedMs = world.nowMs;
  const random = world.stream("deaths at the healing");
  // Holders die, and others wait for what they held.
  if (random.chance(0.3)) for (const client of world.clientIds()) if (random.chance(0.4)) world.killClient(client);
  world.clients.drainAll();
  const leaderLimitMs = 5 * electionTimeoutMs + reconnectMs;
  await world.run(leaderLimitMs, () => servingLeader(world, core) !== null);
  // A majority may lack what only a snapshot brings, in as many chunks as it has records, or a long log.
  while (servingLeader(world, core) === null) {
    const before = latePeersIn(core);
    await world.run(leaderLimitMs, () => servingLeader(world, core) !== null);
    if (servingLeader(world, core) !== null) break;
    const isAdvancing = [...latePeersIn(core)].some(([id, now]) => before.has(id) && hasAdvanced(before.get(id), now));
    if (!isAdvancing) break;
  }
  if (servingLeader(world, core) === null)
    throw new StuckError("no-leader", `no leader serves ${leaderLimitMs} ms after the healing`);
  const servesMs = world.nowMs;
  times.leaderMs = servesMs - healedMs;
  // Locks of the dead stand in the way for 2 TTL + 3 election timeouts; clients that were far back off.
  const ttlMs = longestTtl(world, core);
  const callsLimitMs = 2 * ttlMs + 13 * electionTimeoutMs + 2 * reconnectMs;
  await world.run(callsLimitMs, () => world.clients.areIdle);
  if (!world.clients.areIdle) {
    const open = world.clients.openCalls().map(({ description, ageMs }) => `${description} for ${ageMs.toFixed(0)} ms`);
    throw new StuckError(
      "open-calls",
      `${callsLimitMs} ms after the healing calls are open: ${open.join("; ")}\n${world.clients.describe().join("\n")}`,
    );
  }
  times.callsMs = world.nowMs - healedMs;
  await expectAnswers(world, core, servesMs);
  await expectSettled(world, core);
  await changeInCalm(world, core);
}

/** A session that was silent once is renewed like any other. */
async function expectAnswers(world: World, core: Core, servesMs: number): Promise<void> {
  const limitMs = 3 * world.plan.timing.electionTimeoutMs;
  const leader = servingLeader(world, core);
  const term = termOf(core);
  await world.run(limitMs);
  // One outside that flaps may have led meanwhile.
  if (leader === null || servingLeader(world, core) !== leader || termOf(core) !== term) return;
  const open = unansweredKeepalives(world, leader, servesMs, world.nowMs - limitMs);
  if (open.length > 0)
    throw new StuckError("keepalive-unanswered", `${limitMs} ms later ${leader.id} owes answers: ${open.join("; ")}`);
}

/** Everybody is gone: all sessions end, nothing is left, the core is equal, and nobody campaigns any more. */
export async function expectRest(world: World, core: Core, times: Times): Promise<void> {
  const { electionTimeoutMs } = world.plan.timing;
  const goneMs = world.nowMs;
  for (const client of world.clientIds()) world.killClient(client);
  const ttlMs = longestTtl(world, core);
  const limitMs = 2 * ttlMs + 3 * electionTimeoutMs + reconnectMs + stallLeader(world, core);
  await world.run(limitMs, () => isEmpty(world, core));
  if (!isEmpty(world, core))
    throw new StuckError("session-stays", `${limitMs} ms after the last client's end the state is not empty`);
  times.sessionsMs = world.nowMs - goneMs;
  await expectEqual(world, core);
  // One that was left deaf or mute may have led until a moment ago: that it is deposed is in order.
  if (core.isPart) await world.run(4 * electionTimeoutMs);
  const leader = servingLeader(world, core);
  const term = termOf(core);
  // The checker judges what it sees the whole time of.
  const isJudged = ttlMs >= judgedTtl * electionTimeoutMs;
  await world.run(isJudged ? 2 * ttlMs + 5 * electionTimeoutMs : 4 * electionTimeoutMs);
  // One outside that flaps may lead for a while, and then not.
  if (leader !== null && core.has(leader) && termOf(core) !== term)
    throw new StuckError("term-rises", `the term rose from ${term} to ${termOf(core)} at rest`);
  // The entry of a late election, or a late end, may just be on its way.
  await world.run(electionTimeoutMs, () => areEqual(world, core));
  // Of a client whose last word was lost in a cut a node finds out by its silence.
  await world.run(silenceMs, () => leftoversOf(world, core.nodes).length === 0);
  const left = leftoversOf(world, core.nodes);
  if (left.length > 0) throw new StuckError("leftovers", `left at rest: ${left.join("; ")}`);
}

/** All of the core come to have the same. Who gets a long log, or a snapshot piece by piece, may take long, and not stand still. */
async function expectEqual(world: World, core: Core): Promise<void> {
  const limitMs = 5 * world.plan.timing.electionTimeoutMs + reconnectMs;
  for (;;) {
    const before = latePeersIn(core);
    await world.run(limitMs, () => areEqual(world, core));
    if (areEqual(world, core)) return;
    const late = [...latePeersIn(core)];
    if (late.length > 0 && late.every(([id, now]) => hasAdvanced(before.get(id), now))) continue;
    throw new StuckError("no-convergence", `the core differs: ${core.nodes.map(textOf).join("; ")}`);
  }
}

/** Those of the core that lack something of what its leader has, whether or not that one serves; none while nobody leads. */
function latePeersIn(core: Core): Map<string, PeerStatus> {
  const leaders = core.nodes.flatMap(({ host }) => (host === null ? [] : [probed(host).raft])).filter(isLeading);
  const [newest] = leaders.sort((a, b) => b.term - a.term);
  const ids = new Set(core.nodes.map(({ id }) => id));
  const peers = newest?.status().peers ?? [];
  const late = peers.filter(
    ({ id, behindEntries, snapshot }) => ids.has(id) && (behindEntries > 0 || snapshot !== null),
  );
  return new Map(late.map((peer) => [peer.id, peer]));
}

function isLeading({ role }: Raft): boolean {
  return role === "leader";
}

/** The leader's loop is stuck while sessions run out, mostly for less than it takes to depose it: that is no silence. Returns for how long. */
function stallLeader(world: World, core: Core): number {
  const random = world.stream("last stall");
  if (!random.chance(0.4)) return 0;
  const ms = (0.7 + 0.6 * random.fraction()) * world.plan.timing.electionTimeoutMs;
  world.after(random.fraction() * world.plan.ttlMs, () => {
    const leader = servingLeader(world, core);
    // At rest nothing more may happen to it.
    if (leader !== null && !isEmpty(world, core)) world.processes.pause(leader.id, ms);
  });
  return ms;
}

/** A node that leads, serves, and is followed by all of the core. One outside may: broken as it is, it can be heard. */
function servingLeader(world: World, core: Core): SimulatedNode | null {
  for (const node of world.nodes) {
    if (node.host === null) continue;
    const { raft, leadership } = probed(node.host);
    if (raft.role !== "leader" || !leadership.isServing) continue;
    const isFollowed = core.nodes.every(({ host }) => {
      const other = host === null ? null : probed(host).raft;
      return other !== null && other.term === raft.term && other.leader === node.id;
    });
    if (isFollowed) return node;
  }
  return null;
}

/** Of the sessions that are there, whether or not a leader serves just now. */
export function longestTtl(world: World, core: Core): number {
  let longestMs = world.plan.ttlMs;
  for (const host of [servingLeader(world, core)?.host, ...core.nodes.map((node) => node.host)]) {
    if (host === null || host === undefined) continue;
    for (const { ttlMs } of probed(host).applier.machine.sessions()) longestMs = Math.max(longestMs, ttlMs);
  }
  return longestMs;
}

function isEmpty(world: World, core: Core): boolean {
  const leader = servingLeader(world, core);
  if (leader === null || leader.host === null) return false;
  const { machine } = probed(leader.host).applier;
  return machine.sessionCount === 0 && machine.lockCount === 0;
}

function areEqual(world: World, core: Core): boolean {
  return servingLeader(world, core) !== null && new Set(core.nodes.map(textOf)).size === 1;
}

function textOf({ host }: SimulatedNode): string {
  if (host === null) return "down";
  const { raft, applier } = probed(host);
  return `${applier.lastApplied}/${raft.commitIndex}/${raft.lastIndex}`;
}

function termOf(core: Core): number {
  return Math.max(...core.nodes.map(({ host }) => (host === null ? 0 : probed(host).raft.term)));
}
