/** Changes of members in a run: what the world may do to them, and what it may expect of them. */
import assert from "node:assert/strict";
import test from "node:test";
import { Core } from "../src/run/core.js";
import { hasAdvanced } from "../src/run/advancing.js";
import { changeInCalm } from "../src/run/calm-change.js";
import { longestTtl } from "../src/run/liveness.js";
import { drawPlan } from "../src/run/plan.js";
import type { Plan } from "../src/run/plan.js";
import { World } from "../src/run/world.js";

const timing = { electionTimeoutMs: 500, heartbeatMs: 100, diskStallMs: 2_000 };

async function worldOf(changed: Partial<Plan>): Promise<World> {
  const world = new World({ ...drawPlan(2708), timing, faults: [], ...changed }, { isShown: false });
  world.start();
  await world.run(20_000, () => world.leader() !== null);
  await world.run(5_000);
  return world;
}

test("no node is spoilt that a change needs which its leader has not come to yet", async () => {
  const world = await worldOf({ nodes: 3 });
  const leader = world.leader();
  const [first, second] = world.members.nodes.filter((node) => node !== leader);
  assert.ok(first !== undefined && second !== undefined && leader !== null);
  assert.equal(world.canLose(second), true);
  void world.administrator.ask({ remove: [first.id] }, { patienceMs: 1_000 });
  assert.deepEqual(world.members.configuration.outgoing, []);
  assert.deepEqual([world.canLose(first), world.canLose(second)], [true, false]);
  await world.run(5_000, () => world.members.isRemoved(first.id));
  assert.deepEqual([world.canLose(first), world.canLose(second)], [true, false], "two voters are left");
});

test("a request that was never begun, or whose node died before it came to it, spares nobody", async () => {
  const world = await worldOf({ nodes: 3 });
  const leader = world.leader();
  const [first, second] = world.members.nodes.filter((node) => node !== leader);
  assert.ok(first !== undefined && second !== undefined && leader !== null);
  world.processes.pause(leader.id, 2_000);
  void world.administrator.ask({ remove: [first.id] }, { at: leader, patienceMs: 100 });
  assert.equal(world.canLose(second), false, "it may come to it yet");
  await world.run(200);
  assert.equal(world.canLose(second), true, "nobody waits for it any more");
  void world.administrator.ask({ remove: [first.id] }, { at: leader, patienceMs: 10_000 });
  world.crash(leader, "process");
  assert.equal(world.canLose(second), true);
});

test("sessions last as long as they do, whether or not a leader serves", async () => {
  const world = await worldOf({ nodes: 3, ttlMs: 10_000 });
  const core = new Core(world, world.nodes.slice(0, 3), []);
  await world.run(120_000, () => longestTtl(world, core) > 10_000);
  assert.equal(longestTtl(world, core), 20_000);
  const leader = world.leader();
  assert.ok(leader !== null);
  await world.run(1_000);
  world.crash(leader, "process");
  assert.equal(longestTtl(world, core), 20_000);
});

test("a learner gets a long log in the calm before it is promoted", async () => {
  const { limits, world: surroundings } = drawPlan(2708);
  // An entry an append, eight appends a round trip of a tenth of an election timeout.
  const plan: Partial<Plan> = {
    nodes: 1,
    timing: { electionTimeoutMs: 2_000, heartbeatMs: 400, diskStallMs: 8_000 },
    ttlMs: 60_000,
  };
  assert.deepEqual([limits.appendsInFlightMax, limits.appendEntriesMax, surroundings.latencyMsMax], [8, 1, 100]);
  const world = await worldOf(plan);
  await world.run(300_000, () => world.watch.commitPoint > 900);
  world.clients.drainAll();
  await world.run(100_000, () => world.clients.areIdle);
  assert.ok(world.watch.commitPoint > 900, `${world.watch.commitPoint} entries`);
  await changeInCalm(world, new Core(world, world.nodes.slice(0, 1), []));
  assert.equal(world.counts.of("changed in the calm"), 1);
});

test("a learner that gets a snapshot piece by piece advances, and one that stands still doesn't", () => {
  const at = (behindEntries: number, index?: number, chunk = 0): Parameters<typeof hasAdvanced>[0] => ({
    behindEntries,
    snapshot: index === undefined ? null : { index: index as never, chunk },
  });
  assert.equal(hasAdvanced(at(1_000), at(950)), true);
  assert.equal(hasAdvanced(at(1_000), at(960)), false);
  assert.equal(hasAdvanced(at(1_047, 420, 40), at(1_050, 420, 88)), true);
  assert.equal(hasAdvanced(at(1_047, 420, 40), at(1_050, 420, 45)), false);
  assert.equal(hasAdvanced(at(1_047), at(1_050, 420, 3)), true, "it has begun");
  assert.equal(hasAdvanced(at(1_047, 420, 88), at(1_050, 460, 1)), true, "a newer one has taken its place");
  assert.equal(hasAdvanced(at(1_047, 420, 88), at(1_050)), false);
  assert.equal(hasAdvanced(undefined, at(1_000)), true);
  assert.equal(hasAdvanced(at(1_000), undefined), false);
});
