/** A snapshot shows the state as of its beginning, whatever is applied while it is taken; what is loaded goes on as the original does. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { LockMachine, SnapshotLoader } from "../src/index.js";
import type { Command, SnapshotCursor } from "../src/index.js";
import { acquire, cancel, open, release } from "./commands.js";
import { entriesOf } from "./entries.js";
import type { Entry } from "./entries.js";
import { stepArbitrary } from "./player.js";
import { restored, throughJson } from "./restored.js";
import { runs } from "./runs.js";

test("equal hash after snapshot and restore at any index, with entries applied between the pieces, and ever after", () => {
  const plan = fc.record({ begin: fc.nat(60), budget: fc.integer({ min: 1, max: 6 }), pause: fc.nat(3) });
  fc.assert(
    fc.property(
      fc.array(stepArbitrary, { minLength: 10, maxLength: 60, size: "max" }),
      plan,
      (steps, { begin, budget, pause }) => {
        const entries = entriesOf(steps);
        const start = begin % entries.length;
        const machine = new LockMachine();
        for (const { index, command } of entries.slice(0, start)) machine.apply(index, command);
        const expected = machine.stateHash();
        const walk = new Walk(machine.beginSnapshot(), budget);
        let position = start;
        while (!walk.isDone) {
          for (let count = 0; count < pause && position < entries.length; count += 1, position += 1) {
            const { index, command } = entries[position] as Entry;
            machine.apply(index, command);
          }
          walk.step();
        }
        const copy = walk.loader.finish();
        copy.checkInvariants();
        assert.equal(copy.stateHash(), expected);
        const straight = new LockMachine();
        for (const { index, command } of entries) straight.apply(index, command);
        for (const { index, command } of entries.slice(start)) copy.apply(index, command);
        for (const { index, command } of entries.slice(position)) machine.apply(index, command);
        assert.equal(copy.stateHash(), straight.stateHash(), "the copy went on like one that replayed all");
        assert.equal(machine.stateHash(), straight.stateHash(), "being walked changes nothing");
      },
    ),
    { numRuns: runs(150) },
  );
});

test("effects after a restore are those of the original, entry by entry", () => {
  fc.assert(
    fc.property(fc.array(stepArbitrary, { maxLength: 50, size: "max" }), fc.nat(50), (steps, begin) => {
      const entries = entriesOf(steps);
      const machine = new LockMachine();
      const start = Math.min(begin, entries.length);
      for (const { index, command } of entries.slice(0, start)) machine.apply(index, command);
      const copy = restored(machine);
      for (const { index, command } of entries.slice(start)) {
        assert.deepEqual(copy.apply(index, command), machine.apply(index, command));
        assert.equal(copy.stateHash(), machine.stateHash());
      }
    }),
    { numRuns: runs(60) },
  );
});

test("whatever an entry changes while a snapshot is taken, the snapshot shows what was before", () => {
  const setUp: Command[] = [
    open("k1"),
    open("idle"),
    open("k3"),
    acquire(1, 1, ["a", "b"], { lockDelayMs: 5, maxHoldMs: 50 }),
    acquire(3, 1, ["b"]),
    acquire(1, 2, ["s"], { mode: "shared", lockDelayMs: 5 }),
    acquire(3, 2, ["s"], { mode: "shared", lockDelayMs: 5 }),
    acquire(1, 3, ["s"], { mode: "shared" }),
    release(1, 4, 2, { afterMs: 8 }),
    release(3, 3, 2, { afterMs: 8 }),
    acquire(1, 5, ["g"], { mode: "slot", slots: 3, lockDelayMs: 6 }),
    { kind: "suspectSessions", ids: [1, 2], eighths: 4 },
  ];
  const request = { session: 1, request: 6, settled: 1, seen: [] };
  const changes: Command[] = [
    { kind: "expireSessions", ids: [2] },
    { kind: "expireSessions", ids: [1] },
    { kind: "closeSession", ...request },
    { kind: "closeSession", session: 2, request: 1, settled: 1, seen: [] },
    { kind: "setInfo", ...request, of: 1, info: "x" },
    { kind: "setInfo", session: 3, request: 4, settled: 1, seen: [], of: 1, info: "x" },
    { kind: "renewSuspects", ids: [2] },
    { kind: "suspectSessions", ids: [3], eighths: 1 },
    { kind: "endLockDelay", name: "s", index: 9 },
    { kind: "endLockDelay", name: "s", index: 10 },
    { kind: "endHold", session: 1, of: 1, token: 4 },
    { kind: "forceRelease", name: "s", token: 6, principal: "", lockDelayMs: 1 },
    release(1, 6, 1),
    release(1, 6, 99, { seen: [2, 4] }),
    release(3, 9, 99, { settled: 1, seen: [3, 4] }),
    release(3, 4, 1),
    cancel(3, 4, 1),
    cancel(1, 6, 8),
    acquire(1, 6, ["a"]),
    acquire(1, 6, ["s"], { mode: "shared" }),
    open("k4"),
  ];
  for (const change of changes) {
    const machine = new LockMachine();
    for (const [at, command] of setUp.entries()) machine.apply(at + 1, command);
    const expected = machine.stateHash();
    const walk = new Walk(machine.beginSnapshot(), 2);
    machine.apply(setUp.length + 1, change);
    const after = machine.stateHash();
    while (!walk.isDone) walk.step();
    const copy = walk.loader.finish();
    copy.checkInvariants();
    assert.equal(copy.stateHash(), expected, JSON.stringify(change));
    copy.apply(setUp.length + 1, change);
    assert.equal(copy.stateHash(), after, JSON.stringify(change));
    assert.notEqual(after, expected, `${JSON.stringify(change)} changes something`);
  }
});

test("the hash tells states apart", () => {
  const commands: Command[] = [
    open("k1"),
    open("k2"),
    acquire(1, 1, ["a"]),
    acquire(2, 1, ["a"]),
    acquire(2, 2, ["a"], { mode: "shared" }),
    acquire(1, 2, ["g"], { mode: "slot", slots: 2 }),
    release(1, 3, 1, { afterMs: 5 }),
    { kind: "suspectSessions", ids: [2], eighths: 1 },
    { kind: "suspectSessions", ids: [2], eighths: 1 },
    { kind: "endLockDelay", name: "a", index: 7 },
    { kind: "setInfo", session: 2, request: 3, settled: 1, seen: [], of: 1, info: "x" },
    acquire(1, 4, ["b"], { seen: [3] }),
    acquire(1, 5, ["b"], { settled: 2 }),
    { kind: "closeSession", session: 2, request: 4, settled: 1, seen: [] },
  ];
  const machine = new LockMachine();
  const hashes = [machine.stateHash()];
  for (const [at, command] of commands.entries()) {
    machine.apply(at + 1, command);
    hashes.push(machine.stateHash());
  }
  assert.equal(new Set(hashes).size, hashes.length);
});

test("one snapshot at a time; the next one after its end or its close", () => {
  const machine = new LockMachine();
  machine.apply(1, open("k"));
  const first = machine.beginSnapshot();
  assert.throws(() => machine.beginSnapshot(), /one snapshot/);
  first.close();
  first.close();
  assert.throws(() => first.next(10), /given up/);
  const second = machine.beginSnapshot();
  machine.apply(2, acquire(1, 1, ["a"]));
  while (second.next(1) !== null) assert.ok(!second.isClosed);
  assert.ok(second.isClosed);
  assert.equal(second.next(1), null);
  assert.equal(restored(machine).stateHash(), machine.stateHash());
});

test("pieces keep to the budget and to their bytes; one record alone may be longer", () => {
  const machine = new LockMachine();
  machine.apply(1, open("k"));
  for (let at = 0; at < 1_000; at += 1) machine.apply(at + 2, acquire(1, at + 1, [`${at}:${"x".repeat(500)}`]));
  const cursor = machine.beginSnapshot();
  const loader = new SnapshotLoader();
  const sizes: number[] = [];
  for (let piece = cursor.next(5_000); piece !== null; piece = cursor.next(5_000)) {
    assert.ok(JSON.stringify(piece).length < 192_000);
    sizes.push(piece.length);
    loader.push(piece);
  }
  assert.ok(sizes.length > 5 && sizes.every((size) => size < 5_000));
  assert.equal(loader.finish().stateHash(), machine.stateHash());

  const many = new LockMachine();
  many.apply(1, open("k"));
  many.apply(
    2,
    acquire(
      1,
      1,
      Array.from({ length: 1_000 }, (_, at) => `${at}:${"x".repeat(500)}`),
    ),
  );
  const small = many.beginSnapshot();
  const lengths = [];
  for (let piece = small.next(100); piece !== null; piece = small.next(100)) lengths.push(piece.length);
  assert.deepEqual(lengths, [2, 1, 1]);
});

class Walk {
  readonly loader: SnapshotLoader = new SnapshotLoader({ min: 1, max: 3 });
  isDone = false;
  private readonly cursor: SnapshotCursor;
  private readonly budget: number;

  constructor(cursor: SnapshotCursor, budget: number) {
    this.cursor = cursor;
    this.budget = budget;
  }

  step(): void {
    const piece = this.cursor.next(this.budget);
    if (piece === null) this.isDone = true;
    else this.loader.push(throughJson(piece));
    assert.ok(piece === null || piece.length <= this.budget);
  }
}
