import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkPlan, parsePlan } from "../src/run/plan-checks.js";
import type { PlanProblem } from "../src/run/plan-checks.js";
import { drawPlan } from "../src/run/plan.js";

type Fields = Record<string, unknown>;

/** A plan as a file has it, to be spoilt: three nodes, one fault. */
function plain(): Fields {
  const target = { who: "leader", index: 0 };
  const fault = { atMs: 4_000, lastsMs: 100, kind: "kill", target, other: target, size: 0.5 };
  return JSON.parse(JSON.stringify({ ...drawPlan(1), nodes: 3, faults: [fault] })) as Fields;
}

function problemsOf(value: unknown): readonly PlanProblem[] {
  const checked = checkPlan(value);
  return "problems" in checked ? checked.problems : [];
}

/** The plan with another value at a path such as "faults.0.size"; undefined takes the field away. */
function spoilt(path: string, value: unknown): Fields {
  const plan = plain();
  const names = path.split(".");
  const last = names.pop() ?? "";
  let at: Fields = plan;
  for (const name of names) at = at[name] as Fields;
  if (value === undefined) delete at[last];
  else at[last] = value;
  return plan;
}

/** "a.0.b" as people read it. */
function told(path: string): string {
  return path.replace(/\.(\d+)/g, "[$1]");
}

/** Of each value that is no object: where it is. */
function* leavesOf(value: unknown, path: string): Generator<string> {
  if (typeof value !== "object" || value === null) yield path;
  else
    for (const [name, inner] of Object.entries(value)) yield* leavesOf(inner, path === "" ? name : `${path}.${name}`);
}

describe("plans from a file", () => {
  it("may be all that are drawn", () => {
    for (let seed = 1; seed <= 3_000; seed += 1) {
      const plan = drawPlan(seed);
      assert.deepEqual(parsePlan(JSON.stringify(plan)), { plan }, `seed ${seed}`);
    }
    assert.deepEqual(problemsOf(plain()), []);
  });

  it("have every field, each of its type and in its range", () => {
    const leaves = [...leavesOf(plain(), "")];
    assert.ok(leaves.length > 40, leaves.join());
    for (const path of leaves) {
      for (const value of [undefined, null, "some", -1, 1e15 + 0.5, [], {}]) {
        const found = problemsOf(spoilt(path, value));
        assert.deepEqual(
          found.map((each) => each.path),
          [told(path)],
          `${path}: ${JSON.stringify(value)}`,
        );
      }
    }
    for (const path of ["timing", "limits", "world", "faults", "faults.0", "faults.0.target"]) {
      for (const value of [undefined, null, 7]) {
        if (path === "faults.0" && value === undefined) continue;
        assert.deepEqual(
          problemsOf(spoilt(path, value)).map((each) => each.path),
          [told(path)],
        );
      }
    }
  });

  it("have no other fields", () => {
    for (const path of ["more", "world.more", "faults.0.target.more"])
      assert.deepEqual(problemsOf(spoilt(path, 1)), [{ path: told(path), problem: "is no field of a plan" }]);
  });

  it("are told of everything that is wrong, at once", () => {
    const plan = { ...plain(), nodes: 4, ttlMs: "long", healsAll: undefined };
    assert.deepEqual(problemsOf(plan), [
      { path: "nodes", problem: "4 is not one of 1, 3, 5" },
      { path: "ttlMs", problem: '"long" is not a number' },
      { path: "healsAll", problem: "is missing" },
    ]);
    assert.deepEqual(problemsOf(spoilt("faults.0.kind", "meteor")), [
      { path: "faults[0].kind", problem: '"meteor" is no kind of fault (docs/testing.md lists them)' },
    ]);
    assert.deepEqual(problemsOf(spoilt("clients", 1.5)), [{ path: "clients", problem: "1.5 is not a whole number" }]);
    assert.deepEqual(problemsOf([]), [{ path: "", problem: "[] is not an object" }]);
  });

  it("that are no JSON are refused", () => {
    const checked = parsePlan("{ seed: 1 }");
    assert.ok("problems" in checked);
    assert.equal(checked.problems.length, 1);
    assert.match(checked.problems[0]?.problem ?? "", /^is not JSON: /);
  });
});

describe("values of a plan", () => {
  const slow = { electionTimeoutMs: 1_000, heartbeatMs: 200, diskStallMs: 2_000 };
  const fault = (plain()["faults"] as readonly Fields[])[0] ?? {};
  const limits = plain()["limits"] as Fields;
  const world = { ...(plain()["world"] as Fields), latencyMsMax: 5, syncMsMax: 5 };
  const well = { ...plain(), timing: slow, ttlMs: 3_500, unitMs: 1_000 };
  const rows: readonly { readonly change: Fields; readonly path: string; readonly problem: RegExp }[] = [
    { change: { timing: { ...slow, heartbeatMs: 334 } }, path: "timing.heartbeatMs", problem: /a third of/ },
    {
      change: { timing: { ...slow, electionTimeoutMs: 1_001, diskStallMs: 1_000 }, ttlMs: 4_000, unitMs: 1_001 },
      path: "timing.diskStallMs",
      problem: /1000 is below 1001/,
    },
    { change: { ttlMs: 3_499 }, path: "ttlMs", problem: /3499 is below 3500/ },
    { change: { unitMs: 999 }, path: "unitMs", problem: /999 is below 1000/ },
    { change: { world: { ...world, latencyMsMax: 51 } }, path: "world.latencyMsMax", problem: /51 is above 50/ },
    { change: { world: { ...world, syncMsMax: 101 } }, path: "world.syncMsMax", problem: /101 is above 100/ },
    {
      change: {
        limits: {
          ...limits,
          appendsInFlightMax: 8,
          appendBytesMax: 4_096,
          recordsPerPiece: 2,
          peerBufferedBytesMax: 36_863,
        },
      },
      path: "limits.peerBufferedBytesMax",
      problem: /36863 is below 36864/,
    },
    {
      change: { limits: { ...limits, appendsInFlightMax: 1, appendEntriesMax: 7, peerBufferedBytesMax: 33_554_432 } },
      path: "limits.appendEntriesMax",
      problem: /7 entries in flight/,
    },
    {
      change: { nodes: 1, faults: [fault, { ...fault, kind: "split" }] },
      path: "faults[1].kind",
      problem: /split takes 3 nodes/,
    },
    {
      change: { faults: [{ ...fault, kind: "suspendNode", lastsMs: 7_001 }] },
      path: "faults[0].lastsMs",
      problem: /7001 is above 7000/,
    },
    {
      change: { faults: ["oldCopy", "burst", "kill", "slowDisk"].map((kind) => ({ ...fault, kind })) },
      path: "faults[2].kind",
      problem: /kill can't be in one run with oldCopy/,
    },
  ];

  it("fit each other", () => {
    assert.deepEqual(problemsOf({ ...well, world: { ...world, latencyMsMax: 50, syncMsMax: 100 } }), []);
    for (const { change, path, problem } of rows) {
      const found = problemsOf({ ...well, world, ...change });
      assert.deepEqual(
        found.map((each) => each.path),
        [path],
        JSON.stringify(found),
      );
      assert.match(found[0]?.problem ?? "", problem);
    }
  });
});
