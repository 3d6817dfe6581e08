/** Pieces come through checksums, and are still looked at: what is no snapshot is refused by a typed error, never half loaded. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { LockMachine, SnapshotError, SnapshotLoader } from "../src/index.js";
import type { Command, SnapshotPiece } from "../src/index.js";
import { acquire, cancel, open, release } from "./commands.js";
import { runs } from "./runs.js";

type Value = number | string | boolean | null | Value[];

function fullMachine(): LockMachine {
  const machine = new LockMachine();
  const commands: Command[] = [
    open("k1"),
    open("k2"),
    open("k3"),
    acquire(1, 1, ["a", "b"], { maxHoldMs: 5, lockDelayMs: 7 }),
    acquire(2, 1, ["b", "c"]),
    acquire(3, 1, ["s"], { mode: "shared" }),
    acquire(2, 2, ["s"], { mode: "shared" }),
    acquire(1, 2, ["g"], { mode: "slot", slots: 2 }),
    acquire(1, 3, ["g"], { mode: "slot", slots: 2 }),
    acquire(1, 4, ["g"], { mode: "slot", slots: 2 }),
    acquire(1, 5, ["a"], { wait: false }),
    acquire(1, 6, ["d"]),
    release(1, 7, 6, { afterMs: 9 }),
    release(1, 8, 3, { afterMs: 9 }),
    cancel(1, 9, 1),
    cancel(1, 12, 20),
    release(1, 13, 6),
    acquire(1, 14, ["d"], { wait: false, seen: [9] }),
    acquire(1, 15, ["g"]),
    { kind: "suspectSessions", ids: [2], eighths: 3 },
    { kind: "closeSession", session: 3, request: 2, settled: 1, seen: [] },
  ];
  for (const [at, command] of commands.entries()) machine.apply(at + 1, command);
  return machine;
}

function recordsOf(machine: LockMachine): Value[][] {
  const cursor = machine.beginSnapshot();
  const records: Value[][] = [];
  for (let piece = cursor.next(10); piece !== null; piece = cursor.next(10)) {
    records.push(...(JSON.parse(JSON.stringify(piece)) as Value[][]));
  }
  return records;
}

function load(records: unknown): LockMachine {
  const loader = new SnapshotLoader();
  loader.push(records as SnapshotPiece);
  return loader.finish();
}

const machine = fullMachine();
const records = recordsOf(machine);
const kinds = { header: 0, session: 1, acquire: 2, past: 3, delay: 4, end: 5 };

test("the snapshot of a machine with some of everything", () => {
  for (const kind of Object.values(kinds))
    assert.ok(
      records.some(([first]) => first === kind),
      `kind ${kind}`,
    );
  const copy = load(records);
  copy.checkInvariants();
  assert.equal(copy.stateHash(), machine.stateHash());
});

test("a record that is missing, doubled or out of place", () => {
  for (let at = 0; at < records.length; at += 1) {
    assert.throws(() => load(records.toSpliced(at, 1)), SnapshotError, `without ${JSON.stringify(records[at])}`);
    assert.throws(
      () => load(records.toSpliced(at, 0, records[at] ?? [])),
      SnapshotError,
      `twice ${JSON.stringify(records[at])}`,
    );
  }
  const header = records[0] ?? [];
  assert.throws(() => load([...records.slice(1), header]), SnapshotError);
  assert.throws(() => load([...records, [kinds.end, 0, 0, 0]]), SnapshotError);
  assert.throws(() => load([]), SnapshotError);
  const loader = new SnapshotLoader();
  loader.push(records);
  loader.finish();
  assert.throws(() => loader.finish(), SnapshotError);
  assert.throws(() => loader.push([records[1] ?? []]), SnapshotError);
});

test("a snapshot of another format", () => {
  assert.throws(() => load([[0, 0, 1, []], ...records.slice(1)]), /format 1/);
});

test("records that contradict each other", () => {
  const [session = [], , ...others] = records.filter(([kind]) => kind === kinds.session);
  assert.ok(others.length === 0);
  const held = ["exclusive", 0, 0, 0, "", true] as const;
  const cases: [string, RegExp, Value[]][] = [
    ["an exclusive hold beside another", /that others allow/, [2, 2, 50, 30, ...held, ["a"], [30], [-1]]],
    [
      "a shared hold of another generation",
      /that others allow/,
      [2, 2, 50, 30, "shared", 0, 0, 0, "", true, ["s"], [31], [-1]],
    ],
    ["a place that is held", /free place/, [2, 2, 50, 30, "slot", 2, 0, 0, "", true, ["g"], [31], [0]]],
    ["a place that is delayed", /free place/, [2, 2, 50, 30, "slot", 2, 0, 0, "", true, ["g"], [31], [1]]],
    ["a place beyond N", /free place/, [2, 2, 50, 30, "slot", 9, 0, 0, "", true, ["h"], [31], [9]]],
    [
      "a place that nobody can have reached",
      /free place/,
      [2, 2, 50, 30, "slot", 2 ** 40, 0, 0, "", true, ["h"], [31], [2 ** 39]],
    ],
    ["a place of no semaphore", /a place for slots/, [2, 2, 50, 30, ...held, ["h"], [31], [0]]],
    ["no place of a semaphore", /a place for slots/, [2, 2, 50, 30, "slot", 9, 0, 0, "", true, ["h"], [31], [-1]]],
    ["another N", /same number of places/, [2, 2, 50, 30, "slot", 3, 0, 0, "", false, ["g"], [], []]],
    ["another kind", /same number of places/, [2, 2, 50, 30, "shared", 0, 0, 0, "", false, ["g"], [], []]],
    ["slots of no semaphore", /places for slots/, [2, 2, 50, 30, "shared", 2, 0, 0, "", false, ["x"], [], []]],
    ["names that don't rise", /names that rise/, [2, 2, 50, 30, "shared", 0, 0, 0, "", false, ["y", "x"], [], []]],
    ["no names", /names that rise/, [2, 2, 50, 30, "shared", 0, 0, 0, "", false, [], [], []]],
    ["a grant without tokens", /a token and a place/, [2, 2, 50, 30, ...held, ["x"], [], []]],
    ["a wait with tokens", /a token and a place/, [2, 2, 50, 30, "shared", 0, 0, 0, "", false, ["x"], [3], [-1]]],
    ["a session that isn't there", /session that came before/, [2, 77, 50, 30, ...held, ["x"], [30], [-1]]],
    ["a request that is settled", /no record yet/, [3, 1, 9, ["released"], null]],
    ["an outcome of what still lives", /outcome of what is over/, [3, 1, 50, ["granted", [], 0], null]],
    ["an unknown outcome", /outcome of what is over/, [3, 1, 50, ["lucky"], null]],
    ["a session twice", /a session once/, session],
    ["a session that has ended", /has not ended/, [1, 3, "k9", 1, "", 0, 1, []]],
    ["a key twice", /a session once/, [1, 9, "k1", 1, "", 0, 1, []]],
    ["a silence above 8", /at most 8/, [1, 9, "k9", 1, "", 9, 1, []]],
    ["ranges that don't rise", /ranges that rise/, [1, 9, "k9", 1, "", 0, 1, [5, 6, 7, 8]]],
    ["ranges at `settled`", /ranges that rise/, [1, 9, "k9", 1, "", 0, 5, [5, 6]]],
    ["half a range", /ranges that rise/, [1, 9, "k9", 1, "", 0, 1, [5]]],
    ["a delay twice", /a delay once/, [4, "d", 0, 13, 9, "exclusive", []]],
    ["a slot's delay without a place", /places for slots/, [4, "g", 2, 30, 9, "slot", []]],
    ["a delay of 0", /from 1/, [4, "x", 0, 30, 0, "exclusive", []]],
    ["an unknown kind", /known kind/, [9]],
    ["a field too many", /nothing more/, [4, "x", 0, 30, 5, "exclusive", [], 1]],
  ];
  const withRecord = (record: Value[]) => {
    const end = records.at(-1) ?? [];
    const counts = end.map((count, at) =>
      typeof count === "number" && at > 0 ? count + Number(at === countOf(record)) : count,
    );
    return [...records.slice(0, -1), record, counts];
  };
  load(withRecord([2, 2, 50, 30, ...held, ["x"], [30], [-1]])).checkInvariants();
  for (const [what, expected, record] of cases) {
    assert.throws(
      () => load(withRecord(record)),
      (error) => error instanceof SnapshotError && expected.test(error.message),
      what,
    );
  }
});

/** The field of the end record that counts it. */
function countOf(record: Value[]): number {
  return [0, 1, 2, 2, 3][Number(record[0])] ?? 0;
}

test("any field replaced by anything: loaded or refused by name, nothing else", () => {
  const replacement = fc.oneof(
    fc.constantFrom<unknown>(null, true, "", "x", -1, 0, 1, 1.5, NaN, 2 ** 53, [], [[]], {}, undefined),
    fc.integer({ min: -2, max: 60 }),
  );
  fc.assert(
    fc.property(fc.nat(records.length - 1), fc.nat(15), fc.nat(5), replacement, (at, field, inner, value) => {
      const changed = structuredClone(records) as unknown[][];
      const record = changed[at] ?? [];
      const target = record[field % record.length];
      if (Array.isArray(target) && target.length > 0 && inner < 4) (target as unknown[])[inner % target.length] = value;
      else record[field % record.length] = value;
      try {
        load(changed).stateHash();
      } catch (error) {
        assert.ok(error instanceof SnapshotError, String(error));
        const isFormat = at === 0 && field % record.length === 1;
        assert.ok(error.code === "malformed_snapshot" || isFormat, error.code);
      }
    }),
    { numRuns: runs(3_000) },
  );
});
