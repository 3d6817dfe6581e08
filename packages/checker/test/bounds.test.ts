/** Bounds in time, to the millisecond; and what is outside of them. */
import assert from "node:assert/strict";
import test from "node:test";
import type { History } from "../src/index.js";
import { elected, keepalive, open, opened, rate, ttlMs } from "./one-session.js";
import type { Facts } from "./one-session.js";
import { acquire, acquired, acquireEntry, logged, release, timed } from "./scenes.js";
import type { Fact } from "./service/world.js";
import { assertAccepted, assertRejected } from "./verdicts.js";

const suspect = logged({ kind: "suspectSessions", ids: [1], eighths: 8 });
const expire = logged({ kind: "expireSessions", ids: [1] });

test("P4: a session lives for its TTL from the sending of its last acknowledged keepalive, less 1 % from its reading", () => {
  const at = (ms: number, sentAt: number, readAt: number, ...more: Facts): History =>
    timed([
      [0, elected],
      [1, open],
      ...keepalive(1, sentAt, readAt, readAt + 1),
      [6_000, suspect],
      [ms, expire],
      ...more,
    ]);
  // Read at 1,500: 9,900 ms from then. Sent at 1,000: 10,000 ms from then.
  assertRejected("early-expiry", at(11_399, 1_000, 1_500));
  assertAccepted(at(11_400, 1_000, 1_500));
  // Sent at 1,450: 11,450 comes later than 11,400.
  assertRejected("early-expiry", at(11_449, 1_450, 1_500));
  assertAccepted(at(11_450, 1_450, 1_500));
  // A leader may be fast by 1 %, and by no more.
  assertRejected("early-expiry", at(11_449, 1_450, 1_500, [0, rate("n1", 1.01)]));
  assert.equal(assertAccepted(at(11_449, 1_450, 1_500, [0, rate("n1", 1.011)])).counts.excluded["early-expiry"], 1);
  // It was fast before the keepalive only, or only afterwards.
  assertRejected("early-expiry", at(11_449, 1_450, 1_500, [0, rate("n1", 2)], [1_200, rate("n1", 1)]));
  assertRejected("early-expiry", at(11_449, 1_450, 1_500, [11_450, rate("n1", 2)]));
  assertAccepted(at(11_449, 1_450, 1_500, [5_000, rate("n1", 2)], [5_001, rate("n1", 1)]));
});

test("P4: while the leader's loop is stuck it hears nobody, and no session's time passes", () => {
  const stall: Fact = { kind: "stall", node: "n1", ms: 1_000 };
  const at = (ms: number, stalledAt: number, fact: Fact = stall, ...more: Facts): History =>
    timed([
      [0, elected],
      [1, open],
      ...keepalive(1, 1_450, 1_500, 1_501),
      [6_000, suspect],
      [ms, expire],
      ...more,
      [stalledAt, fact],
    ]);
  // 9,900 ms from the reading, and 990 less 2 for the stall.
  assertRejected("early-expiry", at(12_387, 3_000));
  assertAccepted(at(12_388, 3_000));
  // It had begun before the keepalive was read, ended after the session, or was another node's.
  assertAccepted(at(12_000, 2_400));
  assertAccepted(at(12_000, 12_001));
  assertAccepted(at(12_000, 3_000, { kind: "stall", node: "n2", ms: 1_000 }));
});

test("P4: only who led while it was counted is an excuse; and a keepalive counts from when who vouches for it has read it", () => {
  const number = { session: 1, number: 1 };
  const at = (ms: number, ...more: Facts): History =>
    timed([
      [0, elected],
      [1, open],
      [1_000, { kind: "keepaliveSent", client: "c1", ...number }],
      // The former leader reads it too, and has nothing to say.
      [1_100, { kind: "keepaliveReceived", node: "n1", term: 1, ...number }],
      [1_400, { kind: "leader", node: "n2", term: 2 }],
      [1_500, { kind: "keepaliveReceived", node: "n2", term: 2, ...number }],
      [1_600, { kind: "keepaliveAcknowledged", node: "n2", term: 2, ...number }],
      [6_000, suspect],
      [ms, expire],
      ...more,
    ]);
  assertRejected("early-expiry", at(11_399));
  assertAccepted(at(11_400));
  const fast: Facts = [[0, rate("n1", 2)]];
  assertAccepted(at(11_399, ...fast));
  for (const over of [
    { kind: "deposed", node: "n1", term: 1 },
    { kind: "crashed", process: "n1" },
    { kind: "started", node: "n1", index: 0 },
  ] as const) {
    assertRejected("early-expiry", at(11_399, ...fast, [1_450, over]));
    assertAccepted(at(11_399, ...fast, [1_550, over]));
    const other = over.kind === "crashed" ? { ...over, process: "n3" } : { ...over, node: "n3" };
    assertAccepted(at(11_399, ...fast, [1_450, other]));
  }
});

test("P4: without a keepalive it lives from its opening; an acknowledgement that nobody gave counts if it was told", () => {
  const alone = (ms: number): History =>
    timed([
      [0, elected],
      [100, open],
      [6_000, suspect],
      [ms, expire],
    ]);
  assertRejected("early-expiry", alone(9_999));
  assertAccepted(alone(10_000));
  const told = (ms: number): History => {
    const facts = keepalive(1, 1_000, 1_001, 1_002).filter(
      ([, { kind }]) => kind === "keepaliveSent" || kind === "keepaliveTold",
    );
    return timed([[0, elected], [100, open], ...facts, [6_000, suspect], [ms, expire]]);
  };
  assertRejected("early-expiry", told(10_999));
  assertAccepted(told(11_000));
});

test("maxHold and lock-delays: to 1 %, by a clock that may be fast by as much", () => {
  const hold = (ms: number, ...more: Facts): History => {
    const end = logged({ kind: "endHold", session: 1, of: 1, token: 2 });
    return timed([[0, elected], [1, open], [100, acquireEntry(1, 1, "a", 2_000)], [ms, end], ...more]);
  };
  assertRejected("early-end", hold(2_079));
  assertAccepted(hold(2_080));
  assertRejected("early-end", hold(2_079, [0, rate("n1", 1.01)]));
  assertAccepted(hold(2_079, [0, rate("n1", 1.011)]));
  const delay = (ms: number): History => {
    const give = { session: 1, request: 2, settled: 1, seen: [], of: 1, afterMs: 2_000 } as const;
    const end = logged({ kind: "endLockDelay", name: "a", index: 3 });
    return timed([
      [1, open],
      [50, acquireEntry(1, 1, "a")],
      [100, logged({ kind: "release", ...give })],
      [ms, end],
    ]);
  };
  assertRejected("early-end", delay(2_079));
  assertAccepted(delay(2_080));
});

/** c1 says "lost" at a time; c2 has the lock from 12,000 on. */
function overlap(lostAt: number, ...more: Facts): History {
  const lost: Fact = { kind: "state", call: 1, state: "lost", reason: "expired", since: null };
  const grant: Fact = {
    kind: "return",
    call: 1,
    result: { kind: "acquired", grants: [{ name: "a", token: 10, slot: null }], session: 1, request: 1 },
  };
  return timed([
    [0, elected],
    [1, { kind: "openSent", client: "c1", key: "k" }],
    [2, opened],
    [10, acquire(1, "c1", "a")],
    [20, grant],
    ...keepalive(1, 1_000, 1_001, 1_002),
    [30, acquire(2, "c2", "a")],
    [12_000, acquired(2, "a", 20)],
    [lostAt, lost],
    ...more,
  ]);
}

/** The search has its own opinion; here it is about libraries. */
const withoutSearch = { stepsMax: 0 };

test("P5: who loses a lock says so before, or when, another has it", () => {
  assertAccepted(overlap(12_000));
  assertRejected("hold-overlap", overlap(12_001));
  // A "held" before the return counts.
  const early: Fact = { kind: "state", call: 2, state: "held", reason: null, since: null };
  assertRejected("hold-overlap", overlap(11_999, [11_998, early]));
  assertAccepted(overlap(11_998, [11_998, early]));
  // So do the end of the session, as its client knows it, the client's closing, its release, and its death.
  const end: Fact = { kind: "sessionEnded", client: "c1", session: 1, reason: "expired", by: "client" };
  assertAccepted(overlap(12_500, [12_000, end]));
  assertRejected("hold-overlap", overlap(12_500, [12_001, end]));
  const close: Fact = { kind: "call", client: "c1", call: 9, op: { kind: "close" } };
  const isClosed: Fact = { kind: "return", call: 9, result: { kind: "closed" } };
  assertAccepted(overlap(12_500, [11_000, close], [11_900, isClosed]));
  assertRejected("hold-overlap", overlap(12_500, [11_000, close], [12_100, isClosed]));
  assertRejected("hold-overlap", overlap(12_500, [11_000, close]));
  assertAccepted(overlap(12_500, [11_999, release(9, "c1", 1)]));
  assertAccepted(overlap(12_500, [11_999, { kind: "crashed", process: "c1" }]));
  assertAccepted(overlap(12_500, [11_999, { kind: "state", call: 1, state: "released", reason: null, since: null }]));
  assertRejected(
    "hold-overlap",
    overlap(12_500, [11_999, { kind: "state", call: 1, state: "jeopardy", reason: null, since: null }]),
  );
  assertRejected("hold-overlap", overlap(12_500, [11_999, { kind: "crashed", process: "c2" }]), withoutSearch);
});

test("P5: readers exclude writers, not each other", () => {
  const both = (first: boolean, second: boolean): History =>
    timed([
      [1, acquire(1, "c1", "a", first ? { shared: true } : {})],
      [2, acquire(2, "c2", "a", second ? { shared: true } : {})],
      [3, acquired(1, "a", 10)],
      [4, acquired(2, "a", first && second ? 10 : 20)],
    ]);
  assertAccepted(both(true, true));
  assertRejected("hold-overlap", both(true, false));
  assertRejected("hold-overlap", both(false, true));
});

test("P5: clocks count from the last renewal that the client knows of", () => {
  // The client's clock is too slow by more than 1 % against the leader's, while it counts ...
  assertAccepted(overlap(12_500, [5_000, rate("c1", 0.98)]));
  assertAccepted(overlap(12_500, [5_000, rate("n1", 1.02)]));
  assertAccepted(overlap(12_500, [5_000, rate("n1", 1.006)], [5_000, rate("c1", 0.995)]));
  // ... or not while it counts: before the keepalive of 1,000, and from 12,000 on.
  assertRejected("hold-overlap", overlap(12_500, [0, rate("c1", 0.98)], [999, rate("c1", 1)]));
  assertRejected("hold-overlap", overlap(12_500, [12_001, rate("c1", 0.98)]));
  // Of two renewals the newer counts, if it was told by then.
  const slowBetween: Facts = [
    [1_500, rate("c1", 0.98)],
    [1_999, rate("c1", 1)],
  ];
  assertAccepted(overlap(12_500, ...slowBetween));
  assertRejected("hold-overlap", overlap(12_500, ...slowBetween, ...keepalive(2, 2_000, 2_001, 2_002)));
  assertAccepted(overlap(12_500, ...slowBetween, ...keepalive(2, 2_000, 2_001, 12_001)));
  // Within the bound, or in the harmless direction.
  assertRejected("hold-overlap", overlap(12_500, [0, rate("c1", 1)], [0, rate("n1", 1.01)]));
  assertRejected("hold-overlap", overlap(12_500, [0, rate("c1", 1.5)], [0, rate("n1", 0.9)]));
  // Without a keepalive it counts from the first sending of its openSession, else from the beginning of all.
  const history = overlap(12_500, [0, rate("c1", 0.98)], [0.5, rate("c1", 1)]);
  const without = (...kinds: readonly string[]): History => {
    return { ...history, events: history.events.filter(({ kind }) => !kinds.some((each) => kind.startsWith(each))) };
  };
  assertRejected("hold-overlap", without("keepalive"), withoutSearch);
  assertAccepted(without("keepalive", "openSent"), withoutSearch);
  assertAccepted(without("keepalive", "sessionOpened"), withoutSearch);
});

test("P5: a pause excuses only who was paused while it held, and only if nobody computed its deadline", () => {
  const pause = (process: string): Fact => ({ kind: "paused", process });
  const resume = (process: string): Fact => ({ kind: "resumed", process });
  assertAccepted(overlap(12_500, [11_000, pause("c1")], [12_400, resume("c1")]));
  assertAccepted(overlap(12_500, [11_000, pause("c1")]));
  assertRejected("hold-overlap", overlap(12_500, [1, pause("c1")], [10, resume("c1")]));
  assertRejected("hold-overlap", overlap(12_500, [12_501, pause("c1")]));
  const computed = (since: number): History => {
    const history = overlap(12_500, [11_000, pause("c1")], [12_400, resume("c1")]);
    const events = history.events.map((event) => (event.kind === "state" ? { ...event, since } : event));
    return { ...history, events };
  };
  assertAccepted(computed(12_000));
  assertRejected("hold-overlap", computed(12_001));
  assertRejected("hold-overlap", overlap(12_500, [11_000, pause("c2")], [12_400, resume("c2")]));
});

test("P5: whoever has the older token is the one who should have known", () => {
  const facts = (slow: string): Facts => [
    [0, elected],
    [0, rate(slow, 0.9)],
    [1, acquire(1, "c1", "a")],
    [2, acquire(2, "c2", "a")],
    [3, acquired(2, "a", 20)],
    // The older grant reaches its client later.
    [4, acquired(1, "a", 10)],
  ];
  assertAccepted(timed(facts("c1")), withoutSearch);
  assertRejected("hold-overlap", timed(facts("c2")), withoutSearch);
});

test("P5: whoever is forced out, by an entry whose caller isn't told, learns by message", () => {
  const grant = (call: number, token: number, session: number): Fact => ({
    kind: "return",
    call,
    result: { kind: "acquired", grants: [{ name: "a", token, slot: null }], session, request: 1 },
  });
  const history = (command: Fact, isToldLate = false): History =>
    timed([
      [1, open],
      [2, logged({ kind: "openSession", key: "other", ttlMs })],
      [3, acquire(1, "c1", "a")],
      [4, acquireEntry(1, 1, "a")],
      ...(isToldLate ? [] : ([[5, grant(1, 3, 1)]] as const)),
      [6, acquire(2, "c2", "a")],
      [7, acquireEntry(2, 1, "a")],
      [8, command],
      [9, grant(2, 5, 2)],
      ...(isToldLate ? ([[10, grant(1, 3, 1)]] as const) : []),
      [500, { kind: "state", call: 1, state: "lost", reason: "forced", since: null }],
    ]);
  const force = logged({ kind: "forceRelease", name: "a", token: 3, lockDelayMs: 0 });
  assertAccepted(history(force));
  assertAccepted(history(force, true), withoutSearch);
  const give = { session: 1, request: 2, settled: 1, seen: [], of: 1, afterMs: 0 };
  assertRejected("hold-overlap", history(logged({ kind: "release", ...give })), withoutSearch);
});

/** A holder that falls silent at 1,000; its session ends at a time, or not at all. */
function silent(endsAt: number | null, untilMs: number, ...more: Facts): History {
  return timed([
    [0, elected],
    [0, { kind: "serving", node: "n1", term: 1 }],
    [0, { kind: "quorum", up: true }],
    [1, open],
    [2, acquireEntry(1, 1, "a")],
    ...keepalive(1, 990, 1_000, 1_001),
    ...(endsAt === null
      ? []
      : ([
          [endsAt - 1, suspect],
          [endsAt, expire],
        ] as const)),
    [untilMs, { kind: "fault", fault: "the end" }],
    ...more,
  ]);
}

test("P6: 2 TTL and 3 election timeouts, and stalls on top", () => {
  const bound = 1_000 + 2 * ttlMs + 300;
  const judged = (history: History): number => assertAccepted(history).counts.judged["dead-holder"];
  assert.equal(judged(silent(bound, 30_000)), 1);
  assertRejected("dead-holder", silent(bound + 1, 30_000));
  assertRejected("dead-holder", silent(null, bound));
  // Nothing is late before its time.
  assert.equal(judged(silent(null, bound - 1)), 0);
  const stall: Fact = { kind: "stall", node: "n1", ms: 200 };
  assert.equal(judged(silent(bound + 200, 30_000, [5_000, stall])), 1);
  assertRejected("dead-holder", silent(bound + 201, 30_000, [5_000, stall]));
  // Before the silence, and after the bound, a stall is no excuse.
  assertRejected("dead-holder", silent(bound + 1, 30_000, [900, stall]));
  assertRejected("dead-holder", silent(bound + 1, 30_000, [bound + 300, stall]));
});

test("P6: each hold of a session counts, and only who holds", () => {
  const force = logged({ kind: "forceRelease", name: "a", token: 2, lockDelayMs: 0 });
  const late = 1_000 + 2 * ttlMs + 300 + 1;
  assertRejected("dead-holder", silent(late, 30_000, [3, acquireEntry(1, 2, "b")], [4, force]));
  const nobody = assertAccepted(silent(late, 30_000, [4, force]));
  assert.equal(nobody.counts.judged["dead-holder"] + nobody.counts.excluded["dead-holder"], 0);
  // Forced after it fell silent, and in time.
  assertAccepted(silent(late, 30_000, [15_000, force]));
});

test("P6: not without a majority, nor for short TTLs, nor for slow clocks", () => {
  const late = 1_000 + 2 * ttlMs + 300 + 1;
  const excluded = (history: History): number => assertAccepted(history).counts.excluded["dead-holder"];
  const down: Fact = { kind: "quorum", up: false };
  const up: Fact = { kind: "quorum", up: true };
  assert.equal(excluded(silent(late, 22_000, [5_000, down], [5_001, up])), 1);
  // The bound begins anew when the majority is back.
  assertRejected("dead-holder", silent(5_001 + 2 * ttlMs + 301, 30_000, [5_000, down], [5_001, up]));
  assertAccepted(silent(5_001 + 2 * ttlMs + 300, 30_000, [5_000, down], [5_001, up]));
  assert.equal(excluded(silent(late, 30_000, [late - 2, down])), 1);
  assert.equal(excluded({ ...silent(late, 30_000), electionTimeoutMs: ttlMs / 30 + 1 }), 1);
  assertRejected("dead-holder", {
    ...silent(1_000 + 2 * ttlMs + ttlMs / 10 + 1, 30_000),
    electionTimeoutMs: ttlMs / 30,
  });
  assert.equal(excluded(silent(late, 30_000, [5_000, rate("n1", 0.98)])), 1);
  assertRejected("dead-holder", silent(late, 30_000, [5_000, rate("n1", 0.991)]));
  // Nobody told when there was a majority, or what an election timeout is: nothing is judged.
  const history = silent(late, 30_000);
  assertAccepted({ ...history, events: history.events.filter(({ kind }) => kind !== "quorum") });
  assertAccepted({ ...history, electionTimeoutMs: null });
});

test("P6: with a leader change every TTL/2, and not more often", () => {
  const late = 1_000 + 2 * ttlMs + 300 + 1;
  const change = (at: number, term: number): Facts => [
    [at, { kind: "deposed", node: "n1", term: term - 1 }],
    [at + 100, { kind: "leader", node: "n1", term }],
    [at + 101, { kind: "serving", node: "n1", term }],
  ];
  assertRejected("dead-holder", silent(late, 30_000, ...change(4_000, 2), ...change(9_000, 3), ...change(14_000, 4)));
  assertAccepted(silent(late, 22_000, ...change(4_000, 2), ...change(8_999, 3), ...change(14_000, 4)));
  // An election ends the leadership before it, whether or not anybody was told.
  const elections: Facts = [
    [4_000, { kind: "leader", node: "n2", term: 2 }],
    [8_999, { kind: "leader", node: "n3", term: 3 }],
  ];
  assertAccepted(silent(late, 22_000, ...elections));
});
