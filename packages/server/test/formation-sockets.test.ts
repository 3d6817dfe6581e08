import { strict as assert } from "node:assert";
import { afterEach, describe, test } from "node:test";
import type { Store } from "@holdfast/storage";
import { durableFactsOf, formedFactsOf, Formation } from "../src/formation.js";
import type { FormedNode } from "../src/formation.js";
import type { FormedFacts } from "../src/peer-hello.js";
import { createPeerLinks } from "../src/peer-links.js";
import type { ServerPeerLinks } from "../src/peer-links.js";
import { directoryOn, diskFor, ids, restoredFrom } from "./formation-harness.js";
import type { CrashPoint, Disk, Id } from "./formation-harness.js";
import { freePorts, memoryLogger, until } from "./helpers.js";
import { realLinkParts } from "./peer-harness.js";

/** Formation over real sockets, put together as a node does it. */
class SocketNode {
  readonly id: Id;
  readonly disk: Disk;
  readonly links: ServerPeerLinks;
  facts: FormedFacts | null = null;
  resets = 0;
  isUp = true;
  private readonly formation: Formation | null;
  private readonly ports: Readonly<Record<Id, number>>;

  constructor(id: Id, disk: Disk, ports: Readonly<Record<Id, number>>, crashAt: CrashPoint | null) {
    this.id = id;
    this.disk = disk;
    this.ports = ports;
    disk.boot += 1;
    const parts = realLinkParts(memoryLogger());
    this.links = createPeerLinks(
      {
        self: {
          id,
          instance: disk.instance,
          boot: disk.boot,
          listen: { host: "127.0.0.1", port: ports[id] },
          versions: { min: 1, max: 1 },
        },
        cluster: "test",
        peers: ids.filter((each) => each !== id).map((each) => ({ id: each, address: `127.0.0.1:${ports[each]}` })),
        secret: null,
        electionTimeoutMs: 500,
        bufferedBytesMax: 32 * 1024 * 1024,
      },
      parts,
      {
        onMessages: () => undefined,
        onPeerGone: () => undefined,
        onPeerReset: () => (this.resets += 1),
        onRefused: (refusal) => assert.fail(`${refusal.from} refuses ${id}: ${refusal.problem}`),
        onReplaced: () => undefined,
        onMet: () => this.formation?.onMet(),
        onFormed: (from, frame) => this.formation?.onFormed(from, frame),
      },
    );
    if (disk.formed !== null) {
      this.formation = null;
      this.onFormed({ clusterId: disk.formed.clusterId, store: {} as Store, restored: restoredFrom(disk.formed.base) });
      return;
    }
    this.formation = new Formation(
      {
        self: { id, instance: disk.instance },
        nodes: ids.map((each) => ({ id: each, peer: `127.0.0.1:${ports[each]}`, client: "x:2" })),
        firstIndex: 1,
      },
      {
        ...parts,
        directory: directoryOn(disk, crashAt, () => void this.crash()),
        links: this.links,
        drawClusterId: () => "the-cluster",
      },
    );
    void this.formation.formed.then((node) => this.onFormed(node));
  }

  async start(): Promise<void> {
    await this.links.start();
    this.formation?.start();
  }

  async crash(): Promise<void> {
    this.isUp = false;
    this.formation?.stop();
    await this.links.abandon();
  }

  private onFormed({ clusterId, restored }: FormedNode): void {
    if (!this.isUp) return;
    this.facts = formedFactsOf(clusterId, restored, restored.base.configuration);
    this.links.becomeFormed(this.facts, durableFactsOf(restored));
    assert.ok(this.ports[this.id] > 0);
  }
}

describe("forming a cluster over sockets", () => {
  const running: SocketNode[] = [];
  afterEach(async () => {
    await Promise.all(running.splice(0).map((node) => node.crash()));
  });

  async function ports(): Promise<Record<Id, number>> {
    const [n1 = 0, n2 = 0, n3 = 0] = await freePorts(3);
    return { n1, n2, n3 };
  }

  async function startNode(
    id: Id,
    disk: Disk,
    all: Readonly<Record<Id, number>>,
    crashAt: CrashPoint | null = null,
  ): Promise<SocketNode> {
    const node = new SocketNode(id, disk, all, crashAt);
    running.push(node);
    await node.start();
    return node;
  }

  for (const victim of [null, ...ids]) {
    for (const point of victim === null
      ? [null]
      : (["before its copy is durable", "after its copy is durable"] as const)) {
      test(victim === null ? "three nodes" : `${victim} dies ${point}, and comes back`, async () => {
        const all = await ports();
        const disks = ids.map((id) => diskFor(id));
        const nodes = await Promise.all(
          ids.map((id, at) => startNode(id, disks[at] as Disk, all, id === victim ? point : null)),
        );
        if (victim !== null) {
          const at = ids.indexOf(victim);
          await until(() => nodes[at]?.isUp === false, "the crash");
          await nodes[at]?.crash();
          nodes[at] = await startNode(victim, disks[at] as Disk, all);
        }
        await until(() => nodes.every((node) => node.facts !== null), "formed");
        await until(
          () =>
            nodes.every(
              (node) =>
                node.links.met().size === 2 &&
                [...node.links.met().values()].every((peer) => peer.clusterId === "the-cluster"),
            ),
          "all linked as members",
        );
        assert.equal(new Set(disks.map((disk) => JSON.stringify(disk.formed))).size, 1);
      });
    }
  }
});
