/** P7: every command of a client may come again, at any later point, and does nothing but answer. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { LockMachine } from "../src/index.js";
import type { Command, Effect, Outcome } from "../src/index.js";
import { entriesOf } from "./entries.js";
import type { Entry } from "./entries.js";
import { isFinal, stepArbitrary } from "./player.js";
import { restored } from "./restored.js";
import { runs } from "./runs.js";

test("a copy of any command of a client, at any later index, changes nothing and gets the answer of the first time", () => {
  fc.assert(
    fc.property(fc.array(stepArbitrary, { maxLength: 30, size: "max" }), (steps) => {
      // A client that claims to have seen what is still to come learns less from its second copy.
      const entries = entriesOf(steps.map((step) => (step.settling === "wild" ? { ...step, settling: "none" } : step)));
      const machine = new LockMachine();
      const answers = new Map<string, Outcome>();
      for (const [position, { index, command }] of entries.entries()) {
        note(answers, machine.apply(index, command));
        const before = machine.stateHash();
        const copy = restored(machine, 100);
        // The copies come one after the other: none may change anything, so they don't disturb each other.
        for (const [late, former] of entries.slice(0, position + 1).entries()) {
          if (!isOfClient(former.command, copy)) continue;
          const effects = copy.apply(index + 1 + late, former.command);
          assert.equal(copy.stateHash(), before, `${JSON.stringify(former)} again after ${index}`);
          checkAnswer(former, effects, answers);
        }
      }
    }),
    { numRuns: runs(60) },
  );
});

function note(answers: Map<string, Outcome>, effects: readonly Effect[]): void {
  for (const effect of effects) {
    if (effect.kind === "outcome") answers.set(`${effect.session}#${effect.request}`, effect.outcome);
  }
}

/** What the leader and administrators propose isn't retried; openSession of an ended session makes an orphan. */
function isOfClient(command: Command, machine: LockMachine): boolean {
  if (command.kind === "openSession")
    return [...machine.sessions()].some(({ id }) => machine.resumeView(id, command.key));
  return "request" in command;
}

function checkAnswer({ command }: Entry, effects: readonly Effect[], answers: Map<string, Outcome>): void {
  assert.equal(effects.length, 1);
  const [effect] = effects;
  if (command.kind === "openSession") {
    assert.ok(effect?.kind === "sessionOpened" && !effect.isNew);
    return;
  }
  assert.ok("request" in command);
  const known = answers.get(`${command.session}#${command.request}`);
  if (effect?.kind === "outcome" && known !== undefined && isFinal(known)) {
    // A released acquire was told by the answer to its release.
    assert.deepEqual(effect.outcome, known);
  } else if (effect?.kind === "outcome" && known?.kind === "granted") {
    assert.ok(effect.outcome.kind === "released" || effect.outcome.kind === "granted");
    if (effect.outcome.kind === "granted") assert.deepEqual(effect.outcome, known);
  } else if (effect?.kind === "outcome") {
    assert.equal(effect.outcome.kind, "waiting");
  } else {
    assert.equal(effect?.kind, "rejected");
  }
}
