/** A restored cluster begins with nothing but its settings, grants nothing until it is opened, and says why the old sessions are gone. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LockMachine, SnapshotError, SnapshotLoader } from "../src/index.js";
import type { Command, Effect, SnapshotPiece } from "../src/index.js";
import { acquire, cancel, open, release } from "./commands.js";
import { restored } from "./restored.js";

const restoredAt = 1_000;

/** Sessions 1 and 2 live; 1 holds "a" and a place of "g"; 2 waits for "a"; "d" is delayed; session 3 was closed. */
function backedUp(): LockMachine {
  const machine = new LockMachine();
  const commands: Command[] = [
    { ...open("k1"), ttlMs: 7_000 },
    { ...open("k2"), ttlMs: 30_000 },
    { ...open("k3"), ttlMs: 60_000 },
    acquire(1, 1, ["a"], { maxHoldMs: 5_000 }),
    acquire(1, 2, ["g"], { mode: "slot", slots: 2 }),
    acquire(2, 1, ["a"]),
    acquire(1, 3, ["d"]),
    release(1, 4, 3, { afterMs: 9_000 }),
    { kind: "closeSession", session: 3, request: 1, settled: 1, seen: [] },
  ];
  for (const [at, command] of commands.entries()) machine.apply(at + 1, command);
  return machine;
}

function restoredMachine(): LockMachine {
  const machine = backedUp();
  machine.restore(restoredAt);
  return machine;
}

function openIt(machine: LockMachine, index: number): Effect[] {
  return machine.apply(index, { kind: "endLockDelay", name: "", index: restoredAt });
}

function granted(effects: readonly Effect[]): unknown[] {
  return effects.flatMap((effect) =>
    effect.kind === "outcome" && effect.outcome.kind === "granted"
      ? effect.outcome.grants.map(({ name, token }) => [effect.session, name, token])
      : [],
  );
}

describe("a restored machine", () => {
  it("has no session, hold, waiter or delay of before, and no timer but its own", () => {
    const machine = restoredMachine();
    machine.checkInvariants();
    assert.deepEqual([machine.sessionCount, machine.lockCount, machine.holdCount, machine.waiterCount], [0, 0, 0, 0]);
    assert.deepEqual([...machine.sessions(), ...machine.timedHolds()], []);
    assert.deepEqual([...machine.delays()], [{ name: "", index: restoredAt, delayMs: 30_000 }]);
    for (const name of ["a", "d", "g"]) assert.equal(machine.lockView(name, 9), null);
  });

  it("tells an old session that it ended by the restore, also one that was opened after the backup", () => {
    const machine = restoredMachine();
    assert.equal(machine.endReason(1), "restored");
    assert.equal(machine.endReason(900), "restored");
    assert.equal(machine.endReason(3), "closed", "what was known of it before");
    const [effect] = machine.apply(restoredAt + 1, acquire(2, 5, ["x"]));
    assert.deepEqual(effect, {
      kind: "rejected",
      session: 2,
      request: 5,
      rejection: { kind: "sessionGone", reason: "restored" },
    });
    assert.equal(machine.endReason(restoredAt + 1), null, "an index above it may yet be a session's");
  });

  it("opens a session again for a key of before", () => {
    const [effect] = restoredMachine().apply(restoredAt + 1, open("k1"));
    assert.equal(effect?.kind === "sessionOpened" && effect.isNew && effect.session, restoredAt + 1);
  });

  it("grants nothing until it is opened, then everything in order, with tokens above all of before", () => {
    const machine = restoredMachine();
    const at = (offset: number): number => restoredAt + offset;
    machine.apply(at(1), open("k5"));
    machine.apply(at(2), open("k6"));
    const waits = [
      machine.apply(at(3), acquire(at(1), 1, ["a", "b"])),
      machine.apply(at(4), acquire(at(2), 1, ["b"])),
      machine.apply(at(5), acquire(at(2), 2, ["c"])),
      machine.apply(at(6), acquire(at(1), 2, ["c"])),
    ];
    for (const effects of waits) assert.deepEqual(granted(effects), []);
    assert.deepEqual(granted(machine.apply(at(7), cancel(at(2), 3, 2))), [], "nor does a cancel grant");
    const [refused] = machine.apply(at(8), acquire(at(2), 4, ["z"], { wait: false }));
    assert.deepEqual(refused?.kind === "outcome" && refused.outcome, {
      kind: "lockDelayed",
      name: "z",
      delayMs: 30_000,
    });
    assert.deepEqual(machine.lockView("a", 9)?.delays, [{ index: restoredAt, delayMs: 30_000, slot: null }]);
    machine.checkInvariants();
    const effects = openIt(machine, at(9));
    assert.deepEqual(effects[0], { kind: "lockDelayEnded", name: "", index: restoredAt });
    assert.deepEqual(granted(effects), [
      [at(1), "a", at(9)],
      [at(1), "b", at(9)],
      [at(1), "c", at(9)],
    ]);
    machine.checkInvariants();
    assert.deepEqual([...machine.delays()], []);
    assert.deepEqual(granted(machine.apply(at(10), acquire(at(2), 5, ["z"]))), [[at(2), "z", at(10)]]);
    assert.deepEqual(openIt(machine, at(11)), [], "once");
  });

  it("is not opened by the end of another delay", () => {
    const machine = restoredMachine();
    assert.deepEqual(machine.apply(restoredAt + 1, { kind: "endLockDelay", name: "", index: 999 }), []);
    assert.equal(machine.closedMs, 30_000);
  });

  it("is open at once when no session was alive in the backup", () => {
    const machine = new LockMachine();
    machine.restore(restoredAt);
    machine.apply(restoredAt + 1, open("k1"));
    const effects = machine.apply(restoredAt + 2, acquire(restoredAt + 1, 1, ["a"]));
    assert.deepEqual(granted(effects), [[restoredAt + 1, "a", restoredAt + 2]]);
  });

  it("stays closed for what was left to wait when its own backup is restored before it was opened", () => {
    const machine = restoredMachine();
    machine.apply(restoredAt + 1, open("k5"));
    machine.restore(2_000);
    assert.deepEqual([...machine.delays()], [{ name: "", index: 2_000, delayMs: 30_000 }]);
    assert.equal(machine.endReason(restoredAt + 1), "restored");
  });

  it("closes for the longest TTL of those that live: the one that has ended doesn't count", () => {
    const machine = new LockMachine();
    assert.equal(machine.closingMs, 0);
    machine.apply(1, { ...open("k1"), ttlMs: 5 });
    machine.apply(2, { ...open("k2"), ttlMs: 9 });
    machine.apply(3, { ...open("k3"), ttlMs: 9 });
    machine.apply(4, { kind: "closeSession", session: 2, request: 1, settled: 1, seen: [] });
    machine.checkInvariants();
    assert.deepEqual([machine.closingMs, restored(machine).closingMs], [9, 9]);
    machine.apply(5, { kind: "closeSession", session: 3, request: 1, settled: 1, seen: [] });
    assert.deepEqual([machine.closingMs, restored(machine).closingMs], [5, 5]);
    machine.restore(restoredAt);
    machine.checkInvariants();
    assert.deepEqual([machine.closingMs, machine.closedMs], [5, 5]);
  });

  it("closes for as long as a hold could last after its holder's death: the longest TTL, then the longest lock-delay asked for", () => {
    const machine = new LockMachine();
    machine.apply(1, { ...open("k1"), ttlMs: 9 });
    machine.apply(2, { ...open("k2"), ttlMs: 5 });
    machine.apply(3, acquire(2, 1, ["a"], { lockDelayMs: 70 }));
    machine.apply(4, acquire(2, 2, ["b"], { lockDelayMs: 30 }));
    machine.apply(5, acquire(1, 1, ["a"], { lockDelayMs: 500 }));
    machine.checkInvariants();
    assert.deepEqual([machine.closingMs, restored(machine).closingMs], [79, 79], "who only waits has nothing to lose");
    machine.apply(6, cancel(1, 2, 1));
    machine.apply(7, release(2, 3, 1));
    machine.checkInvariants();
    assert.deepEqual([machine.closingMs, restored(machine).closingMs], [39, 39]);
    machine.restore(restoredAt);
    machine.checkInvariants();
    assert.deepEqual([machine.closingMs, machine.closedMs], [39, 39]);
  });

  it("closes for as long as the longest lock-delay that runs, in full", () => {
    const machine = new LockMachine();
    machine.apply(1, { ...open("k1"), ttlMs: 9 });
    machine.apply(2, acquire(1, 1, ["a"], { mode: "slot", slots: 3, lockDelayMs: 20 }));
    machine.apply(3, acquire(1, 2, ["a"], { mode: "slot", slots: 3, lockDelayMs: 60 }));
    machine.apply(4, acquire(1, 3, ["a"], { mode: "slot", slots: 3, lockDelayMs: 40 }));
    machine.apply(5, acquire(1, 4, ["b"]));
    machine.apply(6, release(1, 5, 4, { afterMs: 65 }));
    assert.equal(machine.closingMs, 69);
    machine.apply(7, { kind: "suspectSessions", ids: [1], eighths: 8 });
    machine.apply(8, { kind: "expireSessions", ids: [1] });
    machine.checkInvariants();
    assert.deepEqual([machine.closingMs, restored(machine).closingMs], [65, 65]);
    machine.apply(9, { kind: "endLockDelay", name: "b", index: 6 });
    machine.checkInvariants();
    assert.deepEqual([machine.closingMs, restored(machine).closingMs], [60, 60], "the longest of one entry's");
    machine.apply(10, { kind: "endLockDelay", name: "a", index: 8 });
    machine.checkInvariants();
    assert.deepEqual([machine.closingMs, restored(machine).closingMs], [0, 0]);
  });

  it("closes for a number that a snapshot can bear, whatever was asked for", () => {
    const machine = new LockMachine();
    machine.apply(1, { ...open("k1"), ttlMs: Number.MAX_SAFE_INTEGER });
    machine.apply(2, acquire(1, 1, ["a"], { lockDelayMs: Number.MAX_SAFE_INTEGER }));
    machine.restore(restoredAt);
    assert.equal(restored(machine).closedMs, Number.MAX_SAFE_INTEGER);
  });

  it("continues only above the backup", () => {
    assert.throws(() => backedUp().restore(9), /above its backup/);
  });

  it("goes through a snapshot, closed and opened", () => {
    const machine = restoredMachine();
    machine.apply(restoredAt + 1, open("k5"));
    machine.apply(restoredAt + 2, acquire(restoredAt + 1, 1, ["a"]));
    const closed = restored(machine);
    assert.equal(closed.stateHash(), machine.stateHash());
    assert.deepEqual([...closed.delays()], [...machine.delays()]);
    assert.deepEqual(openIt(closed, restoredAt + 3), openIt(machine, restoredAt + 3));
    const opened = restored(machine);
    opened.checkInvariants();
    assert.equal(opened.stateHash(), machine.stateHash());
    assert.equal(opened.endReason(1), "restored");
    assert.notEqual(opened.stateHash(), restoredMachine().stateHash());
  });

  it("shows in a snapshot as it was when that began", () => {
    const machine = restoredMachine();
    const cursor = machine.beginSnapshot();
    openIt(machine, restoredAt + 1);
    const loader = new SnapshotLoader();
    for (let piece = cursor.next(1); piece !== null; piece = cursor.next(1)) loader.push(piece);
    assert.equal(loader.finish().closedMs, 30_000);
  });
});

describe("a snapshot that contradicts its restore", () => {
  const header = [0, 1, 2_000, []];
  const end = [5, 0, 0, 0];
  const session = (id: number): unknown[] => [1, id, "k", 1, "", 0, 1, []];
  const cases: [string, RegExp, unknown[][]][] = [
    ["twice", /one restore/, [header, [6, 1_000, 5], [6, 1_000, 5], end]],
    ["of an index that isn't reached", /one restore/, [header, [6, 2_001, 5], end]],
    ["of no index", /from 1/, [header, [6, 0, 5], end]],
    ["behind a session", /one restore/, [header, session(1_500), [6, 1_000, 5], [5, 1, 0, 0]]],
    ["a session of before it", /has not ended/, [header, [6, 1_000, 0], session(1_000), [5, 1, 0, 0]]],
    [
      "a hold before it opened",
      /no hold while/,
      [
        header,
        [6, 1_000, 5],
        session(1_500),
        [2, 1_500, 1, 1_600, "exclusive", 0, 0, 0, "", true, ["a"], [1_600], [-1]],
        [5, 1, 1, 0],
      ],
    ],
  ];
  for (const [name, problem, records] of cases) {
    it(name, () => {
      const loader = new SnapshotLoader();
      assert.throws(
        () => loader.push(records as SnapshotPiece),
        (error) => error instanceof SnapshotError && problem.test(error.message),
      );
    });
  }
});
