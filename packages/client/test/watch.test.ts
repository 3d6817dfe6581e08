/** watch and observe as their users call them. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { LeaderView } from "../src/observe.js";
import type { WatchEvent } from "../src/watch.js";
import { Stranger } from "./world/stranger.js";
import { outcomeOf, World } from "./world/world.js";

type Events = AsyncIterableIterator<WatchEvent, undefined, undefined>;

/** The call of each iterator that is still waiting: the next event is its. */
const waiting = new Map<Events, ReturnType<Events["next"]>>();

async function nextOf(world: World, events: Events): Promise<WatchEvent> {
  const next = waiting.get(events) ?? events.next();
  waiting.delete(events);
  const result = await world.within(5_000, next);
  assert.ok(result.done !== true, "it goes on");
  return result.value;
}

/** What is told until nothing comes for a while. */
async function allOf(world: World, events: Events): Promise<string[]> {
  const all: string[] = [];
  for (;;) {
    const next = waiting.get(events) ?? events.next();
    const outcome = outcomeOf(next);
    await world.clock.advance(0);
    if (!outcome.isSettled) await world.clock.advance(500);
    if (!outcome.isSettled) {
      waiting.set(events, next);
      return all;
    }
    waiting.delete(events);
    const { value: event } = await next;
    assert.ok(event !== undefined, "it goes on");
    all.push(event.type === "gap" ? "gap" : `${event.type} ${event.name}`);
  }
}

describe("watch", () => {
  test("begins with a gap, then tells each change of a lock with its token and index", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const events = holdfast.watch("doc:42");
    const gap = await nextOf(world, events);
    assert.equal(gap.type, "gap");
    const stranger = new Stranger(world.cluster);
    const held = stranger.acquire("doc:42", { lockDelayMs: 5_000 });
    stranger.acquire("doc:43");
    const granted = await nextOf(world, events);
    const index = world.cluster.lastIndex - 1;
    assert.deepEqual(granted, { type: "granted", name: "doc:42", token: index, slot: null, index });
    assert.ok(granted.index > gap.index);
    stranger.release(held);
    assert.equal((await nextOf(world, events)).type, "released");
    assert.deepEqual(await allOf(world, events), []);
  });

  test("of a prefix tells all locks whose names begin with it; of the empty one all", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const docs = holdfast.watch("doc:", { prefix: true });
    const everything = holdfast.watch("", { prefix: true });
    await nextOf(world, docs);
    await nextOf(world, everything);
    const stranger = new Stranger(world.cluster);
    for (const name of ["doc:1", "job:1", "doc:2"]) stranger.acquire(name);
    assert.deepEqual(await allOf(world, docs), ["granted doc:1", "granted doc:2"]);
    assert.deepEqual(await allOf(world, everything), ["granted doc:1", "granted job:1", "granted doc:2"]);
  });

  test("goes on at another leader where it was, and misses nothing", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const events = holdfast.watch("doc:", { prefix: true });
    await nextOf(world, events);
    const stranger = new Stranger(world.cluster);
    stranger.acquire("doc:1");
    assert.deepEqual(await allOf(world, events), ["granted doc:1"]);
    world.cluster.kill("n1");
    world.cluster.elect("n2");
    stranger.acquire("doc:2");
    stranger.acquire("doc:3");
    assert.deepEqual(await allOf(world, events), ["granted doc:2", "granted doc:3"]);
    assert.equal(world.cluster.watches.count, 1);
  });

  test("says that something may be missing when the leader doesn't remember", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const events = holdfast.watch("doc:1");
    await nextOf(world, events);
    world.cluster.watches.isForgetful = true;
    world.cluster.elect("n2");
    const stranger = new Stranger(world.cluster);
    stranger.acquire("doc:1");
    const told = await allOf(world, events);
    assert.deepEqual(told, ["gap"]);
  });

  test("a slow loop is told a gap, and the newest after it", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const events = holdfast.watch("", { prefix: true });
    await nextOf(world, events);
    for (let session = 1; session <= 15; session += 1) {
      const stranger = new Stranger(world.cluster, session.toString(16).padStart(32, "0"));
      for (let at = 0; at < 400; at += 1) stranger.release(stranger.acquire("busy"));
    }
    await world.clock.advance(1_000);
    assert.equal((await nextOf(world, events)).type, "gap");
    const left = await allOf(world, events);
    assert.deepEqual([left.length, left.at(-1)], [1_999, "released busy"], "12,000 in all");
  });

  test("ends with its loop, by its signal, and at close; nothing stays at the cluster", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const controller = new AbortController();
    const reason = new Error("enough");
    const loop = outcomeOf(
      (async (): Promise<void> => {
        for await (const event of holdfast.watch("a")) if (event.type === "gap") break;
      })(),
    );
    const aborted = outcomeOf(
      (async (): Promise<void> => {
        for await (const event of holdfast.watch("b", { signal: controller.signal })) assert.equal(event.type, "gap");
      })(),
    );
    const closed = holdfast.watch("c");
    await nextOf(world, closed);
    await world.clock.advance(100);
    assert.deepEqual([loop.isSettled, loop.error, aborted.isSettled], [true, undefined, false]);
    assert.equal(world.cluster.watches.count, 2);
    controller.abort(reason);
    await world.clock.advance(100);
    assert.equal(aborted.error, reason);
    assert.equal(world.cluster.watches.count, 1);
    const waiting = outcomeOf(closed.next());
    await world.within(1_000, holdfast.close());
    assert.equal((waiting.error as { code?: string }).code, "connection_closed");
    assert.deepEqual(await closed.next(), { done: true, value: undefined });
    await world.clock.advance(5);
    assert.equal(world.cluster.watches.count, 0);
    assert.equal(world.timers.timerCount, 0);
    assert.equal(world.clock.isKept, false);
  });

  test("an iterator that nobody waits on fails at its next call, once", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const reason = new Error("before it began");
    const events = holdfast.watch("a", { signal: AbortSignal.abort(reason) });
    await assert.rejects(events.next(), reason);
    assert.deepEqual(await events.next(), { done: true, value: undefined });
  });

  test("a loop that waits keeps the process, but presses no node for an answer", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const events = holdfast.watch("a");
    await nextOf(world, events);
    assert.equal(world.clock.isKept, false);
    const waiting = outcomeOf(events.next());
    assert.equal(world.clock.isKept, true);
    const pings = world.network.pings;
    await world.clock.advance(20_000);
    assert.ok(world.network.pings - pings < 15, "no ping each 400 ms");
    await events.return?.();
    assert.deepEqual(waiting.value, { done: true, value: undefined });
    assert.equal(world.clock.isKept, false);
  });

  test("a release that knows no watches is told by its name; wrong arguments are too", async () => {
    const world = new World();
    world.cluster.features = ["nodes"];
    const holdfast = await world.connect();
    const events = outcomeOf(holdfast.watch("a").next());
    await world.clock.advance(100);
    assert.equal((events.error as { code?: string }).code, "incompatible");
    assert.throws(() => holdfast.watch(""), { argument: "name" });
    assert.throws(() => holdfast.watch("a", { prefix: "yes" } as never), { argument: "prefix" });
    assert.throws(() => holdfast.watch("a", { signal: 1 } as never), { argument: "signal" });
    assert.throws(() => holdfast.watch("a", { after: 1 } as never), { argument: "after" });
    assert.throws(() => holdfast.observe("a", { prefix: true } as never), { argument: "prefix" });
  });
});

describe("observe", () => {
  test("tells who leads, then each change; what follows fast is told by the last alone", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const leaders = holdfast.observe("scheduler");
    const next = async (): Promise<LeaderView | null> => {
      const result = await world.within(5_000, leaders.next());
      assert.ok(result.done !== true);
      return result.value;
    };
    assert.equal(await next(), null);
    const stranger = new Stranger(world.cluster);
    const first = stranger.acquire("scheduler");
    const token = world.cluster.lastIndex;
    const leader = await next();
    assert.deepEqual(leader, { token, session: stranger.session, mode: "exclusive", info: "a stranger" });
    stranger.release(first);
    stranger.release(stranger.acquire("scheduler"));
    stranger.acquire("scheduler");
    const later = await next();
    assert.equal(later?.token, world.cluster.lastIndex);
    await leaders.return();
    await world.clock.advance(10);
    assert.equal(world.cluster.watches.count, 0);
  });
});
