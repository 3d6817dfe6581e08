import { strict as assert } from "node:assert";
import { describe, test } from "node:test";
import { allFormed, noPromises, recordLinks } from "./peer-harness.js";
import type { LinkSetup, RecordedLinks } from "./peer-harness.js";
import { append, heartbeat, memoryLogger } from "./helpers.js";
import { MemoryNetwork } from "./virtual/memory-network.js";
import { ProcessClock, VirtualClock } from "./virtual/virtual-clock.js";

/** Two nodes that have dialled each other over memory alone. */
class Pair {
  readonly clock = new VirtualClock();
  readonly a: RecordedLinks;
  readonly b: RecordedLinks;
  private names = 0;
  private readonly network = new MemoryNetwork(this.clock);

  constructor() {
    this.a = this.create({ id: "n1", port: 1, peers: { n2: 2 } });
    this.b = this.create({ id: "n2", port: 2, peers: { n1: 1 } });
  }

  async link(): Promise<void> {
    for (const { links } of [this.a, this.b]) {
      await links.start();
      links.becomeFormed(allFormed, noPromises);
    }
    const areLinked = (): boolean => [this.a, this.b].every(({ links }) => links.figures().links === 4);
    await this.clock.until("all lanes are open", areLinked, 1_000);
  }

  private create(setup: LinkSetup): RecordedLinks {
    const logger = memoryLogger();
    const random = { integer: (below: number) => below >> 1 };
    const drawName = (): string => `process-${(this.names += 1)}`;
    const { transport } = this.network;
    return recordLinks(
      setup,
      { clock: new ProcessClock(this.clock), random, logger, transport, drawName, clusterVersion: () => 1 },
      logger.lines,
    );
  }
}

async function linked(): Promise<Pair> {
  const pair = new Pair();
  await pair.link();
  return pair;
}

describe("peer links over a network in memory", () => {
  test("carry messages both ways, each lane in order", async () => {
    const { a, b, clock } = await linked();
    for (let n = 1; n <= 3; n += 1) a.links.send("n2", [append(n, 10), heartbeat(n)]);
    b.links.send("n1", [heartbeat(7)]);
    await clock.until("all messages", () => b.received.length === 6 && a.received.length === 1, 100);
    const rounds = b.received.flatMap(({ message }) => (message.kind === "heartbeat" ? [message.round] : []));
    assert.deepEqual(rounds, [1, 2, 3]);
  });

  test("tell a death, once, and no death after a goodbye", async () => {
    const { a, b, clock } = await linked();
    await b.links.abandon();
    await clock.until("its death is told", () => a.gone.length > 0, 1_000);
    await clock.pass(5_000);
    assert.deepEqual([a.gone.length, b.gone], [1, []]);

    const next = await linked();
    const closed = next.b.links.close();
    await next.clock.pass(5_000);
    await closed;
    assert.deepEqual([next.a.gone, next.a.links.met().size], [[], 0]);
  });

  test("pause after a call that is given up, and link all the same", async () => {
    const { a, b, clock } = new Pair();
    await a.links.start();
    await b.links.start();
    // Their first calls are under way: becoming formed gives them up.
    for (const { links } of [a, b]) links.becomeFormed(allFormed, noPromises);
    await clock.pass(10);
    assert.deepEqual([a.links.figures().links, b.links.figures().links], [0, 0]);
    await clock.until("linked", () => a.links.met().size === 1 && b.links.met().size === 1, 1_000);
    assert.deepEqual([a.gone, b.gone], [[], []]);
  });
});
