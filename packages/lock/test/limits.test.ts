/** What is kept is bounded, and what frees something is never refused for that. */
import assert from "node:assert/strict";
import test from "node:test";
import { LockMachine } from "../src/index.js";
import type { Command, Effect } from "../src/index.js";
import { acquire, cancel, open, release } from "./commands.js";
import { restored } from "./restored.js";

class Machine {
  readonly machine: LockMachine = new LockMachine();
  private index = 0;

  apply(command: Command): Effect {
    this.index += 1;
    const [effect] = this.machine.apply(this.index, command);
    assert.ok(effect !== undefined);
    return effect;
  }

  answerTo(command: Command): string {
    const effect = this.apply(command);
    if (effect.kind === "rejected") return effect.rejection.kind;
    return effect.kind === "outcome" ? effect.outcome.kind : effect.kind;
  }
}

test("1,024 unseen outcomes: no acquire then, but release, cancel, setInfo and closeSession", () => {
  const it = new Machine();
  it.apply(open("k1"));
  it.apply(open("k2"));
  for (let number = 1; number <= 1_022; number += 1) {
    assert.equal(it.answerTo(acquire(2, number, [`n${number}`])), "granted");
    if (number > 1) continue;
    assert.equal(it.answerTo(acquire(1, 1, ["held"])), "granted");
  }
  assert.equal(it.answerTo(acquire(2, 1_023, ["held"])), "waiting");
  assert.equal(it.answerTo(acquire(2, 1_024, ["held"], { wait: false })), "lockHeld");
  assert.equal(it.answerTo(acquire(2, 1_025, ["x"])), "tooManyRequests");
  assert.equal(it.machine.lockView("x", 1), null, "without effect");
  assert.equal(it.answerTo(acquire(2, 1_024, ["held"])), "lockHeld", "a retry is no new request");
  assert.equal(it.answerTo(acquire(1, 2, ["x"])), "granted", "each session for itself");
  assert.equal(it.answerTo(release(2, 1_026, 1)), "released");
  assert.equal(it.answerTo(cancel(2, 1_027, 1_023)), "cancelled");
  assert.equal(it.answerTo({ ...cancel(2, 1_028, 2), kind: "setInfo", info: "x" }), "infoSet");
  // The number that was refused was not recorded, and may be executed once there is room.
  assert.equal(it.answerTo(acquire(2, 1_025, ["y"])), "tooManyRequests");
  assert.equal(it.answerTo(acquire(2, 1_029, ["z"], { seen: [1_026, 1_027, 1_028] })), "tooManyRequests");
  assert.equal(it.answerTo(acquire(2, 1_025, ["y"], { settled: 2, seen: [1_023] })), "granted");
  assert.equal(it.answerTo({ ...cancel(2, 1_030, 1), kind: "closeSession" }), "sessionClosed");
  it.machine.checkInvariants();
});

test("releases that nobody says were seen: the oldest are dropped as seen, and are not executed again", () => {
  const it = new Machine();
  it.apply(open("k"));
  assert.equal(it.answerTo(acquire(1, 1, ["a"])), "granted");
  for (let number = 2; number <= 5_000; number += 1) assert.equal(it.answerTo(release(1, number, 9_999)), "notHeld");
  it.machine.checkInvariants();
  const view = it.machine.resumeView(1, "k");
  assert.equal((view?.holds.length ?? 0) + (view?.outcomes.length ?? 0), 4_096);
  assert.equal(view?.outcomes[0]?.request, 906);
  assert.equal(it.answerTo(release(1, 905, 1)), "settled");
  assert.equal(it.answerTo(release(1, 906, 1)), "notHeld");
  assert.equal(it.answerTo(acquire(1, 1, ["a"])), "granted", "the hold is not dropped");
  assert.equal(it.answerTo(release(1, 5_001, 1)), "released");
  assert.equal(restored(it.machine, 500).stateHash(), it.machine.stateHash());
});

test("a client that skips numbers: the ranges of seen ones are bounded, live requests stay", () => {
  const it = new Machine();
  it.apply(open("k"));
  assert.equal(it.answerTo(acquire(1, 1, ["a"])), "granted");
  assert.equal(it.answerTo(acquire(1, 103, ["b"])), "granted");
  for (let number = 3; number <= 20_001; number += 2) {
    if (number !== 103)
      assert.equal(
        it.answerTo(release(1, number + 2, 9_999, { seen: [number] })),
        number === 101 ? "granted" : "notHeld",
      );
  }
  it.machine.checkInvariants();
  const size = JSON.stringify(piecesOf(it.machine)).length;
  assert.ok(size < 100_000, `${size} bytes for one session`);
  assert.equal(it.answerTo(release(1, 4, 1)), "settled", "a number in a closed gap is never executed");
  assert.equal(it.answerTo(release(1, 20_000, 103)), "released", "the youngest gaps are open");
  assert.equal(it.answerTo(release(1, 19_998, 1)), "released");
});

test("the reasons of the last 1,024 ended sessions are known", () => {
  const it = new Machine();
  for (let number = 1; number <= 1_100; number += 1) {
    const effect = it.apply(open(`k${number}`));
    assert.ok(effect.kind === "sessionOpened");
    assert.equal(it.answerTo({ ...cancel(effect.session, 1, 1), kind: "closeSession" }), "sessionClosed");
  }
  const first = 1;
  const last = 1_100 * 2 - 1;
  assert.equal(it.machine.endReason(first), null);
  assert.equal(it.machine.endReason(last - 2 * 1_024), null);
  assert.equal(it.machine.endReason(last - 2 * 1_023), "closed");
  assert.equal(it.machine.endReason(last), "closed");
  const copy = restored(it.machine, 50);
  assert.equal(copy.endReason(last - 2 * 1_023), "closed");
  assert.equal(copy.stateHash(), it.machine.stateHash());
  assert.deepEqual(copy.apply(5_000, acquire(first, 2, ["a"])), [
    { kind: "rejected", session: first, request: 2, rejection: { kind: "sessionGone", reason: null } },
  ]);
});

test("a listing is bounded in locks and in rows, and goes on where it stopped", () => {
  const it = new Machine();
  for (let session = 1; session <= 12; session += 1) it.apply(open(`k${session}`));
  for (let number = 1; number <= 1_000; number += 1) {
    for (let session = 1; session <= 12; session += 1)
      it.apply(acquire(session, number, ["crowd"], { mode: "shared" }));
  }
  for (let number = 1; number <= 24; number += 1)
    it.apply(acquire(12, 1_000 + number, [`z${String(number).padStart(2, "0")}`]));
  const first = it.machine.list("", "", 100);
  assert.equal(first.locks.length, 25);
  assert.equal(first.locks[0]?.holders.length, 16);
  assert.equal(first.locks[0].holderCount, 12_000);
  assert.ok(!first.more);
  assert.equal(it.machine.lockView("crowd", 4)?.holders.length, 1_024);
  const second = it.machine.list("", "crowd", 20);
  assert.equal(second.locks.length, 20);
  assert.ok(second.more);
  const third = it.machine.list("z", second.locks.at(-1)?.name ?? "", 1e9);
  assert.deepEqual(
    third.locks.map(({ name }) => name),
    ["z21", "z22", "z23", "z24"],
  );
  assert.ok(!third.more);
});

test("a notHeld names at most eight holders", () => {
  const it = new Machine();
  it.apply(open("k1"));
  it.apply(open("k2"));
  it.apply(acquire(1, 1, ["a"]));
  it.apply(release(1, 2, 1));
  for (let number = 1; number <= 20; number += 1) it.apply(acquire(2, number, ["a"], { mode: "shared" }));
  const effect = it.apply(release(1, 3, 1));
  assert.ok(effect.kind === "outcome" && effect.outcome.kind === "notHeld");
  assert.deepEqual(
    effect.outcome.holders.map(({ request }) => request),
    [1, 2, 3, 4, 5, 6, 7, 8],
  );
});

function piecesOf(machine: LockMachine): unknown[] {
  const cursor = machine.beginSnapshot();
  const pieces = [];
  for (let piece = cursor.next(1_000); piece !== null; piece = cursor.next(1_000)) pieces.push(piece);
  return pieces;
}
