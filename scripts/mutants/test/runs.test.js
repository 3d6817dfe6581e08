import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isDead, rowOf } from "../judge.js";
import { commonest, findingIn, medianOf } from "../runs.js";

const mutant = { name: "some-bug", breaks: "P4", seeds: 400, test: null, file: "/x/some-bug.patch", hunks: [] };

describe("a run of the simulator", () => {
  it("finds a mutant with the first failed seed, and only with that", () => {
    const output = "seed 8411 of 9000\nfailed seed 8412: P4: session 7 expired: too early\n\nreplay: ...\n";
    assert.deepEqual(findingIn(1, output, ""), {
      kind: "found",
      seed: 8412,
      rule: "P4",
      message: "session 7 expired: too early",
    });
    assert.deepEqual(findingIn(0, "failed seed 3: no: this is only told\n", ""), { kind: "survived" });
  });

  it("that ends badly by itself says nothing", () => {
    assert.deepEqual(findingIn(1, "Error: no such option\n", "exit code 1"), {
      kind: "broken",
      problem: "exit code 1",
    });
    assert.deepEqual(findingIn(2, "failed seed 3: P1: x\n", "exit code 2"), { kind: "broken", problem: "exit code 2" });
    assert.deepEqual(findingIn(null, "", "SIGKILL"), { kind: "broken", problem: "SIGKILL" });
  });
});

describe("several runs", () => {
  it("have a median, which is infinite when most found nothing", () => {
    assert.equal(medianOf([30, 7, 100]), 30);
    assert.equal(medianOf([30, 7]), 7);
    assert.equal(medianOf([Number.POSITIVE_INFINITY, 7, 9]), 9);
    assert.equal(medianOf([Number.POSITIVE_INFINITY, 7, Number.POSITIVE_INFINITY]), Number.POSITIVE_INFINITY);
  });

  it("have a commonest rule, the first of those found equally often", () => {
    assert.equal(commonest(["P1", "P4", "P4"]), "P4");
    assert.equal(commonest(["P1", "P4"]), "P1");
    assert.equal(commonest([]), "");
  });

  it("kill a mutant only when each has found it", () => {
    const verdict = { mutant, found: 3, runs: 3, median: 12, rule: "P4", problem: null };
    assert.equal(isDead(verdict), true);
    assert.equal(rowOf(verdict, 10), "some-bug    3 of 3        12  P4");
    const alive = { ...verdict, found: 1, median: Number.POSITIVE_INFINITY };
    assert.equal(isDead(alive), false);
    assert.equal(rowOf(alive, 10), "some-bug    1 of 3     > 400  P4  (breaks P4)");
    assert.equal(isDead({ ...verdict, problem: "does not compile" }), false);
  });
});
