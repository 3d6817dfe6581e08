/** What a release may read of a log or snapshot that another has written, and what it writes for that other. */
import assert from "node:assert/strict";
import test from "node:test";
import {
  commandVersions,
  LockMachine,
  NewerSnapshotError,
  SnapshotError,
  SnapshotLoader,
  VersionError,
  versionProblem,
  versionRange,
} from "../src/index.js";
import type { SnapshotPiece, SnapshotRecord } from "../src/index.js";
import { recordKind, snapshotFormat } from "../src/snapshot-records.js";
import { open } from "./commands.js";

function machineAt(version: number): LockMachine {
  const machine = new LockMachine();
  machine.apply(1, open("k"));
  machine.apply(2, { kind: "setClusterVersion", version });
  return machine;
}

function snapshotOf(machine: LockMachine): SnapshotPiece {
  return machine.beginSnapshot().next(100) as SnapshotPiece;
}

function load(piece: SnapshotPiece, range = versionRange): LockMachine {
  const loader = new SnapshotLoader(range);
  loader.push(piece);
  return loader.finish();
}

const four = { min: 3, max: 4 };

test("a state without a version has the first one, and is written without one", () => {
  const machine = machineAt(1);
  assert.equal(new LockMachine().clusterVersion, 1);
  const piece = snapshotOf(machine);
  assert.deepEqual(piece[0], [0, 1, 2, []]);
  assert.equal(load(piece).clusterVersion, 1);
  assert.equal(load(piece).stateHash(), machine.stateHash());
});

test("format 1 has the kinds of records of the first release: another one comes with a cluster version, and is damage in the first", () => {
  assert.equal(snapshotFormat, 1);
  const first = { header: 0, session: 1, acquire: 2, past: 3, delay: 4, end: 5, restored: 6 };
  assert.deepEqual(recordKind, { ...first, signingKeys: 7 });
  const machine = machineAt(1);
  machine.restore(9);
  const [header, restored, ...others] = snapshotOf(machine);
  assert.deepEqual(
    [header, restored],
    [
      [0, 1, 9, []],
      [6, 9, 10_000],
    ],
    "a restored cluster begins at the first version",
  );
  assert.equal(load([header, restored, ...others] as SnapshotPiece).stateHash(), machine.stateHash());
  const strange = [header, [8, 1], ...others] as SnapshotPiece;
  assert.throws(
    () => load(strange),
    (error) => error instanceof SnapshotError && !(error instanceof NewerSnapshotError),
  );
});

test("a version above the first is in the snapshot and in the hash", () => {
  const machine = machineAt(4);
  const piece = snapshotOf(machine);
  assert.deepEqual(piece[0], [0, 1, 2, [], 4]);
  assert.equal(load(piece, four).clusterVersion, 4);
  assert.equal(load(piece, four).stateHash(), machine.stateHash());
  assert.notEqual(machineAt(3).stateHash(), machine.stateHash());
});

test("a snapshot of a version that can't be run is refused at its header, whatever comes after it", () => {
  const [header] = snapshotOf(machineAt(5)) as [SnapshotRecord];
  const strange = [header, [99, "a record of a later release"]];
  for (const range of [four, versionRange]) {
    assert.throws(
      () => load(strange, range),
      (error) => error instanceof VersionError && error.version === 5,
    );
  }
  assert.throws(
    () => load(snapshotOf(machineAt(2)), four),
    (error) =>
      error instanceof VersionError && /is at version 2, and this release runs versions 3 to 4/.test(error.message),
  );
  // In a cluster in which nothing was ever done there is nothing that couldn't be read.
  assert.equal(load(snapshotOf(new LockMachine()), four).clusterVersion, 1);
});

test("a snapshot of a newer format is no damage", () => {
  const [[, , ...rest] = []] = snapshotOf(machineAt(1));
  const check = (format: number, isNewer: boolean) =>
    assert.throws(
      () => load([[0, format, ...rest]]),
      (error) => error instanceof SnapshotError && error instanceof NewerSnapshotError === isNewer,
    );
  check(2, true);
  check(0, false);
});

test("a version that is no number from 1 is damage", () => {
  for (const version of [0, -1, 1.5, null, "2"]) {
    assert.throws(
      () => load([[0, 1, 2, [], version]]),
      (error) => error instanceof SnapshotError && error.code === "malformed_snapshot",
    );
  }
});

test("only the versions of a range can be run", () => {
  assert.equal(versionProblem(3, four), null);
  assert.equal(versionProblem(4, four), null);
  assert.match(versionProblem(5, four) ?? "", /version 5, .* runs versions 3 to 4: start the newer release again/);
  assert.match(versionProblem(2, four) ?? "", /version 2, .*: upgrade by way of the releases between/);
  assert.match(versionProblem(5, { min: 4, max: 4 }) ?? "", /this release runs version 4:/);
});

test("every command can be proposed in the newest version that this release runs", () => {
  for (const [kind, version] of Object.entries(commandVersions)) {
    assert.ok(version >= 1 && version <= versionRange.max, kind);
  }
  assert.ok(versionRange.min <= versionRange.max);
});

test("a machine is untouched until its first command", () => {
  const machine = new LockMachine();
  assert.equal(machine.isUntouched, true);
  machine.apply(7, { kind: "setClusterVersion", version: 2 });
  assert.equal(machine.isUntouched, false);
});
