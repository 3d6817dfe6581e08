/** One request, one effect, one answer (P7), over lost and doubled messages and changes of leader; and what a resume reconciles. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Command } from "@holdfast/lock";
import { Stranger } from "./world/stranger.js";
import { isCommand, outcomeOf, World } from "./world/world.js";

function acquires(world: World, name: string): readonly Extract<Command, { kind: "acquire" }>[] {
  return world.commands().flatMap((command) => {
    return command.kind === "acquire" && command.names[0] === name ? [command] : [];
  });
}

function appliedCount(world: World, kind: Command["kind"]): number {
  return world.cluster.applied.filter(({ command }) => command.kind === kind).length;
}

describe("retries", () => {
  // B 73, C 4, faults "retry to other leader": the answer is lost, the leader dies, the next one is asked with the same number.
  test("the answer to an acquire is lost, and its leader: same number, same token, one grant", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast.acquire("warm"));
    world.cluster.dropAnswer = (message) => message.kind === "outcome";
    const acquiring = holdfast.acquire("a");
    await world.clock.advance(10);
    const granted = world.cluster.machine.lockView("a", 16)?.holders[0];
    assert.ok(granted !== undefined);
    world.cluster.kill("n1");
    world.cluster.dropAnswer = () => false;
    world.cluster.elect("n2");
    const lock = await world.within(500, acquiring);
    assert.equal(lock.token, granted.token);
    const tries = acquires(world, "a");
    assert.equal(tries.length, 2);
    assert.equal(tries[0]?.request, tries[1]?.request);
    assert.equal(world.cluster.machine.lockView("a", 16)?.holders.length, 1);
  });

  test("the acquire itself is lost with its leader", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast.acquire("warm"));
    world.cluster.dropRequest = (message) => isCommand(message, "acquire");
    const acquiring = holdfast.acquire("a");
    await world.clock.advance(10);
    world.cluster.kill("n1");
    world.cluster.dropRequest = () => false;
    world.cluster.elect("n3");
    const lock = await world.within(500, acquiring);
    assert.equal(lock.state, "held");
    assert.equal(acquires(world, "a")[0]?.request, acquires(world, "a")[1]?.request);
  });

  test("what a dead leader leaves unanswered is sent again in its order", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast.acquire("warm"));
    world.cluster.dropRequest = (message) => message.kind === "command";
    const granted: number[] = [];
    const all = Array.from({ length: 20 }, async (_, at) => {
      const lock = await holdfast.acquire("a");
      granted.push(at);
      await lock.release();
    });
    await world.clock.advance(10);
    world.cluster.kill("n1");
    world.cluster.dropRequest = () => false;
    world.cluster.elect("n2");
    await world.within(1_000, Promise.all(all));
    assert.deepEqual(granted, [...granted.keys()]);
  });

  test("each spell of overload begins with a quick retry", async () => {
    const world = new World();
    const holdfast = await world.connect();
    for (let spell = 0; spell < 4; spell += 1) {
      let refusals = 0;
      world.cluster.refuseCommand = (command) => {
        refusals += command.kind === "acquire" ? 1 : 0;
        return command.kind === "acquire" && refusals <= 5 ? { code: "overloaded" } : null;
      };
      const lock = await world.within(2_000, holdfast.acquire("a", { waitMs: 2_000 }));
      await world.within(100, lock.release());
      const times = world.cluster.received
        .filter(({ message }) => isCommand(message, "acquire"))
        .map(({ atMs }) => atMs);
      const [first = 0, second = 0] = times.slice(-6);
      assert.ok(second - first < 55, `${second - first} ms in spell ${spell}`);
    }
  });

  test("unknown_outcome and not_leader are retried with the same number", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast.acquire("warm"));
    let refusals = 0;
    world.cluster.refuseCommand = (command) => {
      refusals += command.kind === "acquire" ? 1 : 0;
      if (command.kind !== "acquire" || refusals > 2) return null;
      return refusals === 1 ? { code: "unknown_outcome" } : { code: "not_leader", leader: null };
    };
    const lock = await world.within(3_000, holdfast.acquire("a"));
    assert.equal(lock.state, "held");
    const numbers = new Set(acquires(world, "a").map(({ request }) => request));
    assert.equal(numbers.size, 1);
    assert.equal(appliedCount(world, "acquire"), 2);
  });

  test("a doubled answer changes nothing, also when it comes after the release", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    const again = acquires(world, "a")[0];
    assert.ok(again !== undefined);
    world.cluster.apply(again);
    await world.clock.advance(10);
    assert.equal(lock.state, "held");
    assert.equal(await world.within(100, lock.release()), "released");
    world.cluster.apply(again);
    await world.clock.advance(10);
    assert.equal(lock.state, "released");
    assert.equal(world.cluster.machine.lockView("a", 16), null, "a late duplicate doesn't acquire");
  });

  test("the answer to a release is lost with its leader: released once, and said so", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    world.cluster.dropAnswer = (message) => message.kind === "outcome";
    const releasing = lock.release();
    await world.clock.advance(10);
    world.cluster.kill("n1");
    world.cluster.dropAnswer = () => false;
    world.cluster.elect("n2");
    assert.equal(await world.within(500, releasing), "released");
    const asked = world.commands().flatMap((command) => (command.kind === "release" ? [command.request] : []));
    assert.equal(asked.length, 2);
    assert.equal(asked[0], asked[1]);
    assert.equal(world.cluster.machine.lockView("a", 16), null);
  });

  test("a release asked for without a leader goes out with the resume", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    world.cluster.kill("n1");
    await world.clock.advance(50);
    const releasing = lock.release();
    assert.equal(lock.state, "released");
    await world.clock.advance(50);
    world.cluster.elect("n2");
    assert.equal(await world.within(500, releasing), "released");
  });

  // C 65: two acquires of one client are answered each for itself.
  test("two acquires of one name by one client exclude each other", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const [first, second] = [outcomeOf(holdfast.acquire("a")), outcomeOf(holdfast.acquire("a"))];
    await world.clock.advance(100);
    assert.equal(first.value?.state, "held");
    assert.equal(second.isSettled, false);
    await world.within(100, first.value.release());
    await world.clock.advance(10);
    assert.equal(second.value?.state, "held");
    assert.ok(second.value.token > first.value.token);
  });

  test("all requests of one tick share a frame", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast.acquire("warm"));
    const before = world.network.frames;
    const all = Array.from({ length: 300 }, (_, at) => holdfast.acquire(`lock-${at}`));
    await world.within(100, Promise.all(all));
    assert.equal(world.network.frames - before, 1);
  });
});

describe("numbers", () => {
  // docs/decisions/001: a campaign waits for hours beside thousands of short locks.
  test("a long wait beside 5,000 short locks: the cluster keeps few outcomes, and numbers are told once", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const stranger = new Stranger(world.cluster);
    const held = stranger.acquire("leader");
    const campaign = outcomeOf(holdfast.acquire("leader", { waitMs: Number.POSITIVE_INFINITY }));
    for (let round = 0; round < 50; round += 1) {
      const locks = await world.within(
        1_000,
        Promise.all(Array.from({ length: 100 }, (_, at) => holdfast.acquire(`short-${at}`))),
      );
      await world.within(1_000, Promise.all(locks.map((lock) => lock.release())));
    }
    const requests = world.cluster.applied.flatMap(({ command }) => {
      return "seen" in command && command.session !== stranger.session ? [command] : [];
    });
    assert.equal(requests.length, 10_001);
    assert.equal(Math.max(...requests.map(({ settled }) => settled)), 1, "the campaign holds settled back");
    const told = requests.flatMap(({ seen }) => seen);
    assert.equal(new Set(told).size, told.length);
    assert.ok(10_001 - told.length < 500, `${told.length} numbers told`);
    assert.equal(world.commands().length, 10_002, "nothing was refused");
    stranger.release(held);
    await world.clock.advance(10);
    assert.equal(campaign.value?.state, "held");
    await world.within(100, campaign.value.release());
    await world.within(100, holdfast.acquire("after"));
    assert.ok(Math.max(...world.commands().map((one) => ("settled" in one ? one.settled : 0))) > 10_000);
  });

  test("2,000 acquires at once keep within what the cluster remembers, and all are granted", async () => {
    const world = new World();
    const holdfast = await world.connect();
    let rejections = 0;
    world.cluster.dropAnswer = (message) => {
      if (message.kind === "rejected") rejections += 1;
      return false;
    };
    let most = 0;
    let running = 0;
    const all = Array.from({ length: 2_000 }, async (_, at) => {
      const lock = await holdfast.acquire(`lock-${at}`);
      running += 1;
      most = Math.max(most, running);
      await lock.release();
      running -= 1;
    });
    await world.within(5_000, Promise.all(all));
    assert.equal(rejections, 0);
    assert.ok(most <= 1_000, `${most} at once`);
  });

  test("the same beside a long wait", async () => {
    const world = new World();
    const holdfast = await world.connect();
    new Stranger(world.cluster).acquire("leader");
    void outcomeOf(holdfast.acquire("leader", { waitMs: Number.POSITIVE_INFINITY }));
    let rejections = 0;
    world.cluster.dropAnswer = (message) => {
      if (message.kind === "rejected") rejections += 1;
      return false;
    };
    for (let round = 0; round < 3; round += 1) {
      const all = Array.from({ length: 2_000 }, async (_, at) => {
        const lock = await holdfast.acquire(`lock-${at}`);
        await lock.release();
      });
      await world.within(5_000, Promise.all(all));
    }
    assert.equal(rejections, 0);
  });

  test("tooManyRequests is retried", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast.acquire("warm"));
    let isFull = true;
    world.cluster.dropRequest = (message) => {
      if (!isFull || !isCommand(message, "acquire")) return false;
      isFull = false;
      const request = acquires(world, "a").at(-1)?.request ?? 0;
      world.cluster.tell({ kind: "rejected", session: 101, request, rejection: { kind: "tooManyRequests" } });
      return true;
    };
    const lock = await world.within(1_000, holdfast.acquire("a"));
    assert.equal(lock.state, "held");
  });
});

describe("resume", () => {
  test("a lock that was lost meanwhile is lost with its reason", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const [forced, kept] = await world.within(100, Promise.all([holdfast.acquire("a"), holdfast.acquire("b")]));
    world.cluster.kill("n1");
    world.cluster.apply({ kind: "forceRelease", name: "a", token: forced.token, principal: "root", lockDelayMs: 0 });
    await world.clock.advance(100);
    assert.equal(forced.state, "held", "nobody could tell");
    world.cluster.elect("n2");
    await world.clock.advance(100);
    assert.equal(forced.lossReason, "forced");
    assert.equal(kept.state, "held");
  });

  test("a grant that nobody told becomes known, and keeps its place in the queue", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const stranger = new Stranger(world.cluster);
    const held = stranger.acquire("a");
    const waiting = outcomeOf(holdfast.acquire("a"));
    await world.clock.advance(100);
    world.cluster.kill("n1");
    stranger.release(held);
    await world.clock.advance(100);
    assert.equal(waiting.isSettled, false);
    world.cluster.elect("n2");
    await world.clock.advance(100);
    assert.equal(waiting.value?.state, "held");
    assert.equal(acquires(world, "a").length, 1, "it was not asked again: the resume's answer says it");
  });

  test("a lock that the cluster doesn't list is lost, but for one that is being released", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const [lost, releasing] = await world.within(100, Promise.all([holdfast.acquire("a"), holdfast.acquire("b")]));
    world.cluster.editAnswer = (message) => (message.kind === "resumed" ? { ...message, holds: [] } : message);
    world.cluster.kill("n1");
    const released = releasing.release();
    world.cluster.elect("n2");
    assert.equal(await world.within(500, released), "released");
    assert.equal(lost.lossReason, "session_gone");
    assert.equal(releasing.lossReason, null);
  });

  test("a waiting request that the cluster doesn't list is asked again, with its number", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const stranger = new Stranger(world.cluster);
    const held = stranger.acquire("a");
    const waiting = outcomeOf(holdfast.acquire("a"));
    await world.clock.advance(100);
    world.cluster.editAnswer = (message) => (message.kind === "resumed" ? { ...message, waiting: [] } : message);
    world.cluster.elect("n2");
    await world.clock.advance(100);
    assert.equal(acquires(world, "a").length, 2);
    stranger.release(held);
    await world.clock.advance(10);
    assert.equal(waiting.value?.state, "held");
    assert.equal(world.cluster.machine.lockView("a", 16)?.holders.length, 1);
  });

  test("granted and lost before the caller heard of it: the caller still gets a lock", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const stranger = new Stranger(world.cluster);
    const held = stranger.acquire("a");
    const waiting = outcomeOf(holdfast.acquire("a"));
    await world.clock.advance(100);
    world.cluster.kill("n1");
    stranger.release(held);
    const token = world.cluster.machine.lockView("a", 16)?.holders[0]?.token ?? 0;
    world.cluster.apply({ kind: "forceRelease", name: "a", token, principal: "root", lockDelayMs: 0 });
    world.cluster.elect("n2");
    await world.clock.advance(100);
    assert.equal(waiting.value?.state, "held");
    assert.ok(waiting.value.token > token);
  });

  test("a session that ended meanwhile is lost, with the cluster's reason, and its locks with it", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    world.cluster.kill("n1");
    world.cluster.expire(101);
    world.cluster.elect("n2");
    await world.clock.advance(200);
    assert.equal(lock.lossReason, "expired");
    const next = await world.within(500, holdfast.acquire("a"));
    assert.ok(next.token > lock.token);
  });

  test("another connection took the session over: this one resumes it", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    // A resume from a socket that was given up is handled late.
    world.cluster.usurp(101);
    await world.clock.advance(200);
    assert.equal(lock.state, "held");
    assert.equal(await world.within(500, lock.release()), "released");
  });

  test("leadership that comes and goes on one connection: resumed there, and nothing is lost", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    const stranger = new Stranger(world.cluster);
    const held = stranger.acquire("b");
    const waiting = outcomeOf(holdfast.acquire("b"));
    for (let round = 0; round < 5; round += 1) {
      world.cluster.elect(null);
      await world.clock.advance(20);
      world.cluster.elect("n1");
      await world.clock.advance(20);
    }
    assert.equal(lock.state, "held");
    stranger.release(held);
    await world.clock.advance(20);
    assert.equal(waiting.value?.state, "held");
  });
});
