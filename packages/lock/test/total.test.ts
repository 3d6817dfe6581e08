/** No well-typed command makes apply throw, and none makes a state that a snapshot can't carry. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { LockMachine } from "../src/index.js";
import type { Command } from "../src/index.js";
import { restored } from "./restored.js";
import { runs } from "./runs.js";

const odd = [
  0,
  -0,
  -1,
  1.5,
  NaN,
  Infinity,
  -Infinity,
  2 ** 31,
  2 ** 32,
  2 ** 53,
  Number.MAX_SAFE_INTEGER,
  Number.MIN_SAFE_INTEGER,
];
const number = fc.oneof(
  { arbitrary: fc.integer({ min: 1, max: 6 }), weight: 6 },
  { arbitrary: fc.constantFrom(...odd), weight: 1 },
  { arbitrary: fc.double(), weight: 1 },
);
const text = fc.oneof(
  { arbitrary: fc.constantFrom("a", "b", "", "__proto__", "constructor", "\ud800"), weight: 4 },
  { arbitrary: fc.string({ unit: "binary", maxLength: 5 }), weight: 1 },
);
const ids = fc.array(number, { maxLength: 5 });
const request = { session: number, request: number, settled: number, seen: fc.array(number, { maxLength: 4 }) };

const commandArbitrary: fc.Arbitrary<Command> = fc.oneof(
  fc.record({ kind: fc.constant("openSession" as const), key: text, ttlMs: number, info: text }),
  fc.record({ kind: fc.constant("closeSession" as const), ...request }),
  fc.record({
    kind: fc.constant("acquire" as const),
    ...request,
    names: fc.array(text, { maxLength: 4 }),
    mode: fc.constantFrom("exclusive" as const, "shared" as const, "slot" as const),
    slots: number,
    wait: fc.boolean(),
    lockDelayMs: number,
    maxHoldMs: number,
    info: text,
  }),
  fc.record({ kind: fc.constant("release" as const), ...request, of: number, afterMs: number }),
  fc.record({ kind: fc.constant("cancel" as const), ...request, of: number }),
  fc.record({ kind: fc.constant("setInfo" as const), ...request, of: number, info: text }),
  fc.record({ kind: fc.constant("expireSessions" as const), ids }),
  fc.record({ kind: fc.constant("suspectSessions" as const), ids, eighths: number }),
  fc.record({ kind: fc.constant("renewSuspects" as const), ids }),
  fc.record({
    kind: fc.constant("forceRelease" as const),
    name: text,
    token: number,
    principal: text,
    lockDelayMs: number,
  }),
  fc.record({ kind: fc.constant("endLockDelay" as const), name: text, index: number }),
  fc.record({ kind: fc.constant("endHold" as const), session: number, of: number, token: number }),
  fc.record({ kind: fc.constant("setClusterVersion" as const), version: number }),
  fc.record({
    kind: fc.constant("setSigningKey" as const),
    id: text,
    publicKey: text,
    seed: text,
    replaces: fc.option(text),
    principal: text,
  }),
);

test("arbitrary commands never throw, keep the invariants, and survive a snapshot", () => {
  fc.assert(
    fc.property(fc.array(commandArbitrary, { maxLength: 60, size: "max" }), (commands) => {
      const machine = new LockMachine();
      // Sessions 1 and 2 are there, so that most commands find one.
      machine.apply(1, { kind: "openSession", key: "k1", ttlMs: 1, info: "" });
      machine.apply(2, { kind: "openSession", key: "k2", ttlMs: 1, info: "" });
      for (const [at, command] of commands.entries()) {
        machine.apply(at + 3, command);
        machine.checkInvariants();
      }
      const copy = restored(machine);
      copy.checkInvariants();
      assert.equal(copy.stateHash(), machine.stateHash());
    }),
    { numRuns: runs(300) },
  );
});

test("entries come in the order of the log, or the process ends", () => {
  const machine = new LockMachine();
  const open = { kind: "openSession", key: "k", ttlMs: 1, info: "" } as const;
  machine.apply(7, open);
  for (const index of [7, 6, 0, -1, NaN, 8.5, 2 ** 53]) {
    assert.throws(() => machine.apply(index, open), /order of the log/);
  }
  machine.apply(Number.MAX_SAFE_INTEGER, open);
});
