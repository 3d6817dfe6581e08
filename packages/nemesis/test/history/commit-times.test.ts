import assert from "node:assert/strict";
import { it } from "node:test";
import type { HistoryEvent, LogCommand } from "@holdfast/checker";
import type { Replayed } from "../../src/history/committed-log.js";
import { commitTimes } from "../../src/history/commit-times.js";

function entry(index: number, command: LogCommand | null, effects: Replayed["effects"] = null): Replayed {
  const said = command === null ? ({ kind: "noop" } as const) : ({ kind: "command", command } as const);
  return {
    event: { kind: "committed", index, term: 1, hash: String(index), decidedInTerm: null, entry: said },
    effects,
    stateHash: null,
  };
}

const numbered = { session: 2, settled: 1, seen: [] };
const released = { kind: "released" } as const;
const log = [
  entry(1, null),
  entry(2, { kind: "openSession", key: "k", ttlMs: 2_000 }),
  entry(3, { kind: "release", ...numbered, request: 5, of: 4, afterMs: 0 }, [
    { kind: "outcome", session: 2, request: 5, outcome: released },
  ]),
  entry(4, { kind: "expireSessions", ids: [2] }, [{ kind: "sessionEnded", session: 2, reason: "expired" }]),
  entry(5, null),
];

it("an entry is committed right before the first thing that rests on it, and none after a later one", () => {
  const at = (
    events: readonly HistoryEvent[],
    seen: readonly { at: number; index: number }[] = [],
  ): readonly number[] => commitTimes(log, seen, events, 99);
  assert.deepEqual(at([]), [99, 99, 99, 99, 99]);
  assert.deepEqual(
    at([{ at: 10, kind: "sessionOpened", client: "w1", session: 2, key: "k", ttlMs: 2_000 }]),
    [10, 10, 99, 99, 99],
  );
  const told = (request: number): HistoryEvent => ({
    at: 20,
    kind: "told",
    client: "w1",
    session: 2,
    request,
    outcome: released,
  });
  assert.deepEqual(at([told(5)]), [20, 20, 20, 99, 99]);
  // Who resumes hears of its acquire that it was released.
  assert.deepEqual(at([told(4)]), [20, 20, 20, 99, 99]);
  const ended = { kind: "sessionEnded", client: "w1", session: 2, reason: "expired" } as const;
  assert.deepEqual(at([{ at: 30, ...ended, by: "cluster" }]), [30, 30, 30, 30, 99]);
  assert.deepEqual(at([{ at: 30, ...ended, by: "client" }]), [99, 99, 99, 99, 99]);
  assert.deepEqual(
    at(
      [],
      [
        { at: 5, index: 1 },
        { at: 40, index: 4 },
      ],
    ),
    [5, 40, 40, 40, 99],
  );
});
