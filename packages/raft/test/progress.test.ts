import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Index } from "../src/index.js";
import { Progress } from "../src/progress.js";

type Action =
  | { readonly kind: "send" | "reset" | "overdue" | "grow" | "loseOne" }
  | { readonly kind: "answer"; readonly at: number; readonly again: boolean };

interface Append {
  readonly previous: number;
  readonly last: number;
}

type Answer =
  | { readonly kind: "accepted"; readonly match: number }
  | { readonly kind: "rejected"; readonly rejected: number; readonly hint: number };

/** A peer whose log is a length: all it has agrees with the leader's, for the leader never changes. */
class Peer {
  length: number;

  constructor(length: number) {
    this.length = length;
  }

  onAppend({ previous, last }: Append): Answer {
    if (previous > this.length) return { kind: "rejected", rejected: previous, hint: this.length };
    this.length = Math.max(this.length, last);
    return { kind: "accepted", match: last };
  }
}

const window = 3;
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom("send" as const, "grow" as const) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("answer" as const), at: fc.nat(20), again: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom("reset" as const, "overdue" as const, "loseOne" as const) }),
  },
);

class Exchange {
  readonly progress: Progress;
  readonly peer: Peer;
  readonly appends: Append[] = [];
  readonly answers: Answer[] = [];
  last: number;
  nowMs = 0;

  constructor(last: number, peerLength: number) {
    this.last = last;
    this.peer = new Peer(Math.min(peerLength, last));
    this.progress = new Progress("p", (last + 1) as Index, 0, window);
  }

  act(next: Action): void {
    this.nowMs += 10;
    switch (next.kind) {
      case "send":
        this.send();
        break;
      case "grow":
        this.last += 1;
        break;
      case "reset":
        this.progress.becomeProbe(0 as Index);
        break;
      case "overdue":
        this.progress.onAnswerOverdue(this.nowMs, 0);
        break;
      case "loseOne":
        this.appends.shift();
        break;
      case "answer":
        this.answer(next.at, next.again);
        break;
    }
  }

  send(): void {
    for (;;) {
      const kind = this.progress.nextAppendFor(this.last as Index);
      if (kind === "none") return;
      const previous = this.progress.nextIndex - 1;
      const last = kind === "empty" ? previous : Math.min(this.last, previous + 2);
      this.appends.push({ previous, last });
      this.progress.onSent(last as Index, this.nowMs);
      assert.ok(this.progress.inFlight <= window, "no more than the window is in flight");
    }
  }

  /** Some append arrives (perhaps twice, perhaps out of order), and some answer is heard, perhaps again later. */
  answer(at: number, again: boolean): void {
    const append = this.appends[at % Math.max(1, this.appends.length)];
    if (append !== undefined) this.answers.push(this.peer.onAppend(append));
    if (append !== undefined && !again) this.appends.splice(this.appends.indexOf(append), 1);
    const answer = this.answers[at % Math.max(1, this.answers.length)];
    if (answer === undefined) return;
    if (!again) this.answers.splice(this.answers.indexOf(answer), 1);
    if (answer.kind === "accepted") this.progress.onAccepted(answer.match as Index, this.nowMs);
    else this.progress.onRejected(answer.rejected as Index, answer.hint as Index);
  }
}

const setting = [fc.nat(10), fc.nat(10), fc.array(action, { maxLength: 80 })] as const;

test("whatever is lost, late or repeated: matchIndex never falls, is true, and nextIndex is above it", () => {
  fc.assert(
    fc.property(...setting, (last, peerLength, list) => {
      const exchange = new Exchange(last, peerLength);
      const { progress, peer } = exchange;
      for (const next of list) {
        const before = progress.matchIndex;
        exchange.act(next);
        assert.ok(progress.matchIndex >= before, "matchIndex never falls");
        assert.ok(progress.matchIndex <= peer.length, "the peer has what it is said to match");
        assert.ok(progress.nextIndex > progress.matchIndex, "nextIndex is above matchIndex");
        assert.ok(progress.nextIndex <= exchange.last + 1, "nextIndex is at most one beyond the log");
      }
    }),
    { numRuns: 1_000 },
  );
});

test("once nothing is lost any more, questions alone bring the peer up to date", () => {
  fc.assert(
    fc.property(...setting, (last, peerLength, list) => {
      const exchange = new Exchange(last, peerLength);
      for (const next of list) exchange.act(next);
      exchange.appends.length = 0;
      exchange.answers.length = 0;
      for (let round = 0; round < 100 && exchange.progress.matchIndex < exchange.last; round += 1) {
        exchange.act({ kind: "overdue" });
        exchange.send();
        while (exchange.appends.length > 0 || exchange.answers.length > 0) exchange.answer(0, false);
      }
      assert.equal(exchange.progress.matchIndex, exchange.last);
      assert.equal(exchange.peer.length, exchange.last);
    }),
    { numRuns: 1_000 },
  );
});

test("a stale rejection changes nothing", () => {
  const progress = new Progress("p", 11 as Index, 0, window);
  progress.onSent(10 as Index, 0);
  assert.equal(progress.onRejected(10 as Index, 5 as Index), true);
  assert.equal(progress.nextIndex, 6);
  assert.equal(progress.onRejected(10 as Index, 3 as Index), false, "the answer to the probe before, again");
  assert.equal(progress.nextIndex, 6);
  progress.onAccepted(8 as Index, 0);
  assert.equal(progress.onRejected(7 as Index, 3 as Index), false, "a rejection of what is known to match");
  assert.deepEqual([progress.state, progress.matchIndex, progress.nextIndex], ["replicate", 8, 9]);
});

test("a probe starts no further back than the log's base, unless the peer has said so", () => {
  const progress = new Progress("p", 11 as Index, 0, window);
  progress.onAccepted(3 as Index, 0);
  progress.becomeProbe(7 as Index);
  assert.equal(progress.nextIndex, 8);
  progress.onSent(7 as Index, 0);
  progress.onRejected(7 as Index, 5 as Index);
  assert.equal(progress.nextIndex, 6);
});
