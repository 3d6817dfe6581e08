/** What libraries say is left of a lease and of a maxHold, to the millisecond. */
import assert from "node:assert/strict";
import test from "node:test";
import { check } from "../src/index.js";
import type { History } from "../src/index.js";
import { elected, keepalive, open, opened, rate } from "./one-session.js";
import type { Facts } from "./one-session.js";
import { logged, timed } from "./scenes.js";
import type { Fact } from "./service/world.js";
import { assertAccepted, assertRejected } from "./verdicts.js";

test("P5: a library counts from the sending of the keepalive that was acknowledged last", () => {
  const remaining = (ms: number): Fact => ({ kind: "remaining", client: "c1", call: 1, session: 1, ms });
  const at = (sayAt: number, ms: number, ...more: Facts): History =>
    timed([
      [0, elected],
      [0, { kind: "openSent", client: "c1", key: "k" }],
      [100, open],
      [101, opened],
      ...more,
      [sayAt, remaining(ms)],
      // That words of both sides are seen at all.
      ...keepalive(3, 10_010, 10_011, 10_012),
    ]);
  // From the first openSession, whenever it was answered.
  assertAccepted(at(102, 9_899));
  assertRejected("late-deadline", at(102, 9_900));
  const two: Facts = [...keepalive(1, 2_000, 2_300, 2_400).slice(0, 3), ...keepalive(2, 3_000, 3_300, 3_400)];
  const late: Facts = [[3_100, { kind: "keepaliveTold", client: "c1", session: 1, number: 1 }]];
  // The second one was sent, and the first one acknowledged.
  assertAccepted(at(3_200, 8_801, ...two, ...late));
  assertRejected("late-deadline", at(3_200, 9_000, ...two, ...late));
  assertAccepted(at(3_500, 9_500, ...two, ...late));
  // Called held still, with nothing left.
  assertAccepted(at(10_001, 0));
  assertRejected("late-deadline", at(10_002, 0));
  // A clock that is slow sees less time pass.
  assertAccepted(at(3_200, 8_812, ...two, ...late, [0, rate("c1", 0.99)]));
});

test("P5: a maxHold is counted from no later than the acquire's sending, or a keepalive's acknowledged before the grant", () => {
  const common = { names: ["a"], mode: "exclusive", slots: 0, wait: true, maxHoldMs: 2_000 } as const;
  const numbered = { session: 1, request: 1, settled: 1, seen: [] };
  const grants = [{ name: "a", token: 2, slot: null }];
  const at = (sayAt: number, ms: number, ...more: Facts): History =>
    timed([
      [0, elected],
      [0, { kind: "openSent", client: "c1", key: "k" }],
      [100, open],
      [101, opened],
      [1_000, { kind: "call", client: "c1", call: 1, op: { kind: "acquire", ...common } }],
      [1_000, { kind: "sent", client: "c1", session: 1, request: 1, call: 1 }],
      ...more,
      [3_000, logged({ kind: "acquire", ...numbered, ...common, lockDelayMs: 0 })],
      [3_100, { kind: "return", call: 1, result: { kind: "acquired", grants, session: 1, request: 1 } }],
      [sayAt, { kind: "remaining", client: "c1", call: 1, session: 1, ms }],
      // That words of both sides are seen at all.
      ...keepalive(3, 9_000, 9_001, 9_002),
    ]);
  const problems = (history: History): string[] =>
    check(history)
      .violations.filter(({ rule }) => rule === "late-deadline")
      .map(({ message }) => message);
  assert.match(
    problems(at(3_100, 1)).join(),
    /^c1 takes the lock of call 1 for its own 101.000 ms longer than its maxHold/,
  );
  const renewed = keepalive(1, 2_500, 2_600, 2_700);
  assert.deepEqual(problems(at(3_100, 1_400, ...renewed)), []);
  assert.equal(problems(at(3_100, 1_402, ...renewed)).length, 1);
  // What is acknowledged later doesn't lengthen it.
  const later = keepalive(2, 3_150, 3_160, 3_170);
  assert.deepEqual(problems(at(3_100, 1_400, ...renewed, ...later)), []);
});
