import assert from "node:assert/strict";
import { it } from "node:test";
import { guardWrites } from "../../src/history/guard-writes.js";
import type { GuardedReport } from "../../src/history/guard-writes.js";

function report(op: string, fromMs: number, at: number, token: number, result: GuardedReport["result"]): GuardedReport {
  return { kind: "guarded", client: "w1", name: "lock:1", op, fromMs, at, token, result };
}

it("guarded operations stand in the order of the store's list, and one without an answer is settled by it", () => {
  const reports = [
    report("a", 10, 50, 3, "accepted"),
    report("b", 5, 20, 7, "unknown"),
    report("c", 30, 40, 2, "refused"),
    report("d", 30, 40, 9, "unknown"),
  ];
  const events = guardWrites(
    reports,
    new Map([
      ["a", 1],
      ["b", 2],
    ]),
  );
  const told = events.map((event) => (event.kind === "guardWrite" ? [event.at, event.token, event.accepted] : []));
  assert.deepEqual(told, [
    [10, 3, true],
    // Sent before the other, and taken after it.
    [10, 7, true],
    [40, 2, false],
  ]);
});
