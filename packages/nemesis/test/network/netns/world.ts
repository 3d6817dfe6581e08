/** A network of namespaces in which n1 and w1 have dialled n2. */
import { NetnsNetwork } from "../../../src/network/netns/netns-network.js";
import type { Rules } from "../../../src/network/netns/filter.js";
import { until } from "../../until.js";
import { startTalker } from "./talkers.js";
import type { Talker } from "./talkers.js";

export const parties = { nodes: ["n1", "n2", "n3"], workers: ["w1"] };

export class World {
  readonly network: NetnsNetwork;
  readonly n1: Talker;
  readonly n2: Talker;
  readonly w1: Talker;

  private constructor(network: NetnsNetwork) {
    this.network = network;
    this.n1 = startTalker(network, "n1");
    this.n2 = startTalker(network, "n2");
    this.w1 = startTalker(network, "w1");
  }

  static async open(rules: Rules): Promise<World> {
    const world = new World(await NetnsNetwork.open(parties, rules));
    await world.n2.ask({ ask: "listen", address: world.network.bindAddress("n2", "peer") });
    for (const viewer of ["n1", "w1"] as const) {
      const talker = world[viewer];
      await talker.ask({ ask: "dial", address: world.network.addressOf(viewer, "n2", "peer") });
      await until(`${viewer} has reached n2`, async () => (await talker.ask({ ask: "state" })).connected);
    }
    return world;
  }

  /** Bytes that this party has got from anybody. */
  async received(party: "n1" | "n2" | "w1"): Promise<number> {
    return (await this[party].ask({ ask: "state" })).received;
  }

  async close(): Promise<void> {
    await Promise.all([this.n1, this.n2, this.w1].map((talker) => talker.end()));
    await this.network.close();
  }
}
