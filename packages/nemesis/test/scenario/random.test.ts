import assert from "node:assert/strict";
import { it } from "node:test";
import { checkRoles } from "../../src/scenario/parse.js";
import { drawScenario } from "../../src/scenario/random.js";

it("a drawn scenario follows from its seed, keeps to its nodes and ends in time", () => {
  const kinds = new Set<string>();
  for (let seed = 1; seed <= 200; seed += 1) {
    const nodes = seed % 2 === 0 ? 3 : 5;
    const scenario = drawScenario(seed, nodes);
    assert.deepEqual(drawScenario(seed, nodes), scenario);
    checkRoles(scenario);
    assert.ok(scenario.schedule.length >= 3, `seed ${seed} does something`);
    for (const [step, { at, forSeconds, action }] of scenario.schedule.entries()) {
      const next = scenario.schedule[step + 1]?.at ?? scenario.fastSeconds;
      if (action.kind === "pause")
        assert.ok(next - at > 14.9, `seed ${seed}: what a pause holds up arrives before the next fault`);
      kinds.add(action.kind);
      assert.ok(at + (forSeconds ?? 0) < scenario.fastSeconds);
      if (action.kind === "split") assert.ok(action.groups.every((group) => group.length > 0));
      if ("ways" in action) assert.ok(action.ways.every(({ from, to }) => from !== to || from === "nodes"));
    }
  }
  assert.deepEqual([...kinds].sort(), [
    "crashLoop",
    "cut",
    "flap",
    "kill",
    "pause",
    "reset",
    "roll",
    "split",
    "stop",
    "terminate",
  ]);
});
