/** The rule on sequencers, broken by hand: found, and only then. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { SequencerCheck } from "@holdfast/client";
import type { Effect } from "@holdfast/lock";
import { KeysQuestion, SequencerBook, SequencerQuestion } from "../src/invariants/sequencers.js";

const issued = { name: "a", slot: null, token: 10, keyId: "k1" };
const claim = { resource: "a", name: "a", mode: "shared", slot: null, token: 10 } as const;
const current: SequencerCheck = { isCurrent: true, reason: null, claim, currentToken: 10 };
const over: SequencerCheck = { isCurrent: false, reason: "over", claim, currentToken: null };
const unsigned = (reason: "unknown_key" | "forged" | "malformed"): SequencerCheck => {
  return { isCurrent: false, reason, claim: null, currentToken: null };
};

const changed = (change: "granted" | "released" | "lost"): Effect => {
  return { kind: "changed", name: "a", change, token: 10, slot: null };
};
const keySet = (id: string): Effect => {
  return { kind: "signingKeySet", id, replaces: null, principal: "", isSet: true };
};

/** Two readers hold a at token 10. */
function book(): SequencerBook {
  const all = new SequencerBook();
  all.note(5, [keySet("k1")]);
  all.note(10, [changed("granted")]);
  all.note(11, [changed("granted")]);
  return all;
}

function dropKey(all: SequencerBook, firstIndex: number): void {
  for (let at = 0; at < 8; at += 1) all.note(firstIndex + at, [keySet(`later ${at}`)]);
}

const broken = { rule: "sequencers" };

describe("what is said of a sequencer", () => {
  it("is current while somebody of its generation holds, and over once nobody does", () => {
    const all = book();
    new SequencerQuestion(all, issued).judge(current);
    all.note(12, [changed("released")]);
    new SequencerQuestion(all, issued).judge(current);
    assert.throws(() => new SequencerQuestion(all, issued).judge(over), broken);
    all.note(13, [changed("lost")]);
    new SequencerQuestion(all, issued).judge(over);
    assert.throws(() => new SequencerQuestion(all, issued).judge(current), broken);
  });

  it("may be either when it ends between question and answer", () => {
    const all = book();
    const question = new SequencerQuestion(all, issued);
    all.note(12, [changed("released"), changed("released")]);
    question.judge(current);
    question.judge(over);
  });

  it("counts each entry once, whoever applies it again", () => {
    const all = book();
    all.note(12, [changed("released")]);
    all.note(12, [changed("released")]);
    new SequencerQuestion(all, issued).judge(current);
  });

  it("is what its holder was given", () => {
    const other = { ...current, claim: { ...claim, token: 11 } };
    assert.throws(() => new SequencerQuestion(book(), issued).judge(other), broken);
    assert.throws(() => new SequencerQuestion(book(), issued).judge({ ...current, currentToken: 12 }), broken);
  });

  it("is unknown once its key has dropped out, and not before", () => {
    const all = book();
    assert.throws(() => new SequencerQuestion(all, issued).judge(unsigned("unknown_key")), broken);
    const question = new SequencerQuestion(all, issued);
    dropKey(all, 20);
    question.judge(current);
    question.judge(unsigned("unknown_key"));
    assert.throws(() => new SequencerQuestion(all, issued).judge(current), broken);
  });

  it("is forged only when it is", () => {
    const all = book();
    assert.throws(() => new SequencerQuestion(all, issued).judge(unsigned("forged")), broken);
    assert.throws(() => new SequencerQuestion(all, issued).judge(unsigned("malformed")), broken);
    new SequencerQuestion(all, issued).judgeForged(unsigned("forged"));
    assert.throws(() => new SequencerQuestion(all, issued).judgeForged(current), broken);
    assert.throws(() => new SequencerQuestion(all, issued).judgeForged(unsigned("unknown_key")), broken);
  });
});

describe("what is said of the keys", () => {
  const keys = (...ids: string[]) => ids.map((id) => ({ id, publicKey: "", since: 1 }));

  it("is how they stood at some moment between question and answer, the newest first", () => {
    const all = book();
    const question = new KeysQuestion(all);
    all.note(12, [keySet("k2")]);
    question.judge(keys("k1"));
    question.judge(keys("k2", "k1"));
    for (const told of [keys("k1", "k2"), keys("k2"), keys(), keys("k3")]) {
      assert.throws(() => question.judge(told), broken);
    }
    assert.throws(() => new KeysQuestion(all).judge(keys("k1")), broken);
  });

  it("leaves out those that have dropped out", () => {
    const all = book();
    dropKey(all, 20);
    const eight = Array.from({ length: 8 }, (_, at) => `later ${7 - at}`);
    new KeysQuestion(all).judge(keys(...eight));
    assert.throws(() => new KeysQuestion(all).judge(keys(...eight, "k1")), broken);
  });
});
