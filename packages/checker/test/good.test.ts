/** Histories that look odd and are true: each is accepted, and each has really been judged. */
import assert from "node:assert/strict";
import test from "node:test";
import type { EventOf, History, HistoryEvent, Rule } from "../src/index.js";
import { change, find, isOf, without } from "./edits.js";
import { heldAndWaiting, passedOn, sessionOf, tokenOf } from "./scenes.js";
import { Story } from "./service/story.js";
import { assertAccepted, assertRejected } from "./verdicts.js";

/** At least so many facts were judged. */
function accepted(story: Story, least: Partial<Record<Rule, number>>): History {
  story.advance(1_000);
  const history = story.end();
  const { counts } = assertAccepted(history);
  for (const [rule, count] of Object.entries(least)) {
    assert.ok(counts.judged[rule as Rule] >= count, `${rule}: ${counts.judged[rule as Rule]} judged`);
  }
  return history;
}

function all<K extends HistoryEvent["kind"]>(history: History, kind: K): EventOf<K>[] {
  return history.events.filter((event) => isOf(event, kind));
}

test("readers share a generation; who joins late bears the old token", () => {
  const story = new Story();
  const clients = ["c1", "c2", "c3"].map((name) => story.client(name));
  const holds = clients.map((client, at) => {
    story.advance(20);
    // Other locks get newer tokens meanwhile.
    story.client("c9").acquire([`other-${at}`]);
    story.advance(20);
    return client.acquire(["r"], { mode: "shared" });
  });
  story.advance(20);
  assert.equal(new Set(holds.map(tokenOf)).size, 1);
  for (const [at, hold] of holds.entries()) clients[at]?.release(hold);
  story.advance(20);
  const next = story.client("c1").acquire(["r"], { mode: "shared" });
  accepted(story, { "token-order": 7, exclusion: 7, "hold-overlap": 7, linearizability: 4 });
  assert.ok(tokenOf(next) > tokenOf(story.client("c9").held[2] ?? next));
});

test("the places of a semaphore have generations of their own", () => {
  const story = new Story();
  const names = ["c1", "c2", "c3", "c4"];
  const acquires = names.map((name) => {
    const acquire = story.client(name).acquire(["s"], { mode: "slot", slots: 2 });
    story.advance(20);
    return acquire;
  });
  const [first, second, third, fourth] = acquires;
  assert.ok(first && second && third && fourth);
  // Both are freed in one moment, the later one first.
  story.client("c2").release(second);
  story.client("c1").release(first);
  story.advance(20);
  assert.deepEqual(
    [third, fourth].map(({ grants }) => grants[0]?.slot),
    [1, 0],
  );
  story.client("c5").acquire(["s"], { mode: "slot", slots: 3 });
  story.advance(20);
  accepted(story, { exclusion: 4, fifo: 2, "hold-overlap": 4 });
});

test("several names: all or none, in one order, reserved while waiting", () => {
  const story = new Story();
  const [c1, c2, c3, c4] = ["c1", "c2", "c3", "c4"].map((name) => story.client(name));
  assert.ok(c1 && c2 && c3 && c4);
  const first = c1.acquire(["b"]);
  story.advance(20);
  const both = c2.acquire(["a", "b"]);
  story.advance(20);
  // `a` is free, and reserved: this one waits, and a try is refused.
  const behind = c3.acquire(["a"]);
  c4.acquire(["a"], { wait: false });
  story.advance(20);
  assert.deepEqual([both.stage, behind.stage], ["open", "open"]);
  c1.release(first);
  story.advance(20);
  assert.deepEqual(
    both.grants.map(({ token }) => token),
    [both.grants[0]?.token, both.grants[0]?.token],
  );
  c2.release(both);
  story.advance(20);
  assert.equal(behind.stage, "held");
  accepted(story, { fifo: 2, linearizability: 2, "hold-overlap": 4 });
});

test("a cancel crosses a grant: the client gives it back", () => {
  const { story, c1, c2, first, second } = heldAndWaiting();
  c1.release(first);
  c2.giveUp(second);
  const history = accepted(story, { fifo: 1 });
  assert.ok(all(history, "told").some(({ outcome }) => outcome.kind === "alreadyGranted"));
  const third = c1.acquire(["a"]);
  story.advance(20);
  assert.equal(third.stage, "held");
});

test("a lock-delay closes what its hold excluded, and starts anew with a new leader", () => {
  const story = new Story();
  const reader = story.client("c1");
  reader.acquire(["a"], { mode: "shared", lockDelayMs: 3_000 });
  story.advance(20);
  reader.crash();
  story.advance(11_000);
  const other = story.client("c2").acquire(["a"], { mode: "shared" });
  const refused = story.client("c3").acquire(["b"], { wait: false });
  story.client("c4").acquire(["a"], { wait: false });
  story.advance(1_000);
  assert.equal(other.stage, "held");
  assert.equal(refused.stage, "held");
  story.service.elect(1);
  story.client("c2").release(other, 500);
  story.advance(100);
  story.client("c3").acquire(["a"], { wait: false });
  story.advance(6_000);
  const history = accepted(story, { "lock-delay": 2, "early-end": 2 });
  const codes = all(history, "return").flatMap(({ result }) => (result.kind === "refused" ? [result.code] : []));
  assert.deepEqual(codes, ["lock_held", "lock_delayed"]);
});

test("a forced release ends every hold of the generation, and its holders learn late", () => {
  const story = new Story();
  const [c1, c2, c3] = ["c1", "c2", "c3"].map((name) => story.client(name));
  assert.ok(c1 && c2 && c3);
  const first = c1.acquire(["a", "b"], { mode: "shared" });
  const second = c2.acquire(["a"], { mode: "shared" });
  story.advance(20);
  const writer = c3.acquire(["a"]);
  story.advance(20);
  c1.cut();
  story.force("admin", "a", tokenOf(second));
  story.advance(50);
  assert.deepEqual([first.stage, second.stage, writer.stage], ["held", "over", "held"]);
  story.advance(100);
  c1.heal();
  story.force("admin", "a", 1);
  const history = accepted(story, { "hold-overlap": 4, linearizability: 2 });
  assert.deepEqual(
    all(history, "return").flatMap(({ result }) => (result.kind === "forced" ? [result.ended] : [])),
    [2, 0],
  );
});

test("a maxHold ends a hold of a living session", () => {
  const story = new Story();
  const c1 = story.client("c1");
  c1.acquire(["a"], { maxHoldMs: 2_000, lockDelayMs: 500 });
  story.advance(20);
  const second = story.client("c2").acquire(["a"]);
  story.advance(4_000);
  assert.equal(second.stage, "held");
  accepted(story, { "early-end": 2, "hold-overlap": 2, fifo: 1 });
});

test("leaders change every TTL/2: the dead end in time, the living never", () => {
  const story = new Story();
  const { c1, c2 } = { c1: story.client("c1"), c2: story.client("c2") };
  c1.acquire(["a"]);
  c2.acquire(["b"]);
  story.advance(20);
  c1.crash();
  const waiter = story.client("c3").acquire(["a"]);
  for (let at = 0; at < 40; at += 1) {
    story.service.depose();
    story.world.after(200, () => story.service.elect(at));
    story.advance(5_000);
  }
  assert.equal(waiter.stage, "held");
  assert.equal(c2.held.length, 1);
  accepted(story, { "dead-holder": 1, "early-expiry": 1, "split-brain-keepalive": 40, "stale-proposal": 2 });
});

test("nodes crash, start again from an old snapshot, and are given a new one", () => {
  const { story, c1, first } = heldAndWaiting();
  story.service.crash(1);
  story.advance(50);
  c1.release(first);
  story.advance(50);
  story.service.restart(2);
  story.world.advance(50);
  story.service.install();
  story.advance(50);
  c1.acquire(["b"]);
  story.advance(50);
  const history = accepted(story, { agreement: 20, convergence: 3 });
  assert.equal(all(history, "installed").length, 1);
  assert.ok(all(history, "started").some(({ index }) => index === 2));
});

test("requests are sent twice, at two leaders", () => {
  const { story, c1, c2, first } = heldAndWaiting();
  c1.onServing();
  c2.onServing();
  story.advance(20);
  story.service.elect(2);
  story.advance(20);
  c1.release(first);
  c1.onServing();
  story.advance(20);
  accepted(story, { "one-effect": 5, fifo: 1 });
});

test("unknown outcomes: one has happened, one never", () => {
  const story = new Story();
  const [c1, c2, c3] = ["c1", "c2", "c3"].map((name) => story.client(name));
  assert.ok(c1 && c2 && c3);
  for (const client of [c1, c2, c3]) client.acquire([`${client.name}-own`]);
  story.advance(20);
  c1.acquire(["a"]);
  // The command has arrived, the answer finds nobody.
  story.advance(4);
  c1.crash();
  // Not even the command arrives.
  c2.cut();
  c2.acquire(["a"]);
  story.advance(20);
  c2.crash();
  c3.acquire(["a"], { wait: false });
  story.advance(20);
  const history = accepted(story, { linearizability: 4 });
  const [refused] = all(history, "return").filter(({ result }) => result.kind === "refused");
  assert.ok(refused !== undefined);
  assert.deepEqual(assertAccepted(history).counts.unknowns, { happened: 1, never: 1, open: 0 });
  // Without the one that happened nobody stood in the way.
  const happened = find(history, "call", ({ client, op }) => client === "c1" && op.kind === "acquire", 1);
  assertRejected("linearizability", withoutCall(history, happened));
});

test("unknown outcomes without a log stay open, and may or may not have happened", () => {
  const story = new Story();
  const c1 = story.client("c1");
  const holder = c1.acquire(["a"]);
  story.advance(4);
  c1.crash();
  story.client("c2").acquire(["a"], { wait: false });
  story.advance(20);
  const history = story.end();
  const clientsOnly = {
    ...history,
    events: history.events.filter(({ kind }) => !["committed", "applied", "final", "sent", "told"].includes(kind)),
  };
  assert.equal(holder.stage, "open");
  assert.deepEqual(assertAccepted(clientsOnly).counts.unknowns, { happened: 0, never: 0, open: 1 });
});

test("an unknown release is resolved by the log, both ways", () => {
  for (const arrives of [true, false]) {
    const { story, c1, first, second } = heldAndWaiting();
    if (!arrives) c1.cut();
    c1.release(first);
    story.advance(4);
    c1.crash();
    story.advance(50);
    assert.equal(second.stage, arrives ? "held" : "open");
    const history = accepted(story, { linearizability: 1 });
    // Without it, the other's acquire is never granted either.
    const unknowns = arrives ? { happened: 1, never: 0, open: 0 } : { happened: 0, never: 2, open: 0 };
    assert.deepEqual(assertAccepted(history).counts.unknowns, unknowns);
  }
});

test("a release that nobody confirms is answered when the lease is over, whether it came or not", () => {
  for (const arrives of [true, false]) {
    const { story, c1, first, second } = heldAndWaiting();
    if (!arrives) c1.cut();
    c1.release(first);
    story.advance(2.5);
    c1.cut();
    story.advance(13_000);
    assert.equal(second.stage, "held");
    const history = accepted(story, { "hold-overlap": 2, linearizability: 1 });
    const ends = all(history, "return").flatMap(({ result }) => (result.kind === "released" ? [result.how] : []));
    assert.deepEqual(ends, ["alreadyLost"]);
  }
});

test("a force, a closing and a read without an answer", () => {
  for (const [token, kind] of [
    [3, "happened"],
    [4, "never"],
  ] as const) {
    const { story, c1, first } = heldAndWaiting();
    assert.equal(tokenOf(first), 3);
    c1.inspect("a");
    c1.cut();
    story.force("admin", "a", token);
    story.world.record({ kind: "call", client: "c1", call: 80, op: { kind: "close" } });
    story.advance(20);
    const history = story.end();
    const forced = find(history, "return", ({ result }) => result.kind === "forced");
    const lost = change(history, "return", forced, () => ({ result: { kind: "unknown", code: "connection_closed" } }));
    const { unknowns } = assertAccepted(lost).counts;
    // The one who waits has not been answered either, unless the lock was forced free.
    const waiting = kind === "never" ? 1 : 0;
    const expected = { happened: 0, never: waiting, open: 1 };
    assert.deepEqual(unknowns, { ...expected, [kind]: expected[kind] + 1 });
  }
});

test("a read and a try see what others hold", () => {
  const { story, c2, first } = heldAndWaiting();
  const c3 = story.client("c3");
  c3.inspect("a");
  c3.acquire(["a"], { wait: false });
  c3.inspect("free");
  story.advance(20);
  const history = accepted(story, { linearizability: 2 });
  const seen = all(history, "return").flatMap(({ result }) => (result.kind === "inspected" ? [result.holders] : []));
  assert.deepEqual(
    seen.map((holders) => holders.map(({ token }) => token)),
    [[tokenOf(first)], []],
  );
  assert.ok(sessionOf(c2) > 0);
});

test("a late write of the former holder is refused, and read guards raise the register too", () => {
  const { story, first, second } = passedOn();
  story.write("c1", "a", null, tokenOf(first));
  story.write("c2", "a", null, tokenOf(second));
  story.write("c1", "a", null, tokenOf(first));
  const history = accepted(story, { guard: 3, "early-expiry": 1, "dead-holder": 0 });
  assert.deepEqual(
    all(history, "guardWrite").map(({ accepted: isAccepted }) => isAccepted),
    [true, true, false],
  );
});

test("a machine that tells of no place in the queue, and refuses by another true name, is right", () => {
  const story = new Story();
  story.client("c1").acquire(["a", "b"]);
  story.advance(20);
  story.client("c2").acquire(["a", "b"], { wait: false });
  const history = accepted(story, { replay: 4 });
  const edited = {
    ...history,
    events: history.events.map((event) => {
      if (event.kind === "told" && event.outcome.kind === "lockHeld")
        return { ...event, outcome: { ...event.outcome, name: "b" } };
      if (event.kind !== "applied" || event.effects === null) return event;
      const effects = event.effects.map((effect) => {
        if (effect.kind !== "outcome" || effect.outcome.kind !== "lockHeld") return effect;
        return { ...effect, outcome: { ...effect.outcome, name: "b" } };
      });
      return { ...event, effects };
    }),
  };
  assertAccepted(edited);
  const told = find(edited, "told", ({ outcome }) => outcome.kind === "lockHeld");
  assertRejected(
    "one-effect",
    change(edited, "told", told, () => ({ outcome: { kind: "lockHeld", name: "a" } })),
  );
});

test("a producer that sees little is judged on little", () => {
  const { story } = passedOn();
  const history = accepted(story, {});
  const kinds = new Set(history.events.map(({ kind }) => kind));
  // A dead client calls nothing held: whoever kills must say so.
  kinds.delete("crashed");
  for (const kind of kinds) {
    // Calls and returns belong together, and so do commits and what follows from them.
    const gone =
      kind === "call" ? ["call", "return", "state"] : kind === "committed" ? ["committed", "applied"] : [kind];
    const positions = history.events.flatMap((event, at) => (gone.includes(event.kind) ? [at] : []));
    const { counts } = assertAccepted(without(history, ...positions));
    assert.ok(counts.events < history.events.length, kind);
  }
});

/** As if nobody had made the call. */
function withoutCall(history: History, position: number): History {
  const event = history.events[position];
  assert.ok(event !== undefined && isOf(event, "call"));
  const { call } = event;
  return {
    ...history,
    events: history.events
      .filter((each) => !((isOf(each, "call") || isOf(each, "return") || isOf(each, "state")) && each.call === call))
      .map((each) => (isOf(each, "sent") && each.call === call ? { ...each, call: null } : each)),
  };
}
