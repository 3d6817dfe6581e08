/** The keys in a snapshot, after a restore, and through entries while a snapshot is taken. The rules are in tables/signing-keys.txt. */
import assert from "node:assert/strict";
import test from "node:test";
import { LockMachine, SnapshotError, SnapshotLoader } from "../src/index.js";
import type { Command, SnapshotPiece, SnapshotValue } from "../src/index.js";
import { acquire, open } from "./commands.js";
import { restored, throughJson } from "./restored.js";

function keyCommand(id: string, replaces: string | null): Command {
  return { kind: "setSigningKey", id, publicKey: `P${id}`, seed: `S${id}`, replaces, principal: "" };
}

function machineWith(count: number): LockMachine {
  const machine = new LockMachine();
  machine.apply(1, { kind: "setClusterVersion", version: 2 });
  for (let at = 1; at <= count; at += 1) machine.apply(at + 1, keyCommand(`k${at}`, at === 1 ? null : `k${at - 1}`));
  return machine;
}

function load(piece: readonly unknown[]): LockMachine {
  const loader = new SnapshotLoader();
  loader.push(throughJson(piece as SnapshotPiece));
  return loader.finish();
}

const keyOf = (at: number): { id: string; publicKey: string; since: number } => {
  return { id: `k${at}`, publicKey: `Pk${at}`, since: at + 1 };
};

test("keys are in the snapshot and in the hash, a seed only of the current one", () => {
  const machine = machineWith(2);
  const piece = machine.beginSnapshot().next(100) ?? [];
  assert.deepEqual(piece[1], [7, "k2", "Pk2", 3, "Sk2", [["k1", "Pk1", 2]]]);
  assert.ok(!JSON.stringify(piece).includes("Sk1"));
  const copy = load(piece);
  assert.equal(copy.stateHash(), machine.stateHash());
  assert.notEqual(machine.stateHash(), machineWith(1).stateHash());
  assert.deepEqual(copy.publicKeys(), [keyOf(2), keyOf(1)]);
  assert.equal(copy.signingKey?.seed, "Sk2");
});

test("without a key a snapshot has no record of keys", () => {
  const kinds = machineWith(0)
    .beginSnapshot()
    .next(100)
    ?.map(([kind]) => kind);
  assert.deepEqual(kinds, [0, 5]);
});

test("a key that is set while a snapshot is taken is not in it", () => {
  const machine = machineWith(1);
  machine.apply(3, open("k"));
  const before = machine.stateHash();
  const cursor = machine.beginSnapshot();
  const loader = new SnapshotLoader();
  for (let piece = cursor.next(1), index = 4; piece !== null; piece = cursor.next(1), index += 1) {
    loader.push(throughJson(piece));
    machine.apply(index, keyCommand(`n${index}`, machine.signingKey?.id ?? null));
  }
  assert.equal(loader.finish().stateHash(), before);
});

test("a restored cluster goes on with the keys of its backup", () => {
  const machine = machineWith(3);
  machine.apply(5, open("k"));
  machine.apply(6, acquire(5, 1, ["a"]));
  const keys = machine.publicKeys();
  machine.restore(1_000);
  machine.checkInvariants();
  assert.deepEqual(machine.publicKeys(), keys);
  assert.equal(machine.signingKey?.seed, "Sk3");
  const copy = restored(machine);
  assert.equal(copy.stateHash(), machine.stateHash());
  assert.deepEqual(copy.publicKeys(), keys);
});

test("a record of keys that no cursor could have written is refused", () => {
  const [header, keys = [], ...others] = machineWith(2).beginSnapshot().next(100) ?? [];
  load([header, keys, ...others]);
  const changed = (at: number, value: SnapshotValue): SnapshotValue[] =>
    keys.map((old, field) => (field === at ? value : old));
  const session = [1, 2, "key", 10, "", 0, 1, []];
  const table: [readonly unknown[], RegExp][] = [
    [[header, keys, keys, ...others], /the keys once/],
    [[header, session, keys, [5, 1, 0, 0]], /before sessions/],
    [[header, changed(1, "k1"), ...others], /each there once/],
    [[header, changed(3, 2), ...others], /in the order of their entries/],
    [[header, changed(3, 4), ...others], /in the order of their entries/],
    [[header, changed(3, 0), ...others], /a number from 1/],
    [[header, changed(4, null), ...others], /a text/],
    [[header, changed(5, [["k1", "Pk1"]]), ...others], /a whole number/],
    [[header, changed(5, [["k1", "Pk1", 2, "Sk1"]]), ...others], /nothing more/],
    [[header, [...keys, 1], ...others], /nothing more/],
    [[header?.slice(0, -1), keys, ...others], /of the version that brings them/],
  ];
  for (const [piece, problem] of table) {
    assert.throws(
      () => load(piece),
      (error) => error instanceof SnapshotError && problem.test(error.message),
      String(problem),
    );
  }
  const nine = machineWith(12).beginSnapshot().next(100) ?? [];
  const many = nine.map((record, at) =>
    at === 1
      ? record.with(
          5,
          Array.from({ length: 8 }, (_, n) => [`x${n}`, "P", 12 - n]),
        )
      : record,
  );
  assert.throws(() => load(many), /at most 7 former ones/);
  load(nine).checkInvariants();
});
