import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ciSelection, readScenarioFile, scenarioNamed, scenarioNames } from "../../src/scenario/library.js";
import { parseScenario, ScenarioError } from "../../src/scenario/parse.js";
import { resized, stretched } from "../../src/scenario/resize.js";

const cut = { kind: "cut", ways: [{ from: "leader", to: "others", both: true }] };
const sound = {
  name: "one",
  about: "What it shows.",
  fastSeconds: 10,
  seconds: 30,
  schedule: [{ at: 1, for: 4, do: cut, backWithin: 4 }],
  expect: { electionsMin: 1 },
};

/** The paths of all problems. */
function pathsOf(change: object): readonly string[] {
  try {
    parseScenario(JSON.stringify({ ...sound, ...change }), "one.json");
  } catch (error) {
    assert.ok(error instanceof ScenarioError);
    assert.match(error.message, /^one\.json: /);
    return error.problems.map(({ path }) => path);
  }
  return [];
}

const withStep = (step: object): object => ({ schedule: [step] });
const doing = (action: object): object => withStep({ at: 1, for: 1, do: action });

describe("a scenario's file", () => {
  it("is read with what it leaves out", () => {
    const scenario = parseScenario(JSON.stringify(sound), "one.json");
    assert.equal(scenario.nodes, 3);
    assert.equal(scenario.ttlMs, 2_000);
    assert.equal(scenario.expect.grantsMin, 1);
    assert.deepEqual(scenario.schedule[0], { at: 1, forSeconds: 4, action: cut, backWithin: 4, backFrom: "begin" });
  });

  for (const [what, change, path] of [
    ["a wrong number of nodes", { nodes: 4 }, "nodes"],
    ["a lease that no election fits into", { ttlMs: 600 }, "ttlMs"],
    ["an unknown field", { scheduled: [] }, "scheduled"],
    ["an unknown field of a step", withStep({ at: 1, for: 1, do: cut, until: 3 }), "schedule[0].until"],
    ["an unknown kind", doing({ ...cut, kind: "explode" }), "schedule[0].do.kind"],
    ["a cut of nothing", doing({ kind: "cut", ways: [] }), "schedule[0].do.ways"],
    ["an end that is missing", withStep({ at: 1, do: cut }), "schedule[0].for"],
    ["an end that makes no sense", doing({ kind: "roll", signal: "SIGTERM" }), "schedule[0].for"],
    ["a step that ends after the load", withStep({ at: 8, for: 4, do: cut }), "schedule[0]"],
    ["a role that is none", doing({ kind: "kill", who: ["captain"] }), "schedule[0].do"],
    ["a node that isn't there", doing({ kind: "kill", who: ["n4"] }), "schedule[0].do"],
    ["a follower that isn't there", doing({ kind: "kill", who: ["follower3"] }), "schedule[0].do"],
    ["a shape without any", doing({ kind: "shape", ways: cut.ways, shape: {} }), "schedule[0].do.shape"],
    [
      "a clock's rate of whoever leads",
      doing({ kind: "machine", who: ["leader"], fault: { kind: "clockRate", rate: 1.1 } }),
      "schedule[0].do.who",
    ],
  ] as const) {
    it(`is refused for ${what}, by its path`, () => assert.deepEqual(pathsOf(change), [path]));
  }

  it("is told all of its problems at once", () => {
    assert.deepEqual(pathsOf({ nodes: 2, workers: 0, about: "" }), ["about", "nodes", "workers"]);
  });

  it("must demand of a pause that it did harm without a guard, and none with one", () => {
    const pause = doing({ kind: "pause", how: "stop" });
    assert.deepEqual(pathsOf(pause), ["expect"]);
    assert.deepEqual(pathsOf({ ...pause, expect: { refusedMin: 1 } }), ["expect"]);
    assert.deepEqual(pathsOf({ ...pause, expect: { refusedMin: 1, lostUnguardedMin: 1 } }), []);
  });

  it("that is no JSON is said to be none", () => {
    assert.throws(() => parseScenario("{", "one.json"), /one\.json: is no JSON/);
  });
});

describe("the scenarios that come along", () => {
  it("are sound, and bear the names of their files", () => {
    const names = scenarioNames();
    assert.ok(names.length >= 30, `${names.length}`);
    for (const name of names) assert.equal(scenarioNamed(name).name, name);
  });

  it("of the short selection fit into five minutes", () => {
    const startAndStopSeconds = 14;
    const seconds = ciSelection.map((name) => scenarioNamed(name).fastSeconds + startAndStopSeconds);
    assert.ok(seconds.reduce((sum, each) => sum + each, 0) < 300);
  });

  it("are made longer as a whole", () => {
    const long = stretched(parseScenario(JSON.stringify(sound), "one.json"));
    assert.equal(long.fastSeconds, 30);
    assert.equal(long.schedule[0]?.at, 3);
    assert.equal(long.schedule[0]?.forSeconds, 12);
  });

  it("run on another number of nodes only if there are enough", () => {
    assert.equal(resized(scenarioNamed("leader-isolated"), 5).nodes, 5);
    assert.throws(() => resized(scenarioNamed("bridge"), 3), ScenarioError);
  });
});

it("a file that can't be read is a problem with the file", () => {
  assert.throws(() => readScenarioFile("/nowhere/one.json"), /^ScenarioError: \/nowhere\/one\.json: can't be read/);
});
