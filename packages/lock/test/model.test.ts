/** Random commands, judged by the naive model, by the invariants, and by what was told before. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { LockMachine } from "../src/index.js";
import type { LockView } from "../src/index.js";
import { Ghost } from "./ghost.js";
import { Model } from "./model.js";
import { Player, stepArbitrary } from "./player.js";
import { runs } from "./runs.js";

test("every effect and every view is that of the model; the invariants hold at every index", () => {
  fc.assert(
    fc.property(fc.array(stepArbitrary, { maxLength: 70, size: "max" }), (steps) => {
      const model = new Model();
      const player = new Player(model);
      const machine = new LockMachine();
      const ghost = new Ghost();
      for (const step of steps) {
        const { index, command } = player.next(step);
        const expected = structuredClone(model.apply(index, command));
        const effects = machine.apply(index, command);
        assert.deepEqual(effects, expected, JSON.stringify(command));
        player.note(effects);
        ghost.check(index, effects);
        machine.checkInvariants();
        compareViews(machine, model);
      }
    }),
    { numRuns: runs(200) },
  );
});

function compareViews(machine: LockMachine, model: Model): void {
  const names = model.names();
  const expected = names.map((name) => model.lockView(name));
  assert.deepEqual(
    names.map((name) => machine.lockView(name, 1_000)),
    expected,
  );
  const { locks, more } = machine.list("", "", 1_000);
  assert.ok(!more);
  assert.deepEqual(
    locks.map(withoutWaiters),
    expected.map((view) => view && withoutWaiters(view)),
  );
  assert.equal(machine.lockCount, names.length);
  const sessions = model.sessionViews();
  assert.deepEqual(
    [...machine.sessions()].sort((a, b) => a.id - b.id),
    sessions,
  );
  assert.equal(machine.sessionCount, sessions.length);
  for (const session of sessions) {
    assert.deepEqual(machine.sessionView(session.id), session);
    const { key } = model.sessions.find(({ id }) => id === session.id) ?? { key: "" };
    assert.deepEqual(machine.resumeView(session.id, key), model.resumeView(session.id));
    assert.equal(machine.resumeView(session.id, `${key}x`), null);
  }
  assert.equal(
    machine.holdCount,
    sessions.reduce((sum, { holds }) => sum + holds, 0),
  );
  assert.equal(
    machine.waiterCount,
    sessions.reduce((sum, { waits }) => sum + waits, 0),
  );
  const keys = model.keys.slice(0, 8).map(({ id, publicKey, since }) => ({ id, publicKey, since }));
  assert.deepEqual(machine.publicKeys(), keys);
  assert.equal(machine.signingKey?.seed, model.keys[0]?.seed);
  for (const { session, number, acquire } of model.holds()) {
    for (const { name, token, slot } of acquire.grants ?? []) {
      const holding = { name, mode: acquire.mode, slot, token };
      assert.deepEqual(machine.holdingView(session.id, session.key, number, name), holding);
      assert.equal(machine.holdingView(session.id, `${session.key}x`, number, name), null);
      assert.equal(machine.tokenAt(name, slot), token);
    }
  }
  const delays = model.delays.map(({ name, index, delayMs }) => ({ name, index, delayMs }));
  assert.deepEqual(sorted(machine.delays()), sorted(delays));
  const timed = model.holds().filter(({ acquire }) => acquire.maxHoldMs > 0);
  assert.deepEqual(
    sorted(machine.timedHolds()),
    sorted(
      timed.map(({ session, number, acquire }) => {
        return { session: session.id, of: number, token: acquire.grants?.[0]?.token, maxHoldMs: acquire.maxHoldMs };
      }),
    ),
  );
}

function withoutWaiters(view: LockView): LockView {
  return { ...view, waiters: [] };
}

function sorted(items: Iterable<object>): string[] {
  return [...items].map((item) => JSON.stringify(item)).sort();
}
