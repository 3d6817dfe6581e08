/** How a node ends when it is asked to, in circumstances that real processes show only after a long wait. */
import assert from "node:assert/strict";
import test from "node:test";
import { drawPlan } from "../src/run/plan.js";
import { World } from "../src/run/world.js";

test("a process that is stopped while it stops is not late: its disk has nothing to do with it", async () => {
  const plan = drawPlan(1);
  const timing = { electionTimeoutMs: 500, heartbeatMs: 100, diskStallMs: 1_000 };
  const world = new World({ ...plan, nodes: 3, faults: [], rawClients: 0, timing, ttlMs: 10_000 }, { isShown: false });
  world.start();
  await world.run(20_000, () => world.leader() !== null);
  await world.run(5_000);
  const leader = world.leader();
  assert.ok(leader !== null);
  leader.stopInOrder();
  world.processes.pause(leader.id, 30_000);
  await world.run(60_000, () => !leader.isRunning);
  assert.equal(leader.isRunning, false);
  assert.equal(world.counts.of("node ended: ok"), 1);
});
