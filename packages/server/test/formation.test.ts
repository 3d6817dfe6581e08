import { strict as assert } from "node:assert";
import { afterEach, describe, test } from "node:test";
import { createSystemClock } from "../src/clock.js";
import { formedFactsOf, Formation } from "../src/formation.js";
import type { Metrics } from "../src/metrics.js";
import { NodeAnswers, newNodeState } from "../src/node-answers.js";
import type { FormedFacts } from "../src/peer-hello.js";
import type { MetPeer } from "../src/peer-links.js";
import { directoryOn, diskFor, ids, restoredFrom } from "./formation-harness.js";
import type { CrashPoint, Disk, Id } from "./formation-harness.js";
import { memoryLogger, sleep, until } from "./helpers.js";
import { configOf } from "./node-harness.js";

/** A node whose links a test moves by hand. */
const versions = { min: 1, max: 1 };

class MemoryNode {
  readonly id: Id;
  readonly disk: Disk;
  readonly log = memoryLogger();
  formation: Formation | null = null;
  facts: FormedFacts | null = null;
  isUp = false;

  constructor(id: Id, disk: Disk) {
    this.id = id;
    this.disk = disk;
  }

  start(network: MemoryNetwork, crashAt: CrashPoint | null = null, firstIndex = 1): void {
    this.isUp = true;
    if (this.disk.formed !== null) {
      const { clusterId, base } = this.disk.formed;
      this.facts = formedFactsOf(clusterId, restoredFrom(base), base.configuration);
      network.meet();
      return;
    }
    const formation = new Formation(
      {
        self: { id: this.id, instance: this.disk.instance },
        nodes: ids.map((id) => ({ id, peer: `${id}:1`, client: `${id}:2` })),
        firstIndex,
      },
      {
        directory: directoryOn(this.disk, crashAt, () => this.crash()),
        links: { met: () => network.metBy(this) },
        clock: createSystemClock(),
        logger: this.log,
        drawClusterId: () => `cluster-${(network.drawn += 1)}`,
      },
    );
    this.formation = formation;
    void formation.formed.then(({ clusterId, restored }) => {
      if (!this.isUp || this.formation !== formation) return;
      this.facts = formedFactsOf(clusterId, restored, restored.base.configuration);
      this.formation = null;
      network.meet();
    });
    formation.start();
    network.meet();
  }

  crash(): void {
    this.isUp = false;
    this.formation?.stop();
    this.formation = null;
    this.facts = null;
  }
}

/** Everybody who is up meets everybody; a formed node hands on what it has, as peer-links does. */
class MemoryNetwork {
  readonly nodes: MemoryNode[];
  drawn = 0;

  constructor(nodes: MemoryNode[]) {
    this.nodes = nodes;
  }

  metBy(self: MemoryNode): ReadonlyMap<string, MetPeer> {
    const met = new Map<string, MetPeer>();
    for (const node of this.nodes) {
      if (node === self || !node.isUp) continue;
      met.set(node.id, { instance: node.disk.instance, clusterId: node.facts?.clusterId ?? null, versions });
    }
    return met;
  }

  meet(): void {
    for (const node of this.nodes) if (node.isUp) node.formation?.onMet();
    for (const from of this.nodes) {
      for (const to of this.nodes) {
        const { facts } = from;
        if (from === to || facts === null || !to.isUp || to.formation === null) continue;
        const isMember = facts.configuration.voters.some(
          ({ id, instance }) => id === to.id && instance === to.disk.instance,
        );
        if (isMember) to.formation.onFormed(from.id, { kind: "formed", ...facts });
      }
    }
  }

  node(id: Id): MemoryNode {
    const node = this.nodes.find((each) => each.id === id);
    assert.ok(node);
    return node;
  }

  isFormed(): boolean {
    return this.nodes.every((node) => node.facts !== null);
  }

  assertOneCluster(): void {
    const first = this.nodes[0]?.disk.formed;
    assert.ok(first);
    for (const node of this.nodes) assert.deepEqual(node.disk.formed, first, `${node.id} has the same beginning`);
    assert.deepEqual(
      first.base.configuration.voters.map(({ id, instance }) => [id, instance]),
      this.nodes.map(({ id, disk }) => [id, disk.instance]),
    );
  }
}

const started: MemoryNetwork[] = [];

function network(): MemoryNetwork {
  const made = new MemoryNetwork(ids.map((id) => new MemoryNode(id, diskFor(id))));
  started.push(made);
  return made;
}

describe("forming a cluster", () => {
  afterEach(() => {
    for (const { nodes } of started.splice(0)) for (const node of nodes) node.crash();
  });

  test("waits for all nodes, then the lowest id makes the only configuration", async () => {
    const net = network();
    net.node("n3").start(net);
    net.node("n2").start(net);
    await sleep(20);
    assert.deepEqual(
      net.nodes.map((node) => node.facts),
      [null, null, null],
      "two of three form nothing",
    );
    net.node("n1").start(net);
    await until(() => net.isFormed(), "formed");
    net.assertOneCluster();
    assert.equal(net.drawn, 1);
    assert.deepEqual(net.node("n1").disk.formed?.base.position, { term: 0, index: 0 });
  });

  for (const victim of ids) {
    for (const point of ["before its copy is durable", "after its copy is durable"] as const) {
      test(`${victim} dies ${point}, and comes back`, async () => {
        const net = network();
        for (const id of ids) net.node(id).start(net, id === victim ? point : null);
        await until(() => !net.node(victim).isUp, "the crash");
        await sleep(10);
        net.node(victim).start(net);
        await until(() => net.isFormed(), "formed");
        net.assertOneCluster();
        // If the maker's first try left no trace, it draws a second id and the first one is nowhere.
        assert.equal(net.drawn, victim === "n1" && point === "before its copy is durable" ? 2 : 1);
      });
    }
  }

  test("the maker dies for good after it has handed on to one: that one hands on to the third", async () => {
    const net = network();
    const third = net.node("n3");
    for (const id of ids) net.node(id).start(net, id === "n3" ? "before its copy is durable" : null);
    await until(() => net.node("n2").facts !== null && !third.isUp, "n2 has it, n3 doesn't");
    net.node("n1").crash();
    third.start(net);
    await until(() => third.facts !== null, "n3 is formed");
    assert.deepEqual(third.disk.formed, net.node("n2").disk.formed);
  });

  test("a node that was wiped meanwhile takes no configuration that names another instance", async () => {
    const net = network();
    for (const id of ids) net.node(id).start(net, id === "n3" ? "before its copy is durable" : null);
    await until(() => net.node("n2").facts !== null && !net.node("n3").isUp, "n3 died");
    const wiped = new MemoryNode("n3", diskFor("n3", "another"));
    net.nodes[2] = wiped;
    wiped.start(net);
    const { facts } = net.node("n1");
    assert.ok(facts);
    wiped.formation?.onFormed("n1", { kind: "formed", ...facts });
    await sleep(20);
    assert.deepEqual([wiped.facts, wiped.disk.formed], [null, null]);
    assert.ok(
      wiped.log.lines.some(
        ({ text, facts: said }) =>
          text === "refused a first configuration" &&
          /doesn't name n3 with instance another/.test(String(said["reason"])),
      ),
    );
  });

  test("the lowest id, wiped, makes no second cluster beside the first", async () => {
    const net = network();
    for (const id of ids) net.node(id).start(net);
    await until(() => net.isFormed(), "formed");
    net.node("n1").crash();
    const wiped = new MemoryNode("n1", diskFor("n1", "another"));
    net.nodes[0] = wiped;
    wiped.start(net);
    await sleep(20);
    assert.deepEqual([wiped.disk.formed, net.drawn], [null, 1]);
  });

  test("begins above the fences of a lost cluster, and never below", async () => {
    const net = network();
    net.node("n1").start(net, null, 5_000);
    net.node("n2").start(net, null, 5_000);
    net.node("n3").start(net);
    await until(() => net.isFormed(), "formed");
    assert.deepEqual(net.node("n3").disk.formed?.base.position, { term: 0, index: 4_999 });
    const low = network();
    low.node("n1").start(low);
    low.node("n2").start(low, null, 5_000);
    low.node("n3").start(low);
    await until(() => low.node("n3").facts !== null, "n3 is formed");
    await sleep(10);
    assert.equal(low.node("n2").facts, null, "n2 was told to begin higher");
    assert.ok(low.node("n2").log.lines.some(({ facts }) => /told to begin at 5000/.test(String(facts["reason"]))));
    const refused = low.node("n2").formation?.refused ?? null;
    assert.match(refused?.problem ?? "", /^its log begins at 1, and this node was told to begin at 5000/);
    for (const id of ["n1", "n3"] as const) low.node(id).crash();
    assert.equal(low.node("n2").formation?.refused, null, "whoever offered it is gone");
  });

  test("a cluster that begins too low is told at /readyz and to the doctor", async () => {
    const problem = "its log begins at 1, and this node was told to begin at 5000";
    const options = { config: await configOf(3), nodeId: "n2", dataDirectory: "d", version: "1.0.0" };
    const formation = { refused: { from: "n1", problem } } as unknown as Formation;
    const parts = { clock: createSystemClock(), metrics: {} as unknown as Metrics };
    const answers = new NodeAnswers(options, parts, { ...newNodeState(), formation });
    assert.equal(answers.health().problem, `the cluster is not formed yet: refused that of n1: ${problem}`);
    assert.deepEqual(answers.checkup().refusedBeginning, { from: "n1", problem });
  });

  test("a cluster of one forms at once", async () => {
    const disk = diskFor("n1");
    const formation = new Formation(
      {
        self: { id: "n1", instance: disk.instance },
        nodes: [{ id: "n1", peer: "n1:1", client: "n1:2" }],
        firstIndex: 1,
      },
      {
        directory: directoryOn(disk, null, () => undefined),
        links: { met: () => new Map() },
        clock: createSystemClock(),
        logger: memoryLogger(),
        drawClusterId: () => "only",
      },
    );
    formation.start();
    assert.equal((await formation.formed).clusterId, "only");
  });

  test("a node that joins makes no cluster, and takes only what names it in the cluster that it joins", async () => {
    const disk = diskFor("n1");
    const logger = memoryLogger();
    const self = { id: "n1", instance: disk.instance, peer: "n1:1", client: "n1:2" };
    const formation = new Formation(
      { self, nodes: [self], firstIndex: 1, joins: "theirs" },
      {
        directory: directoryOn(disk, null, () => undefined),
        links: { met: () => new Map() },
        clock: createSystemClock(),
        logger,
        drawClusterId: () => assert.fail("it makes no cluster"),
      },
    );
    formation.start();
    assert.equal(logger.lines[0]?.text, "n1 waits to be added: holdfast member add n1 --peer n1:1 --client n1:2");
    const none = { voters: [], outgoing: [], learners: [], removed: [] };
    const other = { id: "n9", instance: "i", peer: "n9:1", client: "n9:2" };
    const configuration = { ...none, voters: [other], learners: [self] };
    const firstConfiguration = { ...none, voters: [other] };
    const frame = { kind: "formed", clusterId: "theirs", firstIndex: 5, configuration, firstConfiguration } as const;
    formation.onFormed("n9", { ...frame, clusterId: "another" });
    formation.onFormed("n9", { ...frame, configuration: firstConfiguration });
    assert.deepEqual(
      logger.lines.filter(({ text }) => text === "refused a first configuration").map(({ facts }) => facts["reason"]),
      ["this node waits to join cluster id theirs", `it doesn't name n1 with instance ${disk.instance}`],
    );
    formation.onFormed("n9", frame);
    const { restored } = await formation.formed;
    assert.deepEqual(restored.base.configuration, firstConfiguration, "as of the log's beginning");
    assert.equal(restored.base.position.index, 4);
    formation.stop();
  });

  test("a storage error ends it", async () => {
    const formation = new Formation(
      { self: { id: "n1", instance: "i" }, nodes: [{ id: "n1", peer: "n1:1", client: "n1:2" }], firstIndex: 1 },
      {
        directory: { form: () => Promise.reject(new Error("disk full")) },
        links: { met: () => new Map() },
        clock: createSystemClock(),
        logger: memoryLogger(),
        drawClusterId: () => "only",
      },
    );
    formation.start();
    await assert.rejects(formation.formed, /disk full/);
  });

  test("a node that waits says for whom", () => {
    let due: () => void = () => undefined;
    const logger = memoryLogger();
    const clock = {
      ...createSystemClock(),
      setTimer: (_: number, run: () => void) => ({ cancel: (due = run) && (() => undefined) }),
    };
    const formation = new Formation(
      {
        self: { id: "n1", instance: "i" },
        nodes: ids.map((id) => ({ id, peer: "x:1", client: "x:2" })),
        firstIndex: 1,
      },
      {
        directory: { form: () => Promise.reject(new Error("too early")) },
        links: { met: () => new Map([["n3", { instance: "j", clusterId: null, versions }]]) },
        clock,
        logger,
        drawClusterId: () => "only",
      },
    );
    formation.start();
    due();
    due();
    assert.deepEqual(
      logger.lines.map(({ text }) => text),
      ["waiting for n2 to form the cluster", "waiting for n2 to form the cluster"],
    );
    formation.stop();
  });
});
