/** Machines that say something wrong of the committed log: each history is true but for one lie, and is rejected for that. */
import assert from "node:assert/strict";
import test from "node:test";
import type { Effect } from "../src/index.js";
import { change, eventAt, find, granted, indexOf, sayOf, silent } from "./edits.js";
import { alone, ended, heldAndWaiting, sessionOf, tokenOf } from "./scenes.js";
import { Story } from "./service/story.js";
import { assertRejected } from "./verdicts.js";

test("generation-token: a waiter's token is its request's index", () => {
  const { story, c1, c2, first } = heldAndWaiting();
  c1.release(first);
  const history = ended(story);
  const session = sessionOf(c2);
  const asked = indexOf(history, "acquire", (command) => command.session === session);
  const index = indexOf(history, "release");
  const lie = sayOf(history, index, (effects) => [
    ...silent(effects, session, 1),
    ...granted(session, 1, alone("a", asked)),
  ]);
  assertRejected("generation-token", lie);
});

test("generation-token: who joins readers gets a token of its own", () => {
  const story = new Story();
  story.client("c1").acquire(["a"], { mode: "shared" });
  story.advance(20);
  story.client("c2").acquire(["a"], { mode: "shared" });
  const history = ended(story);
  const index = indexOf(history, "acquire", () => true, 1);
  const session = sessionOf(story.client("c2"));
  assertRejected(
    "generation-token",
    sayOf(history, index, () => granted(session, 1, alone("a", index))),
  );
});

test("generation-token: readers after a writer bear the token of those before it", () => {
  const story = new Story();
  const [c1, c2, c3] = [story.client("c1"), story.client("c2"), story.client("c3")];
  const reader = c1.acquire(["a"], { mode: "shared" });
  story.advance(20);
  const writer = c2.acquire(["a"]);
  story.advance(20);
  const token = tokenOf(reader);
  c1.release(reader);
  story.advance(20);
  c3.acquire(["a"], { mode: "shared" });
  story.advance(20);
  c2.release(writer);
  const history = ended(story);
  const index = indexOf(history, "release", () => true, 1);
  const session = sessionOf(c3);
  const lie = sayOf(history, index, (effects) => [
    ...silent(effects, session, 1),
    ...granted(session, 1, alone("a", token)),
  ]);
  assertRejected("generation-token", lie);
});

test("one-effect: a retry is granted anew", () => {
  const { story, c1 } = heldAndWaiting();
  c1.onServing();
  const history = ended(story);
  const session = sessionOf(c1);
  const index = indexOf(history, "acquire", (command) => command.session === session, 1);
  assertRejected(
    "one-effect",
    sayOf(history, index, () => granted(session, 1, alone("a", index))),
  );
});

test("one-effect: a late copy of an acquire that was released", () => {
  const story = new Story();
  const c1 = story.client("c1");
  const first = c1.acquire(["a"]);
  story.advance(20);
  const session = sessionOf(c1);
  const copy = eventAt(
    story.world.history(),
    "committed",
    find(story.world.history(), "committed", ({ index }) => index === 3),
  );
  c1.release(first);
  story.advance(20);
  story.service.commit(copy.entry);
  const history = ended(story);
  const index = indexOf(history, "acquire", () => true, 1);
  assertRejected(
    "one-effect",
    sayOf(history, index, () => granted(session, 1, alone("a", index))),
  );
});

test("one-effect: the copy of a release is answered otherwise", () => {
  const { story, c1, first } = heldAndWaiting();
  const session = sessionOf(c1);
  c1.release(first);
  c1.onServing();
  const history = ended(story);
  const index = indexOf(history, "release", () => true, 1);
  const outcome: Effect = { kind: "outcome", session, request: 2, outcome: { kind: "notHeld" } };
  assertRejected(
    "one-effect",
    sayOf(history, index, () => [outcome]),
  );
});

test("lock-delay: a grant while it runs", () => {
  const story = new Story();
  const c1 = story.client("c1");
  c1.acquire(["a"], { lockDelayMs: 5_000 });
  story.advance(20);
  c1.crash();
  story.advance(12_000);
  const c2 = story.client("c2");
  c2.acquire(["a"]);
  const history = ended(story);
  const session = sessionOf(c2);
  const index = indexOf(history, "acquire", (command) => command.session === session);
  assertRejected(
    "lock-delay",
    sayOf(history, index, () => granted(session, 1, alone("a", index))),
  );
});

test("lock-delay: none begins", () => {
  const story = new Story();
  const c1 = story.client("c1");
  c1.acquire(["a"], { lockDelayMs: 5_000 });
  story.advance(20);
  c1.crash();
  story.advance(12_000);
  const history = ended(story);
  const index = indexOf(history, "expireSessions");
  assertRejected(
    "lock-delay",
    sayOf(history, index, (effects) => effects.filter(({ kind }) => kind !== "lockDelayBegan")),
  );
});

test("conditional-expiry: a session without counted silence ends", () => {
  const { story, c1 } = heldAndWaiting();
  const session = sessionOf(c1);
  story.service.commit({ kind: "command", command: { kind: "expireSessions", ids: [session] } }, 1);
  const history = ended(story);
  const index = indexOf(history, "expireSessions");
  const lost: Effect = { kind: "outcome", session, request: 1, outcome: { kind: "lost", reason: "expired", index } };
  const lie = sayOf(history, index, () => [lost, { kind: "sessionEnded", session, reason: "expired" }]);
  assertRejected("conditional-expiry", lie);
});

test("stale-proposal: an expiry decided in an earlier term", () => {
  const story = new Story();
  const c1 = story.client("c1");
  c1.acquire(["a"]);
  story.advance(20);
  story.service.elect(1);
  story.advance(20);
  c1.crash();
  story.advance(13_000);
  const history = ended(story);
  const position = find(
    history,
    "committed",
    ({ entry }) => entry.kind === "command" && entry.command.kind === "expireSessions",
  );
  assertRejected(
    "stale-proposal",
    change(history, "committed", position, () => ({ decidedInTerm: 1 })),
  );
});

test("replay: a silent session with all eighths is not ended", () => {
  const story = new Story();
  const c1 = story.client("c1");
  c1.acquire(["a"]);
  story.advance(20);
  const session = sessionOf(c1);
  c1.crash();
  story.advance(12_000);
  const history = ended(story);
  const index = indexOf(history, "expireSessions");
  assertRejected(
    "replay",
    sayOf(history, index, () => [{ kind: "expiryRefused", session }]),
  );
});

test("replay: a hold that ends by its session is not told as lost", () => {
  const story = new Story();
  const c1 = story.client("c1");
  c1.acquire(["a"]);
  story.advance(20);
  const session = sessionOf(c1);
  c1.crash();
  story.advance(12_000);
  const history = ended(story);
  const index = indexOf(history, "expireSessions");
  assertRejected(
    "replay",
    sayOf(history, index, (effects) => silent(effects, session, 1)),
  );
});

test("replay: something is told twice", () => {
  const { story } = heldAndWaiting();
  const history = ended(story);
  const index = indexOf(history, "acquire");
  assertRejected(
    "replay",
    sayOf(history, index, (effects) => [...effects, ...effects]),
  );
});

test("one-effect: an entry grants what is held, or was released, already", () => {
  const { story, c1, c2, first } = heldAndWaiting();
  c1.release(first);
  story.advance(20);
  c1.acquire(["z"]);
  const history = ended(story);
  const index = indexOf(history, "acquire", ({ names }) => names.includes("z"));
  for (const client of [c1, c2]) {
    const grant = granted(sessionOf(client), 1, alone("a", index));
    assertRejected(
      "one-effect",
      sayOf(history, index, (effects) => [...effects, ...grant]),
    );
  }
});

test("lock-delay: a grant of the one place that is closed", () => {
  const story = new Story();
  const c1 = story.client("c1");
  c1.acquire(["s"], { mode: "slot", slots: 3, lockDelayMs: 5_000 });
  story.advance(20);
  c1.crash();
  story.advance(12_000);
  story.client("c2").acquire(["s"], { mode: "slot", slots: 3 });
  const history = ended(story);
  const index = indexOf(history, "acquire", () => true, 1);
  const session = sessionOf(story.client("c2"));
  const saying = (slot: number) =>
    sayOf(history, index, () => granted(session, 1, [{ name: "s", token: index, slot }]));
  assertRejected("lock-delay", saying(0));
  // There is no such place: that breaks no promise of its own.
  assertRejected("replay", saying(3));
});

test("what comes after a misdeed rests on it, and isn't judged", () => {
  const { story, c1, c2, first } = heldAndWaiting();
  c1.release(first);
  story.advance(20);
  c1.acquire(["z"]);
  const history = ended(story);
  const release = indexOf(history, "release");
  const later = indexOf(history, "acquire", ({ names }) => names.includes("z"));
  const lie = sayOf(
    sayOf(history, release, (effects) => silent(effects, sessionOf(c2), 1)),
    later,
    () => [],
  );
  const { violations, counts } = assertRejected("lost-wakeup", lie);
  assert.equal(violations.length, 1);
  assert.ok(counts.excluded["told-committed"] > 0 && counts.judged.replay === release - 1);
});
