/** Machines that grant the wrong request, or none: each history is true but for one lie, and is rejected for that. */
import test from "node:test";
import { granted, indexOf, sayOf, silent } from "./edits.js";
import { alone, ended, heldAndWaiting, sessionOf, tokenOf } from "./scenes.js";
import { Story } from "./service/story.js";
import { assertRejected } from "./verdicts.js";

test("exclusion: a second exclusive holder", () => {
  const { story, c2 } = heldAndWaiting();
  const session = sessionOf(c2);
  const history = ended(story);
  const index = indexOf(history, "acquire", (command) => command.session === session);
  assertRejected(
    "exclusion",
    sayOf(history, index, () => granted(session, 1, alone("a", index))),
  );
});

test("exclusion: a reader beside a writer", () => {
  const story = new Story();
  story.client("c1").acquire(["a"]);
  story.advance(20);
  const reader = story.client("c2");
  reader.acquire(["a"], { mode: "shared" });
  const history = ended(story);
  const session = sessionOf(reader);
  const index = indexOf(history, "acquire", (command) => command.session === session);
  assertRejected(
    "exclusion",
    sayOf(history, index, () => granted(session, 1, alone("a", index))),
  );
});

test("exclusion: one place of a semaphore twice", () => {
  const story = new Story();
  story.client("c1").acquire(["s"], { mode: "slot", slots: 2 });
  story.advance(20);
  story.client("c2").acquire(["s"], { mode: "slot", slots: 2 });
  const history = ended(story);
  const index = indexOf(history, "acquire", () => true, 1);
  const session = sessionOf(story.client("c2"));
  assertRejected(
    "exclusion",
    sayOf(history, index, () => granted(session, 1, [{ name: "s", token: index, slot: 0 }])),
  );
});

test("exclusion: a place of a full semaphore", () => {
  const story = new Story();
  story.client("c1").acquire(["s"], { mode: "slot", slots: 1 });
  story.advance(20);
  story.client("c2").acquire(["s"], { mode: "slot", slots: 1 });
  const history = ended(story);
  const index = indexOf(history, "acquire", () => true, 1);
  const session = sessionOf(story.client("c2"));
  assertRejected(
    "exclusion",
    sayOf(history, index, () => granted(session, 1, [{ name: "s", token: index, slot: 0 }])),
  );
});

test("exclusion: a holder whose session is dead", () => {
  const { story, c1, first } = heldAndWaiting();
  const session = sessionOf(c1);
  c1.release(first);
  story.advance(20);
  c1.cut();
  story.advance(12_000);
  const command = { kind: "acquire", session, request: 3, settled: 3, seen: [], names: ["z"], wait: true } as const;
  story.service.commit({
    kind: "command",
    command: { ...command, mode: "exclusive", slots: 0, lockDelayMs: 0, maxHoldMs: 0 },
  });
  const history = ended(story);
  const index = indexOf(history, "acquire", ({ names }) => names.includes("z"));
  assertRejected(
    "exclusion",
    sayOf(history, index, () => granted(session, 3, alone("z", index))),
  );
});

test("lost-wakeup: a waiter is forgotten", () => {
  const { story, c1, c2, first } = heldAndWaiting();
  c1.release(first);
  story.advance(1);
  const session = sessionOf(c2);
  const history = ended(story);
  const index = indexOf(history, "release");
  assertRejected(
    "lost-wakeup",
    sayOf(history, index, (effects) => silent(effects, session, 1)),
  );
});

test("fifo: a later waiter is granted first", () => {
  const { story, c1, c2, first } = heldAndWaiting();
  const c3 = story.client("c3");
  c3.acquire(["a"]);
  story.advance(20);
  c1.release(first);
  const history = ended(story);
  const index = indexOf(history, "release");
  const lie = sayOf(history, index, (effects) => [
    ...silent(effects, sessionOf(c2), 1),
    ...granted(sessionOf(c3), 1, alone("a", index)),
  ]);
  assertRejected("fifo", lie);
});

test("fifo: a reader passes a waiting writer", () => {
  const story = new Story();
  const [c1, c2, c3] = [story.client("c1"), story.client("c2"), story.client("c3")];
  const first = c1.acquire(["a"], { mode: "shared" });
  story.advance(20);
  c2.acquire(["a"]);
  story.advance(20);
  c3.acquire(["a"], { mode: "shared" });
  const history = ended(story);
  const session = sessionOf(c3);
  const index = indexOf(history, "acquire", (command) => command.session === session);
  const token = tokenOf(first);
  assertRejected(
    "fifo",
    sayOf(history, index, () => granted(session, 1, alone("a", token))),
  );
});

test("fifo: a waiter that was cancelled is granted", () => {
  const { story, c1, c2, first, second } = heldAndWaiting();
  c2.giveUp(second);
  story.advance(20);
  c1.release(first);
  const history = ended(story);
  const index = indexOf(history, "release");
  const lie = sayOf(history, index, (effects) => [...effects, ...granted(sessionOf(c2), 1, alone("a", index))]);
  assertRejected("fifo", lie);
});

test("fifo: a waiter whose session is dead is granted", () => {
  const { story, c1, c2, first } = heldAndWaiting();
  const session = sessionOf(c2);
  c2.crash();
  story.advance(12_000);
  c1.release(first);
  const history = ended(story);
  const index = indexOf(history, "release");
  assertRejected(
    "fifo",
    sayOf(history, index, (effects) => [...effects, ...granted(session, 1, alone("a", index))]),
  );
});

test("fifo: a reader who waits behind a writer is granted by an entry that has nothing to do with it", () => {
  const story = new Story();
  const [c1, c2, c3] = [story.client("c1"), story.client("c2"), story.client("c3")];
  const first = c1.acquire(["a"], { mode: "shared" });
  story.advance(20);
  c2.acquire(["a"]);
  story.advance(20);
  c3.acquire(["a"], { mode: "shared" });
  story.advance(20);
  c1.acquire(["z"]);
  const history = ended(story);
  const index = indexOf(history, "acquire", ({ names }) => names.includes("z"));
  const grant = granted(sessionOf(c3), 1, alone("a", tokenOf(first)));
  assertRejected(
    "fifo",
    sayOf(history, index, (effects) => [...effects, ...grant]),
  );
});

test("fifo: of two names one has a queue", () => {
  const story = new Story();
  const [c1, c2, c3] = [story.client("c1"), story.client("c2"), story.client("c3")];
  const first = c1.acquire(["b"], { mode: "shared" });
  story.advance(20);
  c2.acquire(["b"]);
  story.advance(20);
  c3.acquire(["a", "b"], { mode: "shared" });
  const history = ended(story);
  const index = indexOf(history, "acquire", ({ names }) => names.includes("a"));
  const grant = granted(sessionOf(c3), 1, [...alone("a", index), ...alone("b", tokenOf(first))]);
  assertRejected(
    "fifo",
    sayOf(history, index, () => grant),
  );
});
