/** Tokens out of order, guards that fail, and what no order of operations explains: each rejected for its own reason. */
import assert from "node:assert/strict";
import test from "node:test";
import type { HistoryEvent } from "../src/index.js";
import { change, eventAt, find, insert, without } from "./edits.js";
import { acquire, acquired, ended, heldAndWaiting, ofClients, passedOn, release, released, tokenOf } from "./scenes.js";
import { Story } from "./service/story.js";
import { assertAccepted, assertRejected } from "./verdicts.js";

/** Where the search, which has its own opinion, says the same. */
const withoutSearch = { stepsMax: 0 };

test("token-order: a later grant of another lock bears a smaller token", () => {
  const lie = ofClients(acquire(1, "c1", "a"), acquired(1, "a", 20), acquire(2, "c2", "b"), acquired(2, "b", 10));
  assertRejected("token-order", lie);
  const equal = ofClients(acquire(1, "c1", "a"), acquired(1, "a", 10), acquire(2, "c2", "b"), acquired(2, "b", 10));
  assertRejected("token-order", equal);
});

test("token-order: a reader and a writer bear one token", () => {
  const reader = acquire(2, "c2", "a", { shared: true });
  const lie = ofClients(acquire(1, "c1", "a"), reader, acquired(1, "a", 10), release(3, "c1", 1), acquired(2, "a", 10));
  assertRejected("token-order", lie, withoutSearch);
});

test("token-order: two exclusive holds bear one token", () => {
  const lie = ofClients(
    acquire(1, "c1", "a"),
    acquire(2, "c2", "a"),
    acquired(1, "a", 10),
    release(3, "c1", 1),
    acquired(2, "a", 10),
  );
  assertRejected("token-order", lie, withoutSearch);
});

test("token-order: a reader bears a token that a former generation had", () => {
  const lie = ofClients(
    acquire(1, "c1", "a"),
    acquired(1, "a", 20),
    release(2, "c1", 1),
    acquire(3, "c2", "a", { shared: true }),
    acquired(3, "a", 10),
  );
  assertRejected("token-order", lie, withoutSearch);
});

test("token-order: a reader who began a generation bears a token older than an answer before it", () => {
  const story = new Story();
  story.client("c1").acquire(["r"], { mode: "shared" });
  story.advance(20);
  story.client("c2").acquire(["b"]);
  const history = ended(story);
  const last = history.events.length;
  const called = find(history, "call");
  const answered = find(history, "return");
  const { at } = history.events.at(-1) ?? { at: 0 };
  const late = [called, answered].map((position) => ({ ...history.events[position], at }) as HistoryEvent);
  const lie = without(insert(history, last, ...late), called, answered);
  assertRejected("token-order", lie);
  // Without a log it may have joined one.
  const events = lie.events.filter(({ kind }) => !["committed", "applied", "final", "told"].includes(kind));
  assertAccepted({ ...lie, events });
});

test("token-order: readers of one generation share a token that was answered before", () => {
  assertAccepted(
    ofClients(
      acquire(1, "c1", "a", { shared: true }),
      acquired(1, "a", 10),
      acquire(2, "c1", "b"),
      acquired(2, "b", 20),
      acquire(3, "c2", "a", { shared: true }),
      acquired(3, "a", 10),
    ),
  );
});

test("guard: an older token is accepted", () => {
  const { story, first, second } = passedOn();
  story.write("c2", "a", null, tokenOf(second));
  story.write("c1", "a", null, tokenOf(first));
  const history = ended(story);
  const late = find(history, "guardWrite", ({ client }) => client === "c1");
  assert.equal(eventAt(history, "guardWrite", late).accepted, false);
  assertRejected(
    "guard",
    change(history, "guardWrite", late, () => ({ accepted: true })),
  );
});

test("guard: the newest token is refused", () => {
  const { story, first } = heldAndWaiting();
  story.write("c1", "a", null, tokenOf(first));
  const history = ended(story);
  assertRejected(
    "guard",
    change(history, "guardWrite", find(history, "guardWrite"), () => ({ accepted: false })),
  );
});

test("guard: a write bears a token that was never granted to its writer", () => {
  const { story, first } = heldAndWaiting();
  story.write("c1", "a", null, tokenOf(first));
  const history = ended(story);
  const write = find(history, "guardWrite");
  assertRejected(
    "guard",
    change(history, "guardWrite", write, () => ({ client: "c2" })),
  );
  assertRejected(
    "guard",
    change(history, "guardWrite", write, () => ({ token: 99 })),
  );
});

test("guard: without a log, what its writer acquired counts", () => {
  const write = (client: string, token: number, accepted: boolean | null) =>
    ({ kind: "guardWrite", client, resource: "row", name: "a", slot: null, token, accepted }) as const;
  const begin = [acquire(1, "c1", "a"), acquired(1, "a", 10), release(2, "c1", 1), released(2)];
  const next = [acquire(3, "c2", "a"), acquired(3, "a", 20)];
  assertAccepted(ofClients(...begin, write("c1", 10, true), ...next, write("c2", 20, true), write("c1", 10, false)));
  assertRejected("guard", ofClients(...begin, ...next, write("c1", 20, true)));
  assertRejected("guard", ofClients(...begin, write("c2", 20, true), ...next));
  // Equal is not older.
  assertRejected("guard", ofClients(...begin, write("c1", 10, true), write("c1", 10, false)));
  // Of the write of token 20 nobody knows: it may have been the reason, or not have happened.
  assertAccepted(ofClients(...begin, ...next, write("c2", 20, null), write("c1", 10, false)));
  assertAccepted(ofClients(...begin, ...next, write("c2", 20, null), write("c1", 10, true)));
});

test("linearizability: a read sees a holder who has released", () => {
  const read = { kind: "call", client: "c3", call: 3, op: { kind: "inspect", name: "a" } } as const;
  const seen = (...tokens: readonly number[]) => {
    const holders = tokens.map((token) => ({ token, slot: null }));
    return { kind: "return", call: 3, result: { kind: "inspected", holders } } as const;
  };
  const held = [acquire(1, "c1", "a"), acquired(1, "a", 10)];
  const over = [release(2, "c1", 1), released(2)];
  assertAccepted(ofClients(...held, read, ...over, seen(10)));
  assertAccepted(ofClients(...held, read, ...over, seen()));
  assertRejected("linearizability", ofClients(...held, ...over, read, seen(10)));
});

test("linearizability: a read sees a holder that nobody knows", () => {
  const { story, first } = heldAndWaiting();
  story.client("c3").inspect("a");
  const history = ended(story);
  const position = find(history, "return", ({ result }) => result.kind === "inspected");
  const saying = (token: number) => {
    const result = { kind: "inspected", holders: [{ token, slot: null }] } as const;
    return change(history, "return", position, () => ({ result }));
  };
  assertAccepted(saying(tokenOf(first)));
  assertRejected("linearizability", saying(tokenOf(first) + 1));
});

test("linearizability: a free lock is refused", () => {
  const session = (client: string, id: number) =>
    ({ kind: "sessionOpened", client, session: id, key: client, ttlMs: 10_000 }) as const;
  const refused = { kind: "return", call: 3, result: { kind: "refused", code: "lock_held" } } as const;
  const begin = [session("c1", 1), session("c2", 2), acquire(1, "c1", "a"), acquired(1, "a", 10)];
  const attempt = acquire(3, "c2", "a", { wait: false });
  const over = [release(2, "c1", 1), released(2)];
  assertAccepted(ofClients(...begin, attempt, ...over, refused));
  assertAccepted(ofClients(...begin, attempt, refused, ...over));
  assertRejected("linearizability", ofClients(...begin, ...over, attempt, refused));
  // Somebody who waits stands in the way too.
  assertAccepted(ofClients(...begin, ...over, acquire(4, "c1", "a"), attempt, acquired(4, "a", 20), refused));
  const waiting = ofClients(
    ...begin,
    ...over,
    acquire(4, "c1", "a"),
    acquired(4, "a", 20),
    release(5, "c1", 4),
    released(5),
  );
  const late = [attempt, refused].map((fact, at) => ({ at: waiting.events.length + at, ...fact }));
  assertRejected("linearizability", { ...waiting, events: [...waiting.events, ...late] });
});

test("linearizability: two releases of holds that can't both have been there", () => {
  const lie = ofClients(
    acquire(1, "c1", "a"),
    acquire(2, "c2", "a"),
    acquired(1, "a", 10),
    release(3, "c1", 1),
    acquired(2, "a", 20),
    release(4, "c2", 2),
    released(4),
    released(3),
  );
  // Who holds without a known session may have expired at any time, but not before its own confirmed release.
  assertAccepted(lie);
  const read = { kind: "call", client: "c3", call: 5, op: { kind: "inspect", name: "a" } } as const;
  const holders = [{ token: 10, slot: null }];
  const seen = { kind: "return", call: 5, result: { kind: "inspected", holders } } as const;
  const { events, ...header } = lie;
  const last = events.at(-1)?.at ?? 0;
  const late = events.slice(0, 5);
  assertRejected("linearizability", {
    ...header,
    events: [
      ...late,
      { at: last, ...read },
      { at: last, ...seen },
      ...events.slice(5).map((event) => ({ ...event, at: last })),
    ],
  });
});

test("linearizability-unknown: a search that is cut short fails the run", () => {
  const history = ended(passedOn().story);
  assertRejected("linearizability-unknown", history, { stepsMax: 1 });
});
