/** Histories of a correct service are accepted, whatever happens to it; told with one lie, they are rejected for it. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { check, encodeHistory, parseHistory } from "../src/index.js";
import type { Rule } from "../src/index.js";
import { corruptions } from "./corruptions.js";
import { stepArbitrary, storyOf } from "./service/steps.js";
import { assertAccepted } from "./verdicts.js";

/** HOLDFAST_RUNS multiplies them, for a long night. */
function runs(count: number): number {
  return Math.ceil(count * Number(process.env["HOLDFAST_RUNS"] ?? "1"));
}

const steps = fc.array(stepArbitrary, { maxLength: 90, size: "max" });
/** Of three nodes and four clients; no two differ by 1 %. */
const rates = fc.array(fc.double({ min: 0.9951, max: 1.0049, noNaN: true }), { maxLength: 7 });

test("what a correct service does is accepted", () => {
  const judged = new Map<string, number>();
  fc.assert(
    fc.property(steps, rates, (story, clocks) => {
      const { counts } = assertAccepted(storyOf(story, clocks));
      for (const [rule, count] of Object.entries(counts.judged)) judged.set(rule, (judged.get(rule) ?? 0) + count);
    }),
    { numRuns: runs(120) },
  );
  for (const [rule, count] of judged) assert.ok(count > 0, `${rule} has judged nothing`);
});

test("a lie about it is rejected for what it breaks, or can't be told from the truth", () => {
  const told = new Map<string, number>();
  const property = fc.property(steps, fc.nat(10_000), (story, pick) => {
    const history = storyOf(story);
    for (const { name, rules, tell } of corruptions) {
      const lie = tell(history, pick);
      if (lie === null) continue;
      told.set(name, (told.get(name) ?? 0) + 1);
      const { ok, violations } = check(lie.history);
      if (lie.harmless !== undefined) {
        assert.ok(ok, `${name}: rejected for ${violations[0]?.rule}, but ${lie.harmless}`);
        continue;
      }
      const found: readonly Rule[] = violations.map(({ rule }) => rule);
      assert.ok(
        found.some((rule) => rules.includes(rule)),
        `${name}: ${ok ? "accepted" : violations[0]?.message}`,
      );
    }
  });
  fc.assert(property, { numRuns: runs(25) });
  for (const { name } of corruptions) assert.ok(told.has(name), `never told: ${name}`);
});

test("a history is the same after a way through a file", () => {
  fc.assert(
    fc.property(steps, (story) => {
      const history = storyOf(story);
      assert.deepEqual(parseHistory(encodeHistory(history)), history);
    }),
    { numRuns: runs(10) },
  );
});
