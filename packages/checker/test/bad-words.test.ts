/** Words to clients that the log doesn't bear out, tokens out of order, guards that fail: each rejected for its own reason. */
import assert from "node:assert/strict";
import test from "node:test";
import type { HistoryEvent } from "../src/index.js";
import { change, eventAt, find, insert, move, without } from "./edits.js";
import { alone, ended, heldAndWaiting, passedOn, sessionOf, tokenOf } from "./scenes.js";
import { assertAccepted, assertRejected } from "./verdicts.js";

/** Where the search, which has its own opinion, says the same. */
const withoutSearch = { stepsMax: 0 };

test("told-committed: a token is told before its entry is committed", () => {
  const history = ended(heldAndWaiting().story);
  const told = find(history, "told", ({ outcome }) => outcome.kind === "granted");
  const committed = find(
    history,
    "committed",
    ({ entry }) => entry.kind === "command" && entry.command.kind === "acquire",
  );
  assertRejected("told-committed", move(history, told, committed));
});

test("told-committed: another token than was granted", () => {
  const history = ended(heldAndWaiting().story);
  const told = find(history, "told", ({ outcome }) => outcome.kind === "granted");
  const outcome = { kind: "granted", grants: alone("a", 99), maxHoldMs: 0 } as const;
  assertRejected(
    "told-committed",
    change(history, "told", told, () => ({ outcome })),
  );
});

test("told-committed: another client's grant", () => {
  const history = ended(heldAndWaiting().story);
  const told = find(history, "told", ({ outcome }) => outcome.kind === "granted");
  assertRejected(
    "told-committed",
    change(history, "told", told, () => ({ client: "c2" })),
  );
});

test("told-committed: an acquire returns with a token that nobody granted", () => {
  const history = ended(heldAndWaiting().story);
  const position = find(history, "return", ({ result }) => result.kind === "acquired");
  const { result } = eventAt(history, "return", position);
  assert.ok(result.kind === "acquired");
  const lie = change(history, "return", position, () => ({ result: { ...result, grants: alone("a", 99) } }));
  assertRejected("told-committed", lie);
  const anonymous = { ...result, grants: alone("a", 99), session: null, request: null };
  assertRejected(
    "told-committed",
    change(history, "return", position, () => ({ result: anonymous })),
  );
});

test("told-committed: an acquire returns with another client's grant", () => {
  const { story, c1, first } = heldAndWaiting();
  c1.release(first);
  const history = ended(story);
  const position = find(history, "return", ({ result }) => result.kind === "acquired", 1);
  const { call } = eventAt(history, "return", position);
  const lie = change(
    history,
    "call",
    find(history, "call", (event) => event.call === call),
    () => ({ client: "c9" }),
  );
  assertRejected("told-committed", lie);
});

test("acknowledged-lasts: a release is confirmed that isn't in the log", () => {
  const { story, c1, first } = heldAndWaiting();
  const history = ended(story);
  const session = sessionOf(c1);
  const at = story.world.now;
  const end = find(history, "final");
  const lie = insert(
    history,
    end,
    { at, kind: "call", client: "c1", call: 90, op: { kind: "release", of: first.call } },
    { at, kind: "return", call: 90, result: { kind: "released", how: "released" } },
  );
  // The search finds it as well, when somebody looks: nobody does here.
  assertRejected("acknowledged-lasts", lie);
  const told = { at, kind: "told", client: "c1", session, request: 2, outcome: { kind: "released" } } as const;
  assertRejected("acknowledged-lasts", insert(history, end, told));
});

test("acknowledged-lasts: a release is confirmed of a hold that has expired", () => {
  const { story, c1, first } = passedOn();
  const history = ended(story);
  const lost = find(history, "crashed");
  const { at } = history.events[lost] ?? { at: 0 };
  const lie = insert(history, lost, {
    at,
    kind: "call",
    client: c1.name,
    call: 90,
    op: { kind: "release", of: first.call },
  });
  const end: HistoryEvent = {
    at: story.world.now,
    kind: "return",
    call: 90,
    result: { kind: "released", how: "released" },
  };
  assertRejected("acknowledged-lasts", insert(lie, lie.events.length, end), withoutSearch);
});

test("acknowledged-lasts: a cancel is confirmed before it is committed", () => {
  const { story, c2, second } = heldAndWaiting();
  c2.giveUp(second);
  const history = ended(story);
  const told = find(history, "told", ({ outcome }) => outcome.kind === "cancelled");
  const committed = find(
    history,
    "committed",
    ({ entry }) => entry.kind === "command" && entry.command.kind === "cancel",
  );
  const moved = move(history, told, committed);
  const other = find(moved, "told", ({ outcome }) => outcome.kind === "cancelled", 1);
  assertRejected("acknowledged-lasts", without(moved, other));
});

test("acknowledged-lasts: a session is told that isn't in the log", () => {
  const history = ended(heldAndWaiting().story);
  const opened = find(history, "sessionOpened");
  assertRejected(
    "acknowledged-lasts",
    change(history, "sessionOpened", opened, () => ({ key: "another" })),
  );
  assertRejected(
    "acknowledged-lasts",
    change(history, "sessionOpened", opened, () => ({ ttlMs: 20_000 })),
  );
});

test("acknowledged-lasts: a dead session may be told to be over", () => {
  const history = ended(passedOn().story);
  const { session } = eventAt(history, "sessionOpened", find(history, "sessionOpened"));
  const end = find(history, "final");
  const { at } = eventAt(history, "final", end);
  const truth = { at, kind: "sessionEnded", client: "c1", session, reason: "expired", by: "cluster" } as const;
  assertAccepted(insert(history, end, truth));
  assertRejected("acknowledged-lasts", insert(history, end, { ...truth, session: 99 }));
});

test("acknowledged-lasts: a living session is told to be over", () => {
  const { story, c1 } = heldAndWaiting();
  const history = ended(story);
  const at = story.world.now;
  const session = sessionOf(c1);
  const lie = { at, kind: "sessionEnded", client: "c1", session, reason: "expired", by: "cluster" } as const;
  assertRejected("acknowledged-lasts", insert(history, find(history, "final"), lie));
});

test("acknowledged-lasts: a force is confirmed that changed nothing", () => {
  const { story, first } = heldAndWaiting();
  const other = story.client("c3").acquire(["b"]);
  story.advance(20);
  story.force("admin", "a", tokenOf(first));
  const history = ended(story);
  const claims = [
    { name: "b", token: tokenOf(other) },
    { name: "b", token: tokenOf(first) },
    { name: "a", token: tokenOf(other) },
  ];
  for (const claim of claims) {
    const common = { at: story.world.now, call: 90 };
    const call = { ...common, kind: "call", client: "admin", op: { kind: "forceRelease", ...claim } } as const;
    const end = { ...common, kind: "return", result: { kind: "forced", ended: 1 } } as const;
    assertRejected("acknowledged-lasts", insert(history, history.events.length, call, end), withoutSearch);
  }
});

test("told-committed: an acquire returns with another grant of its own client", () => {
  const { story, c1 } = heldAndWaiting();
  c1.acquire(["b"]);
  const history = ended(story);
  const position = find(history, "return", ({ result }) => result.kind === "acquired", 1);
  const { result } = eventAt(history, "return", position);
  assert.ok(result.kind === "acquired" && result.request === 2);
  assertRejected(
    "told-committed",
    change(history, "return", position, () => ({ result: { ...result, request: 1 } })),
    withoutSearch,
  );
});

test("one-effect: two answers to one request", () => {
  const { story, c1, c2, first, second } = heldAndWaiting();
  c2.giveUp(second);
  story.advance(20);
  c1.release(first);
  const history = ended(story);
  const released = find(history, "told", ({ outcome }) => outcome.kind === "released");
  const { at, client, session, request } = eventAt(history, "told", released);
  const again = { at, kind: "told", client, session, request, outcome: { kind: "notHeld" } } as const;
  assertRejected("one-effect", insert(history, released + 1, again));
});
