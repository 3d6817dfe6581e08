/** Finding the leader, and following it when it changes, dies, hangs or moves. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { HoldfastError } from "../src/errors.js";
import { Stranger } from "./world/stranger.js";
import { outcomeOf, World } from "./world/world.js";

describe("connect", () => {
  test("resolves with any node, and finds the leader through it", async () => {
    const world = new World();
    world.cluster.elect("n3");
    const holdfast = await world.connect({ endpoints: ["node1:7000"] });
    const lock = await world.within(50, holdfast.acquire("a"));
    assert.equal(lock.state, "held");
    assert.equal(world.network.socketCount, 1, "one socket stays");
  });

  test("resolves without a leader", async () => {
    const world = new World();
    world.cluster.elect(null);
    const holdfast = await world.connect();
    const acquiring = holdfast.acquire("a");
    await world.clock.advance(500);
    world.cluster.elect("n2");
    const lock = await world.within(100, acquiring);
    assert.equal(lock.state, "held");
  });

  test("rejects with unreachable after connectTimeoutMs, and leaves nothing", async () => {
    const world = new World();
    for (const { id } of world.cluster.nodes) world.cluster.kill(id);
    const connecting = outcomeOf(world.connect({ connectTimeoutMs: 3_000 }));
    await world.clock.advance(3_001);
    assert.ok(connecting.error instanceof HoldfastError);
    assert.equal(connecting.error.code, "unreachable");
    await world.clock.advance(5);
    assert.equal(world.timers.timerCount, 0);
    assert.equal(world.network.socketCount, 0);
    assert.equal(world.clock.isKept, false);
  });

  test("one silent node among the endpoints costs milliseconds", async () => {
    const world = new World();
    world.cluster.node("n1").reach = "silent";
    world.cluster.node("n2").reach = "silent";
    world.cluster.elect("n3");
    const beganMs = world.clock.monotonicMs();
    await world.connect();
    assert.ok(world.clock.monotonicMs() - beganMs < 100, `${world.clock.monotonicMs() - beganMs} ms`);
  });

  test("a node that accepts and never greets is given up", async () => {
    const world = new World();
    world.cluster.dropRequest = (message, node) => message.kind === "hello" && node.id === "n1";
    const holdfast = await world.connect({ endpoints: ["node1:7000", "node2:7000"] });
    world.cluster.dropRequest = () => false;
    const lock = await world.within(5_000, holdfast.acquire("a"));
    assert.equal(lock.state, "held");
  });

  // C 35, C 58: a cluster that isn't this client's says so at once, and isn't asked in a loop.
  test("every node refuses: incompatible, promptly, for connect, acquires and locks", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    new Stranger(world.cluster).acquire("b");
    const waiting = outcomeOf(holdfast.acquire("b"));
    await world.clock.advance(10);
    world.cluster.clusterId = "c2";
    for (const { id } of world.cluster.nodes) world.cluster.cutConnections(id);
    await world.clock.advance(1_000);
    assert.equal(lock.lossReason, "session_gone");
    assert.equal((waiting.error as HoldfastError).code, "incompatible");
    await assert.rejects(world.within(10, holdfast.acquire("c")), { code: "incompatible", retryable: false });
    const dials = world.network.dialled.length;
    await world.clock.advance(10_000);
    const perSecond = (world.network.dialled.length - dials) / 10;
    assert.ok(perSecond > 1 && perSecond < 7, `${perSecond} dials a second`);
    // An upgrade, or the right address again: it works without a new client.
    world.cluster.clusterId = "c1";
    await world.clock.advance(2_000);
    const next = await world.within(100, holdfast.acquire("c"));
    assert.equal(next.state, "held");
  });

  test("a node of another cluster among the endpoints is passed over", async () => {
    const world = new World();
    const holdfast = await world.connect({ endpoints: ["node2:7000"] });
    await world.within(100, holdfast.acquire("a"));
    const rogue = world.cluster.node("n2");
    world.cluster.editAnswer = (message) =>
      message.kind === "welcome" && message.node === rogue.id ? { ...message, clusterId: "other" } : message;
    world.cluster.kill("n1");
    await world.clock.advance(50);
    world.cluster.elect("n3");
    const lock = await world.within(1_000, holdfast.acquire("b"));
    assert.equal(lock.state, "held");
  });
});

describe("failover", () => {
  /** A holder, and a waiter that is granted when the new leader is told to release: the time from the election to the grant. */
  async function grantedAfter(world: World, fail: () => void | Promise<void>, seed = 1): Promise<number> {
    const holdfast = await world.connect({}, seed);
    const stranger = new Stranger(world.cluster);
    const held = stranger.acquire("a");
    const waiting = outcomeOf(holdfast.acquire("a", { waitMs: 60_000 }));
    await world.clock.advance(1_000);
    await fail();
    stranger.release(held);
    const electedMs = world.clock.monotonicMs();
    await world.until(5_000, "granted", () => waiting.isSettled);
    assert.equal(waiting.value?.state, "held");
    return world.clock.monotonicMs() - electedMs;
  }

  test("a killed leader: the waiter is served milliseconds after the election", async () => {
    for (const electionMs of [0, 30, 100, 170, 300, 1_000]) {
      for (const next of ["n2", "n3"]) {
        const world = new World();
        const ms = await grantedAfter(world, async () => {
          world.cluster.kill("n1");
          await world.clock.advance(electionMs);
          world.cluster.elect(next);
        });
        assert.ok(ms < 50, `${ms} ms after an election of ${electionMs} ms`);
      }
    }
  });

  test("a leader that hands over: the waiter hardly notices", async () => {
    for (const next of ["n2", "n3"]) {
      const world = new World();
      const ms = await grantedAfter(world, () => world.cluster.elect(next));
      assert.ok(ms < 15, `${ms} ms`);
      assert.equal(world.network.socketCount, 1);
    }
  });

  test("the named leader is asked before others, of which one is silent", async () => {
    for (let seed = 1; seed <= 5; seed += 1) {
      const world = new World();
      world.cluster.node("n2").reach = "silent";
      const ms = await grantedAfter(world, () => world.cluster.elect("n3"), seed);
      assert.ok(ms < 15, `${ms} ms`);
    }
  });

  // B 39, B 71, B 72: a leader that hangs is noticed through pings, and others are asked meanwhile.
  test("a stopped leader: within a second of the election", async () => {
    const world = new World();
    const ms = await grantedAfter(world, async () => {
      world.cluster.node("n1").reach = "silent";
      await world.clock.advance(900);
      world.cluster.elect("n2", ["n1"]);
    });
    assert.ok(ms < 300, `${ms} ms`);
  });

  test("only the socket breaks: the same leader is asked again at once", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast.acquire("a"));
    await world.clock.advance(1_000);
    world.cluster.cutConnections("n1");
    const beganMs = world.clock.monotonicMs();
    await world.within(200, holdfast.acquire("b"));
    assert.ok(world.clock.monotonicMs() - beganMs < 20, `${world.clock.monotonicMs() - beganMs} ms`);
  });

  test("nodes that still name the dead leader don't lead astray", async () => {
    const world = new World();
    const ms = await grantedAfter(world, async () => {
      // n2 and n3 believe in n1 until the election.
      world.cluster.kill("n1");
      await world.clock.advance(250);
      world.cluster.elect("n3", ["n2"]);
    });
    assert.ok(ms < 50, `${ms} ms`);
  });

  // B 71: the client sees a leader that the cluster has left behind.
  test("a leader without a majority is left when another claims to lead", async () => {
    const world = new World();
    const holdfast = await world.connect({ ttlMs: 6_000 });
    const lock = await world.within(100, holdfast.acquire("a"));
    await world.clock.advance(1_000);
    // n1 goes on believing, and answers pings; nothing it is asked gets an answer.
    world.cluster.elect("n2", ["n1"]);
    world.cluster.dropAnswer = (message, node) => node.id === "n1" && message.kind === "refused";
    await world.clock.advance(5_000);
    assert.equal(lock.state, "held");
    await world.within(100, holdfast.acquire("b"));
    assert.equal(world.cluster.received.at(-1)?.node, "n2");
  });

  test("a node that refuses as not leading and goes on to lead is asked again", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast.acquire("a"));
    // A transfer that comes to nothing: refusals for a while, and no word of a change.
    world.cluster.refuseCommand = () => ({ code: "not_leader", leader: null });
    const acquiring = outcomeOf(holdfast.acquire("b"));
    await world.clock.advance(100);
    world.cluster.refuseCommand = () => null;
    await world.clock.advance(1_500);
    assert.equal(acquiring.value?.state, "held");
  });

  test("the cluster moves: its new addresses are learnt, and used when the old ones are gone", async () => {
    const world = new World();
    const holdfast = await world.connect({ endpoints: ["node1:7000"] });
    const lock = await world.within(100, holdfast.acquire("a"));
    world.cluster.kill("n1");
    await world.clock.advance(100);
    world.cluster.elect("n2");
    await world.within(1_000, holdfast.acquire("b"));
    world.cluster.kill("n2");
    await world.clock.advance(100);
    world.cluster.elect("n3");
    await world.within(1_000, holdfast.acquire("c"));
    assert.equal(lock.state, "held");
  });
});

describe("manners", () => {
  // A 40, A 30: no storm of dials, and they are spread.
  test("while the whole cluster is away, dials slow down to about one a second and node, in no step", async () => {
    const worlds = [1, 2, 3].map((seed) => ({ world: new World(), seed }));
    const traces: string[] = [];
    for (const { world, seed } of worlds) {
      await world.connect({}, seed);
      for (const { id } of world.cluster.nodes) world.cluster.kill(id);
      await world.clock.advance(20_000);
      const before = world.network.dialled.length;
      const times: number[] = [];
      for (let step = 0; step < 100; step += 1) {
        const count = world.network.dialled.length;
        await world.clock.advance(100);
        if (world.network.dialled.length > count) times.push(step);
      }
      const perSecond = (world.network.dialled.length - before) / 10;
      assert.ok(perSecond > 3 && perSecond < 12, `${perSecond} dials a second for 3 nodes`);
      traces.push(times.join());
    }
    assert.equal(new Set(traces).size, 3);
  });

  test("an idle client pings at a sixth of its TTL and sends nothing else", async () => {
    const world = new World();
    await world.connect({ ttlMs: 12_000 });
    await world.clock.advance(1_000);
    const { pings, frames } = world.network;
    await world.clock.advance(60_000);
    assert.equal(world.network.frames, frames);
    const count = world.network.pings - pings;
    assert.ok(count >= 25 && count <= 31, `${count} pings in a minute`);
  });

  test("an idle client that finds its node silent moves on after two periods", async () => {
    const world = new World();
    const holdfast = await world.connect({ ttlMs: 12_000 });
    await world.clock.advance(1_000);
    world.cluster.node("n1").reach = "silent";
    world.cluster.elect("n2", ["n1"]);
    await world.clock.advance(6_500);
    const beganMs = world.clock.monotonicMs();
    await world.within(1_000, holdfast.acquire("a"));
    assert.ok(world.clock.monotonicMs() - beganMs < 20);
  });

  test("its own stall is no silence of the node", async () => {
    const world = new World();
    const holdfast = await world.connect();
    await world.within(100, holdfast.acquire("a"));
    const { pings } = world.network;
    await world.until(5_000, "a ping is on its way", () => world.network.pings > pings);
    const dials = world.network.dialled.length;
    world.clock.stall(6_000);
    await world.clock.advance(5_000);
    assert.equal(world.network.dialled.length, dials);
  });

  test("logs one line for each change, and no lock's name", async () => {
    const world = new World();
    const lines: string[] = [];
    const log = (facts: object, text: string): void => void lines.push(`${text} ${JSON.stringify(facts)}`);
    const holdfast = await world.connect({ logger: { debug: () => undefined, info: log, warn: log, error: log } });
    await world.within(100, holdfast.acquire("secret"));
    for (const { id } of world.cluster.nodes) world.cluster.kill(id);
    await world.clock.advance(60_000);
    assert.ok(lines.length >= 4 && lines.length <= 6, lines.join("\n"));
    assert.doesNotMatch(lines.join(), /secret/);
  });

  test("a logger that throws costs nothing", async () => {
    const world = new World();
    const fail = (): void => {
      throw new Error("the disk is full");
    };
    const holdfast = await world.connect({ logger: { debug: fail, info: fail, warn: fail, error: fail } });
    const lock = await world.within(100, holdfast.acquire("a"));
    world.cluster.kill("n1");
    world.cluster.elect("n2");
    await world.clock.advance(20_000);
    assert.equal(lock.state, "held");
  });
});

describe("a frame that can't be read", () => {
  test("costs the connection, not the client", async () => {
    const world = new World();
    const holdfast = await world.connect();
    const lock = await world.within(100, holdfast.acquire("a"));
    world.cluster.garble("n1");
    await world.clock.advance(100);
    assert.equal(lock.state, "held");
    assert.equal(await world.within(500, lock.release()), "released");
  });
});

describe("members that change while a client runs", () => {
  test("a new node's endpoint is learnt from the leader, and leads on when all that were configured are gone", async () => {
    const world = new World();
    world.cluster.memberIds = ["n1"];
    const holdfast = await world.connect({ endpoints: ["node1:7000"] });
    const lock = await world.within(100, holdfast.acquire("a"));
    world.cluster.changeMembers(["n1", "n2", "n3"]);
    await world.clock.advance(10);
    world.cluster.kill("n1");
    world.cluster.elect("n3");
    assert.equal(await world.within(1_000, lock.release()), "released");
  });

  test("a removed node's endpoint is forgotten, and a configured one stays", async () => {
    const world = new World();
    const holdfast = await world.connect({ endpoints: ["node1:7000", "node2:7000"] });
    await world.within(100, holdfast.acquire("a"));
    world.cluster.changeMembers(["n1"]);
    await world.clock.advance(10);
    world.cluster.kill("n1");
    world.cluster.kill("n2");
    const dialledBefore = world.network.dialled.length;
    await world.clock.advance(5_000);
    const dialled = new Set(world.network.dialled.slice(dialledBefore));
    assert.deepEqual([...dialled].sort(), ["node1:7000", "node2:7000"]);
  });

  test("only the leader is believed while there is one", async () => {
    const world = new World();
    const holdfast = await world.connect({ endpoints: ["node1:7000"] });
    const lock = await world.within(100, holdfast.acquire("a"));
    assert.equal(world.network.socketCount, 1);
    world.cluster.changeMembers(["n1", "n2"]);
    await world.clock.advance(10);
    assert.equal(lock.state, "held");
    assert.equal(world.network.socketCount, 1, "nothing is dialled for it");
    const resumes = world.cluster.received.filter(({ message }) => message.kind === "resume");
    assert.equal(resumes.length, 0, "and no session is resumed");
  });
});
