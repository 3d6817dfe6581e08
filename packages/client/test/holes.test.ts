/** Schedules that were found by looking for holes: each failed once. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createNodePorts } from "../src/node-ports.js";
import { Stranger } from "./world/stranger.js";
import { isCommand, outcomeOf, World } from "./world/world.js";

describe("a grant", () => {
  test("read after the lease ran out in a stall is not handed out: the acquire begins anew", async () => {
    const world = new World();
    world.cluster.expires = true;
    const holdfast = await world.connect();
    const stranger = new Stranger(world.cluster);
    const held = stranger.acquire("a");
    const waiting = outcomeOf(holdfast.acquire("a", { waitMs: 60_000 }));
    await world.clock.advance(100);
    stranger.release(held);
    // The grant is on its way, and is the first thing that this process reads when it goes on.
    world.clock.stall(9_900);
    await world.clock.advance(0);
    assert.ok(waiting.value === undefined || waiting.value.state === "held", "no lock that is lost already");
    await world.clock.advance(5_000);
    assert.equal(waiting.value?.state, "held");
  });

  test("made in jeopardy, with stopOn jeopardy, is stopped by the next failed renewal", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast.acquire("warm"));
    world.cluster.dropRequest = ({ kind }) => kind === "keepalive";
    await world.clock.advance(5_000);
    const lock = await world.within(100, holdfast.acquire("a", { stopOn: "jeopardy" }));
    assert.equal(lock.state, "jeopardy");
    await world.clock.advance(3_000);
    assert.equal(lock.state, "jeopardy", "the lease still runs");
    assert.equal(lock.signal.aborted, true);
  });
});

describe("what an acquire carried", () => {
  test("the cluster keeps few outcomes, though acquires are lost with their leaders and cancelled", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast.acquire("held for days"));
    for (let round = 0; round < 40; round += 1) {
      const burst = Array.from({ length: 150 }, (_, at) => holdfast.acquire(`burst ${at}`));
      const locks = await world.within(5_000, Promise.all(burst));
      // The next acquire carries what has ended; it never arrives, and its caller gives up.
      await world.within(5_000, Promise.all(locks.map((lock) => lock.release())));
      world.cluster.dropRequest = (message) => isCommand(message, "acquire");
      const abort = new AbortController();
      const lost = Array.from({ length: 2 }, () => outcomeOf(holdfast.acquire("lost", { signal: abort.signal })));
      await world.clock.advance(10);
      abort.abort();
      await world.clock.advance(10);
      world.cluster.dropRequest = () => false;
      world.cluster.cutConnections("n1");
      await world.clock.advance(500);
      assert.ok(lost.every((one) => one.isSettled));
    }
    const opening = world.commands().find((command) => command.kind === "openSession");
    assert.ok(opening?.kind === "openSession");
    const [session] = world.commands().flatMap((command) => (command.kind === "acquire" ? [command.session] : []));
    const kept = world.cluster.machine.resumeView(session ?? 0, opening.key);
    assert.ok(kept !== null && kept.outcomes.length < 700, `${kept?.outcomes.length} outcomes`);
  });
});

describe("an opening that nobody answers", () => {
  test("by a node that greets as leader and answers pings: another is asked", async () => {
    const world = new World();
    const holdfast = await world.connect();
    world.cluster.elect("n2", ["n1"]);
    world.cluster.node("n1").leader = "n1";
    world.cluster.dropRequest = (message, node) => node.id === "n1" && message.kind === "command";
    world.cluster.cutConnections("n2");
    world.cluster.cutConnections("n3");
    const lock = await world.within(10_000, holdfast.acquire("a", { waitMs: 9_000 }));
    assert.equal(lock.state, "held");
  });

  test("because the answer got lost: it is sent again", async () => {
    const world = new World();
    const holdfast = await world.connect();
    let dropped = 0;
    world.cluster.dropAnswer = ({ kind }) => {
      if (kind !== "sessionOpened" || dropped > 0) return false;
      dropped += 1;
      return true;
    };
    const lock = await world.within(10_000, holdfast.acquire("a", { waitMs: 9_000 }));
    assert.equal(lock.state, "held");
    assert.equal(world.cluster.machine.sessionCount, 1);
  });
});

describe("connecting", () => {
  test("a leader that greets, answers and closes each time isn't stormed", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast.acquire("a"));
    await world.clock.advance(5_000);
    const dialledBefore = world.network.dialled.length;
    world.cluster.dropAnswer = ({ kind }) => {
      if (kind === "resumed") world.timers.setTimer(2, () => world.cluster.cutConnections("n1"));
      return false;
    };
    world.cluster.cutConnections("n1");
    await world.clock.advance(5_000);
    const dialled = world.network.dialled.length - dialledBefore;
    assert.ok(dialled > 5 && dialled < 150, `${dialled} connections in 5 s`);
  });

  test("an address that is none ends as one that isn't reached, and throws nothing", async () => {
    const { transport } = createNodePorts();
    for (const endpoint of ["256.1.1.1:7000", "[1.2:3]:7000", "a b:1", "host:1#x"]) {
      const problem = await new Promise<string>((resolve) => {
        const socket = transport.open(endpoint, {
          onOpened: () => resolve("opened"),
          onFrame: () => undefined,
          onPong: () => undefined,
          onClosed: resolve,
        });
        socket.send(new Uint8Array(1));
        socket.ping();
      });
      assert.match(problem, /not an address/);
    }
  });
});

describe("a refusal that comes late", () => {
  test("of an opening that another copy of it brought through: no jeopardy", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    const opening = world.commands().find((command) => command.kind === "openSession");
    assert.ok(opening?.kind === "openSession");
    const node = world.cluster.node("n1");
    const { key } = opening;
    const before = world.keepalives().length;
    world.cluster.dropRequest = ({ kind }) => kind === "keepalive";
    await world.until(5_000, "a keepalive is under way", () => world.keepalives().length > before);
    for (const socket of node.greeted) world.cluster.refuse(node, socket, { key }, { code: "unknown_outcome" });
    await world.clock.advance(5);
    assert.equal(lock.state, "held");
  });

  test("of an acquire that was asked again, and waits: it is asked once more", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const stranger = new Stranger(world.cluster);
    const held = stranger.acquire("a");
    const waiting = outcomeOf(holdfast.acquire("a", { waitMs: 60_000 }));
    await world.clock.advance(100);
    let refused = 0;
    // Told to wait, then not listed by the resume: asked again, which is refused once.
    world.cluster.editAnswer = (message) =>
      message.kind === "resumed" ? { ...message, waiting: [], holds: [] } : message;
    world.cluster.refuseCommand = (command) => {
      if (command.kind !== "acquire" || refused > 0) return null;
      refused += 1;
      return { code: "overloaded" };
    };
    world.cluster.dropAnswer = (message) => message.kind === "outcome" && refused === 0;
    world.cluster.cutConnections("n1");
    await world.clock.advance(3_000);
    assert.equal(refused, 1);
    const acquires = world.cluster.applied.filter(
      ({ command }) => command.kind === "acquire" && command.session !== stranger.session,
    );
    assert.equal(acquires.length, 2, "the first time, and after the refusal");
    stranger.release(held);
    await world.clock.advance(100);
    assert.equal(waiting.value?.state, "held");
  });
});

describe("time", () => {
  test("the last of a lease is less than a clock can show: the timer goes on all the same", async () => {
    for (let at = 1; at <= 30; at += 1) {
      const world = new World();
      // Both clocks alike, and just below a power of two: after it they are coarser than the moment that the lease began at.
      world.clock.suspend(-5_000_000);
      await world.clock.advance(14_900 + at * Math.PI);
      const holdfast = await world.connect({ ttlMs: 2_000 + at });
      const lock = await world.within(100, holdfast.acquire("a", { maxHoldMs: 1_000 + at }));
      const lasting = await world.within(100, holdfast.acquire("b"));
      world.cluster.dropRequest = ({ kind }) => kind === "keepalive";
      const endMs = world.clock.monotonicMs() + 5_000;
      let steps = 0;
      while (world.clock.monotonicMs() < endMs) {
        await world.clock.step(endMs);
        steps += 1;
        assert.ok(steps < 5_000, `it stands still at ${world.clock.monotonicMs()} ms`);
      }
      assert.equal(lock.signal.aborted, true);
      assert.equal(lasting.signal.aborted, true);
    }
  });
});

describe("close()", () => {
  test("ends a status() that a node leaves unanswered", async () => {
    const world = new World();
    const holdfast = await world.connect();
    world.cluster.dropRequest = ({ kind }) => kind === "query";
    const reports = outcomeOf(holdfast.status({ timeoutMs: 1_000_000 }));
    await world.clock.advance(100);
    await world.within(1_000, holdfast.close());
    assert.equal(reports.isSettled, true);
    assert.equal(reports.value?.[0]?.error?.code, "connection_closed");
    assert.equal(world.timers.timerCount, 0);
    assert.equal(world.network.socketCount, 0);
  });
});
