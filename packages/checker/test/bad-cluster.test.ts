/** Nodes that disagree, clocks that run out too early or too late, libraries that believe too long, and lists that are no histories. */
import assert from "node:assert/strict";
import test from "node:test";
import type { HistoryEvent } from "../src/index.js";
import { change, eventAt, find, indexOf, insert, isOf, shift, without } from "./edits.js";
import {
  acquire,
  acquired,
  ended,
  heldAndWaiting,
  ofClients,
  passedOn,
  release,
  sessionOf,
  tokenOf,
} from "./scenes.js";
import { Story } from "./service/story.js";
import { assertAccepted, assertRejected } from "./verdicts.js";

test("agreement: a node applies another entry than was committed", () => {
  const history = ended(heldAndWaiting().story);
  const position = find(history, "applied", ({ node, index }) => node === "n2" && index === 3);
  assertRejected(
    "agreement",
    change(history, "applied", position, () => ({ hash: "other" })),
  );
});

test("agreement: a node passes over an entry, or applies one twice", () => {
  const history = ended(heldAndWaiting().story);
  const position = find(history, "applied", ({ node, index }) => node === "n2" && index === 3);
  assertRejected("agreement", without(history, position));
  assertRejected("agreement", insert(history, position, eventAt(history, "applied", position)));
});

test("agreement: equal logs, other states", () => {
  const history = ended(heldAndWaiting().story);
  const position = find(history, "applied", ({ node, index }) => node === "n3" && index === 3);
  assertRejected(
    "agreement",
    change(history, "applied", position, () => ({ stateHash: "other" })),
  );
});

test("agreement: a snapshot with another state", () => {
  const { story } = heldAndWaiting();
  const other = story.client("c3");
  other.acquire(["b"]);
  story.world.advance(20);
  story.service.install();
  const history = ended(story);
  const position = find(history, "installed");
  assertRejected(
    "agreement",
    change(history, "installed", position, () => ({ stateHash: "other" })),
  );
});

test("agreement: a node goes back to an older snapshot", () => {
  const history = ended(heldAndWaiting().story);
  const { at } = eventAt(history, "final", find(history, "final"));
  const lie = { at, kind: "installed", node: "n2", index: 3, stateHash: null } as const;
  assertRejected("agreement", insert(history, find(history, "final"), lie));
});

test("agreement: two machines say different things", () => {
  const history = ended(heldAndWaiting().story);
  const position = find(history, "applied", ({ node, effects }) => node === "n2" && effects !== null);
  assertRejected(
    "agreement",
    change(history, "applied", position, () => ({ effects: [] })),
  );
});

test("agreement: terms fall in the log", () => {
  const { story } = heldAndWaiting();
  story.service.elect(1);
  const history = ended(story);
  const last = find(history, "committed", () => true, -1);
  assertRejected(
    "agreement",
    change(history, "committed", last, () => ({ term: 0 })),
  );
});

test("election-safety: two leaders of one term", () => {
  const history = ended(heldAndWaiting().story);
  const leader = find(history, "leader");
  const { at, term } = eventAt(history, "leader", leader);
  assertRejected("election-safety", insert(history, leader + 1, { at, kind: "leader", node: "n3", term }));
});

test("convergence: nodes end with different states, or behind, or with different configurations", () => {
  const history = ended(heldAndWaiting().story);
  const final = find(history, "final", ({ node }) => node === "n2");
  assertRejected(
    "convergence",
    change(history, "final", final, () => ({ stateHash: "other" })),
  );
  assertRejected(
    "convergence",
    change(history, "final", final, ({ lastApplied }) => ({ lastApplied: lastApplied - 1 })),
  );
  assertRejected(
    "convergence",
    change(history, "final", final, ({ commitIndex }) => ({ commitIndex: commitIndex + 1 })),
  );
  assertRejected(
    "convergence",
    change(history, "final", final, () => ({ configuration: "other" })),
  );
});

test("early-expiry: the entry comes before the TTL has passed", () => {
  const story = new Story();
  const c1 = story.client("c1");
  c1.acquire(["a"]);
  story.advance(4_000);
  const session = sessionOf(c1);
  c1.cut();
  story.service.commit({ kind: "command", command: { kind: "suspectSessions", ids: [session], eighths: 8 } }, 1);
  story.advance(5_000);
  story.service.commit({ kind: "command", command: { kind: "expireSessions", ids: [session] } }, 1);
  const early = story.end();
  const { violations } = assertRejected("early-expiry", early);
  assert.match(violations[0]?.message ?? "", /keepalive 2 was acknowledged/);
  // Clocks that run faster than the bound do that: nothing was promised.
  const fast: HistoryEvent = { at: 0, kind: "clockRate", process: "n1", rate: 2 };
  assert.equal(assertAccepted(insert(early, 0, fast)).counts.excluded["early-expiry"], 1);
  // The clock of a node that never led is no excuse.
  assertRejected("early-expiry", insert(early, 0, { ...fast, process: "n2" }));
});

test("early-expiry: a session that was opened just now", () => {
  const story = new Story();
  const c1 = story.client("c1");
  c1.acquire(["a"]);
  c1.cut();
  c1.isCut = false;
  story.advance(6);
  c1.cut();
  const session = indexOf(story.world.history(), "openSession");
  story.service.commit({ kind: "command", command: { kind: "suspectSessions", ids: [session], eighths: 8 } }, 1);
  story.service.commit({ kind: "command", command: { kind: "expireSessions", ids: [session] } }, 1);
  const { violations } = assertRejected("early-expiry", story.end());
  assert.match(violations[0]?.message ?? "", /was opened/);
});

test("early-expiry: a keepalive is acknowledged, and its session is over already", () => {
  const { story } = passedOn();
  const history = ended(story);
  const index = indexOf(history, "expireSessions");
  const expired = find(history, "committed", (event) => event.index === index);
  const { at } = eventAt(history, "committed", expired);
  const { session } = eventAt(history, "sessionOpened", find(history, "sessionOpened"));
  const common = { at, session, number: 50 };
  const lie = insert(
    history,
    expired + 1,
    { ...common, kind: "keepaliveSent", client: "c1" },
    { ...common, kind: "keepaliveReceived", node: "n1", term: 1 },
    { ...common, kind: "keepaliveAcknowledged", node: "n1", term: 1 },
  );
  assertRejected("early-expiry", lie, { stepsMax: 0 });
});

test("early-end: a lock-delay is cut short", () => {
  const story = new Story();
  const c1 = story.client("c1");
  const first = c1.acquire(["a"]);
  story.advance(20);
  c1.release(first, 4_000);
  story.advance(1_000);
  const name = "a";
  const index = indexOf(story.world.history(), "release");
  story.service.commit({ kind: "command", command: { kind: "endLockDelay", name, index } }, 1);
  story.advance(10_000);
  const early = story.end();
  assertRejected("early-end", early);
  const fast: HistoryEvent = { at: 0, kind: "clockRate", process: "n1", rate: 2 };
  assert.equal(assertAccepted(insert(early, 0, fast)).counts.excluded["early-end"], 1);
});

test("early-end: a maxHold is cut short, or was never asked for", () => {
  for (const maxHoldMs of [6_000, 0]) {
    const story = new Story();
    const c1 = story.client("c1");
    const first = c1.acquire(["a"], { maxHoldMs });
    story.advance(1_000);
    const session = sessionOf(c1);
    const token = tokenOf(first);
    story.service.commit({ kind: "command", command: { kind: "endHold", session, of: first.request, token } }, 1);
    story.advance(1_000);
    assertRejected("early-end", story.end());
  }
});

test("hold-overlap: a library calls its lock held after its lease has passed on", () => {
  const { story, c1 } = heldAndWaiting();
  c1.cut();
  story.advance(13_000);
  const history = ended(story);
  const lost = find(history, "state", ({ state }) => state === "lost");
  const session = find(history, "sessionEnded");
  const deadline = eventAt(history, "state", lost).at;
  // It says so 500 ms late: the other has it by then.
  const late = shift(history, 500, (event) => event === history.events[lost] || event === history.events[session]);
  assertRejected("hold-overlap", late);
  const lostLate = find(late, "state", ({ state }) => state === "lost");
  const sessionLate = find(late, "sessionEnded");
  // A stuck process tells late what was so in time.
  const withoutEnd = without(late, sessionLate);
  const told = change(withoutEnd, "state", lostLate - (sessionLate < lostLate ? 1 : 0), () => ({ since: deadline }));
  assertAccepted(told);
  // Of a paused one whose true deadline nobody computed, nothing is known.
  const paused = insert(late, 0, { at: 0, kind: "paused", process: "c1" });
  assert.equal(assertAccepted(paused).counts.excluded["hold-overlap"], 1);
  // A client whose clock runs too slowly learns late.
  const slow: HistoryEvent = { at: 0, kind: "clockRate", process: "c1", rate: 0.9 };
  assert.equal(assertAccepted(insert(late, 0, slow)).counts.excluded["hold-overlap"], 1);
  assertRejected("hold-overlap", insert(late, 0, { ...slow, process: "c2" }));
});

test("hold-overlap: two libraries, two grants, no log", () => {
  const both = [acquire(1, "c1", "a"), acquired(1, "a", 10), acquire(2, "c2", "a"), acquired(2, "a", 20)];
  assertRejected("hold-overlap", ofClients(...both, release(3, "c1", 1)));
  const lost = { kind: "state", call: 1, state: "lost", reason: "expired", since: null } as const;
  const [first, second, third, fourth] = both;
  assert.ok(first && second && third && fourth);
  assertAccepted(ofClients(first, second, third, lost, fourth));
  // Whoever is forced out learns by message only.
  const force = { kind: "call", client: "admin", call: 9, op: { kind: "forceRelease", name: "a", token: 10 } } as const;
  const forced = { kind: "return", call: 9, result: { kind: "forced", ended: 1 } } as const;
  assertAccepted(ofClients(first, second, third, force, forced, fourth, lost));
});

test("split-brain-keepalive: a deposed leader acknowledges what was sent under its successor", () => {
  const { story, c1 } = heldAndWaiting();
  story.service.elect(1);
  story.advance(5_000);
  const history = ended(story);
  const session = sessionOf(c1);
  const sent = find(history, "keepaliveSent", (event) => event.session === session, -1);
  const { number } = eventAt(history, "keepaliveSent", sent);
  const received = find(history, "keepaliveReceived", (event) => event.session === session && event.number === number);
  const acknowledged = find(
    history,
    "keepaliveAcknowledged",
    (event) => event.session === session && event.number === number,
  );
  const old = { node: "n1", term: 1 };
  const lie = change(
    change(history, "keepaliveReceived", received, () => old),
    "keepaliveAcknowledged",
    acknowledged,
    () => old,
  );
  assertRejected("split-brain-keepalive", lie);
});

test("split-brain-keepalive: a leader acknowledges what it has not read", () => {
  const history = ended(heldAndWaiting().story);
  const received = find(history, "keepaliveReceived");
  assertRejected("split-brain-keepalive", without(history, received));
});

test("dead-holder: a silent session holds on", () => {
  const story = new Story();
  const c1 = story.client("c1");
  c1.acquire(["a"]);
  story.advance(20);
  c1.crash();
  story.advance(30_000);
  const history = ended(story);
  // As if nobody had counted: the log ends where the session began to be suspected.
  const first = indexOf(history, "suspectSessions");
  const lie = {
    ...history,
    events: history.events.filter(
      (event) =>
        !((isOf(event, "committed") || isOf(event, "applied")) && event.index >= first) && !isOf(event, "final"),
    ),
  };
  const { counts } = assertAccepted(history);
  assert.equal(counts.judged["dead-holder"], 1);
  const end: HistoryEvent = { at: story.world.now, kind: "fault", fault: "none" };
  assertRejected("dead-holder", insert(lie, lie.events.length, end));
  const spared: readonly HistoryEvent[] = [
    // Without a majority nothing is promised, and the time before it came back doesn't count.
    { at: 10_000, kind: "quorum", up: false },
    { at: 15_000, kind: "quorum", up: true },
  ];
  const all = [...lie.events, ...spared, end].sort((a, b) => a.at - b.at);
  assertAccepted({ ...lie, events: all });
});

test("well-formed: what no producer may write", () => {
  const story = new Story();
  const c1 = story.client("c1");
  const first = c1.acquire(["a"]);
  story.advance(20);
  c1.release(first);
  const history = ended(story);
  const at = story.world.now;
  const append = (...events: readonly HistoryEvent[]) => insert(history, history.events.length, ...events);
  const call = eventAt(history, "call", find(history, "call"));
  const bad = [
    append({ at: 1, kind: "fault", fault: "time falls" }).events,
    append({ at: Number.NaN, kind: "fault", fault: "no time" }).events,
    append({ ...call, at }).events,
    append({ at, kind: "return", call: 1, result: { kind: "gaveUp" } }).events,
    append({ at, kind: "return", call: 77, result: { kind: "gaveUp" } }).events,
    append({ at, kind: "call", client: "c1", call: 70, op: { kind: "release", of: 71 } }).events,
    append({ at, kind: "call", client: "c2", call: 70, op: { kind: "release", of: 1 } }).events,
    append({ at, kind: "call", client: "n1", call: 70, op: { kind: "close" } }).events,
    append({ at, kind: "openSent", client: "n1", key: "k" }).events,
    append({ at, kind: "state", call: 2, state: "lost", reason: null, since: null }).events,
    append({ at, kind: "state", call: 1, state: "lost", reason: null, since: at + 1 }).events,
    append({ at, kind: "applied", node: "n1", index: 99, hash: "h", stateHash: null, effects: null }).events,
    without(
      history,
      find(history, "committed", ({ index }) => index === 2),
    ).events,
    change(history, "return", find(history, "return"), () => ({ result: { kind: "closed" } })).events,
  ];
  for (const events of bad) assertRejected("well-formed", { ...history, events });
  assertAccepted({ ...history, events: history.events });
});
