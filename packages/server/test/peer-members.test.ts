/** Links that follow the configuration: who is called, who is let in, who is told that it was removed. */
import { strict as assert } from "node:assert";
import { describe, test } from "node:test";
import type { Configuration, Member } from "@holdfast/raft";
import { heartbeat, memoryLogger } from "./helpers.js";
import { clusterId, instanceOf, noPromises, recordLinks } from "./peer-harness.js";
import type { LinkSetup, RecordedLinks } from "./peer-harness.js";
import { MemoryNetwork } from "./virtual/memory-network.js";
import { ProcessClock, VirtualClock } from "./virtual/virtual-clock.js";

function memberOf(id: string): Member {
  const port = Number(id.slice(1));
  return { id, instance: instanceOf(id), peer: `127.0.0.1:${port}`, client: `127.0.0.1:${1_000 + port}` };
}

function configurationOf(voters: readonly string[], changes: Partial<Configuration> = {}): Configuration {
  return { voters: voters.map(memberOf), outgoing: [], learners: [], removed: [], ...changes };
}

class World {
  readonly clock = new VirtualClock();
  private readonly network = new MemoryNetwork(this.clock);
  private names = 0;

  create(id: string, changes: Partial<LinkSetup> = {}): RecordedLinks {
    const logger = memoryLogger();
    const random = { integer: (below: number) => below >> 1 };
    const drawName = (): string => `process-${(this.names += 1)}`;
    const { transport } = this.network;
    const clock = new ProcessClock(this.clock);
    const setup = { id, port: Number(id.slice(1)), peers: {}, saysAddress: true, ...changes };
    return recordLinks(setup, { clock, random, logger, transport, drawName, clusterVersion: () => 1 }, logger.lines);
  }

  async formed(id: string, configuration: Configuration, changes: Partial<LinkSetup> = {}): Promise<RecordedLinks> {
    const node = this.create(id, changes);
    node.links.becomeFormed({ clusterId, firstIndex: 1, configuration }, noPromises);
    await node.links.start();
    return node;
  }

  async until(what: string, test: () => boolean): Promise<void> {
    await this.clock.until(what, test, 10_000);
  }
}

const isLinked = (node: RecordedLinks, id: string): boolean => node.links.met().has(id);

describe("links follow the configuration", () => {
  test("members that no file has are called at the log's addresses; a file's address goes first", async () => {
    const world = new World();
    const [n1, n2] = [await world.formed("n1", configurationOf(["n1", "n2"])), world.create("n2", { port: 22 })];
    n2.links.becomeFormed({ clusterId, firstIndex: 1, configuration: configurationOf(["n1", "n2"]) }, noPromises);
    await n2.links.start();
    await world.clock.pass(3_000);
    assert.equal(isLinked(n1, "n2"), false, "n2 listens elsewhere than its log says");
    const informed = await world.formed("n3", configurationOf(["n2", "n3"]), { peers: { n2: 22 } });
    await world.until("linked", () => isLinked(informed, "n2"));
  });

  test("a node that is added is called, and handed what its log begins with", async () => {
    const world = new World();
    const first = configurationOf(["n1", "n2"]);
    const n1 = world.create("n1");
    n1.links.becomeFormed({ clusterId, firstIndex: 9, configuration: first, firstConfiguration: first }, noPromises);
    await n1.links.start();
    const joining = world.create("n4", { joins: clusterId });
    await joining.links.start();
    await world.clock.pass(2_000);
    assert.equal(joining.formed.length, 0, "it is no member yet");
    const inForce = configurationOf(["n1", "n2"], { learners: [memberOf("n4")] });
    n1.links.noteConfiguration(inForce, first);
    await world.clock.pass(5_000);
    assert.equal(joining.formed.length, 0, "an entry that isn't committed may be cut off again");
    n1.links.noteConfiguration(inForce, inForce);
    await world.until("handed on", () => joining.formed.length > 0);
    const { frame } = joining.formed[0] as RecordedLinks["formed"][number];
    assert.deepEqual(frame, {
      kind: "formed",
      clusterId,
      firstIndex: 9,
      configuration: inForce,
      firstConfiguration: first,
    });
    joining.links.becomeFormed({ clusterId, firstIndex: 9, configuration: first }, noPromises);
    // Its own log names neither itself nor, were it older, the caller: it calls back all the same.
    await world.until("linked", () => isLinked(n1, "n4") && isLinked(joining, "n1"));
    joining.links.send("n1", [heartbeat(1)]);
    n1.links.send("n4", [heartbeat(2)]);
    await world.until("messages", () => joining.received.length === 1 && n1.received.length === 1);
  });

  test("a node that waits to join lets in the cluster that it joins, and no other", async () => {
    const world = new World();
    const configuration = configurationOf(["n1"], { learners: [memberOf("n4")] });
    const joining = world.create("n4", { joins: "d".repeat(32) });
    await joining.links.start();
    const n1 = await world.formed("n1", configuration);
    await world.until("refused", () => n1.refusals.length > 0);
    assert.equal(n1.refusals[0]?.refusal.code, "wrong_cluster");
    assert.deepEqual([n1.refusals[0]?.isPeerFormed, joining.formed.length], [false, 0]);
  });

  test("a wiped directory under an added id is refused", async () => {
    const world = new World();
    const wiped = world.create("n4", { joins: clusterId, instance: "fresh" });
    await wiped.links.start();
    await world.formed("n1", configurationOf(["n1"], { learners: [memberOf("n4")] }));
    await world.until("told", () => wiped.refusals.length > 0);
    assert.deepEqual([wiped.refusals[0]?.refusal.code, wiped.refusals[0]?.isPeerFormed], ["wrong_instance", true]);
    assert.equal(wiped.formed.length, 0);
  });

  test("a node whose log is behind takes calls from members that it doesn't know yet, and forgets them when they go", async () => {
    const world = new World();
    const behind = await world.formed("n1", configurationOf(["n1", "n2"]));
    const newer = await world.formed("n5", configurationOf(["n1", "n5"]));
    await world.until("linked", () => isLinked(behind, "n5") && isLinked(newer, "n1"));
    behind.links.send("n5", [heartbeat(1)]);
    await world.until("answered", () => newer.received.length === 1);
    assert.equal(newer.refusals.length, 0);
    const closed = newer.links.close();
    await world.clock.pass(1_000);
    await closed;
    await world.until("forgotten", () => behind.log.some(({ text }) => text.startsWith("n5 is no member any more")));
  });

  test("a link with a directory that another was added for ends, and the other one is called", async () => {
    const world = new World();
    const before = configurationOf(["n1", "n2"]);
    const n1 = await world.formed("n1", before);
    // Of an addition that was cut off.
    const stray = await world.formed("n5", before, { port: 55, saysAddress: true });
    await world.until("linked", () => isLinked(n1, "n5"));
    const added = world.create("n5", { joins: clusterId, instance: "another" });
    await added.links.start();
    const after = configurationOf(["n1", "n2"], { learners: [{ ...memberOf("n5"), instance: "another" }] });
    n1.links.noteConfiguration(after, before);
    n1.links.noteConfiguration(after, after);
    await world.until("handed on", () => added.formed.length > 0);
    assert.equal(n1.links.met().get("n5")?.instance, "another");
    await world.until("refused", () => stray.refusals.length > 0);
    assert.equal(stray.refusals[0]?.refusal.code, "wrong_instance");
  });

  test("a node whose own log gives its id to another directory knows it, with nobody there to refuse it", async () => {
    const world = new World();
    const before = configurationOf(["n1", "n5"]);
    const stray = await world.formed("n5", before);
    const after = configurationOf(["n1"], { learners: [{ ...memberOf("n5"), instance: "another" }] });
    stray.links.noteConfiguration(after, before);
    assert.deepEqual(stray.replaced, [], "an entry that isn't committed may be cut off again");
    stray.links.noteConfiguration(after, after);
    assert.deepEqual(stray.replaced, ["another"]);
    const gone = await world.formed("n1", configurationOf(["n5"], { removed: ["n1"] }));
    gone.links.noteConfiguration(before, before);
    assert.deepEqual(gone.replaced, []);
  });

  test("a removed node is told so when that is committed, and not before; its links stay for a moment", async () => {
    const world = new World();
    const before = configurationOf(["n1", "n2", "n3"]);
    const after = configurationOf(["n1", "n2"], { removed: ["n3"] });
    const n1 = await world.formed("n1", before);
    const n3 = await world.formed("n3", before);
    await world.until("linked", () => isLinked(n1, "n3") && isLinked(n3, "n1"));
    n1.links.noteConfiguration(after, before);
    await world.clock.pass(10_000);
    assert.equal(isLinked(n1, "n3"), true, "an entry that isn't committed may be cut off again");
    n1.links.noteConfiguration(after, after);
    await world.clock.pass(1_000);
    n1.links.send("n3", [heartbeat(5)]);
    await world.until("the leader's last word", () => n3.received.length === 1);
    await world.until("refused", () => n3.refusals.length > 0);
    assert.deepEqual(n3.refusals[0], {
      refusal: {
        from: "n1",
        code: "removed",
        problem: "n3 was removed from this cluster, and an id never comes back",
      },
      isPeerFormed: true,
    });
    assert.equal(n1.links.figures().links, 0);
    await world.clock.pass(5_000);
    assert.equal(n1.links.figures().links, 0, "it isn't called any more");
  });

  test("a member that comes back into force before its links are closed keeps them", async () => {
    const world = new World();
    const with4 = configurationOf(["n1"], { learners: [memberOf("n4")] });
    const without = configurationOf(["n1"]);
    const n1 = await world.formed("n1", with4);
    const n4 = await world.formed("n4", with4);
    await world.until("linked", () => isLinked(n1, "n4"));
    n1.links.noteConfiguration(without, without);
    await world.clock.pass(1_000);
    n1.links.noteConfiguration(with4, without);
    await world.clock.pass(10_000);
    assert.equal(isLinked(n1, "n4"), true);
    assert.deepEqual([n4.gone, n4.refusals], [[], []]);
  });
});
