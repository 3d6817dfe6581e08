/** Whom a step means, when it begins. */
import type { Party } from "../network/network.js";
import type { Role, WayRoles } from "../scenario/scenario.js";
import { until } from "../until.js";
import type { DirectedPair } from "./links.js";
import { prober } from "./world.js";
import type { World } from "./world.js";

/** A new leader may just be on its way, and a lock between two holders. */
const foundMs = 30_000;

export class Cast {
  private readonly world: World;
  private readonly nodes: readonly Party[];
  /** The leader first, then the others by id. */
  private readonly ranked: readonly Party[];

  private constructor(world: World, leader: Party) {
    this.world = world;
    this.nodes = [...world.nodes.keys()];
    this.ranked = [leader, ...this.nodes.filter((id) => id !== leader)];
  }

  static async of(world: World): Promise<Cast> {
    const leader = await until("a leader to do something to", foundMs, async () => {
      const statuses = [...(await world.askAll()).values()];
      const leaders = statuses.filter(({ role }) => role === "leader").sort((a, b) => b.term - a.term);
      return leaders[0]?.id ?? null;
    });
    return new Cast(world, leader);
  }

  async partiesOf(roles: readonly Role[]): Promise<readonly Party[]> {
    const found = await Promise.all(roles.map((role) => this.party(role, null)));
    return [...new Set(found.flat())];
  }

  /** Each once, and none from a party to itself. */
  async waysOf(roles: readonly WayRoles[]): Promise<readonly DirectedPair[]> {
    const pairs: DirectedPair[] = [];
    for (const { from, to, both } of roles) {
      const fromParties = from === "others" ? [] : await this.party(from, null);
      const toParties = to === "others" ? [] : await this.party(to, null);
      const starts = from === "others" ? await this.party(from, toParties) : fromParties;
      const ends = to === "others" ? await this.party(to, fromParties) : toParties;
      for (const start of starts) {
        for (const end of ends) {
          pairs.push({ from: start, to: end });
          if (both) pairs.push({ from: end, to: start });
        }
      }
    }
    return distinct(pairs);
  }

  async waysBetween(groups: readonly (readonly Role[])[]): Promise<readonly DirectedPair[]> {
    const parties = await Promise.all(groups.map((roles) => this.partiesOf(roles)));
    const pairs = parties.flatMap((group, at) =>
      parties.flatMap((other, otherAt) =>
        at === otherAt ? [] : group.flatMap((from) => other.map((to): DirectedPair => ({ from, to }))),
      ),
    );
    // Clients say nothing to one another.
    return distinct(pairs.filter(({ from, to }) => this.nodes.includes(from) || this.nodes.includes(to)));
  }

  /** `others`: whom the role `others` leaves out. */
  private async party(role: Role, others: readonly Party[] | null): Promise<readonly Party[]> {
    const { world, nodes, ranked } = this;
    switch (role) {
      case "leader":
        return ranked.slice(0, 1);
      case "follower":
        return ranked.slice(1, 2);
      case "followers":
        return ranked.slice(1);
      case "nodes":
        return nodes;
      case "others":
        return nodes.filter((id) => others?.includes(id) !== true);
      case "workers":
        return world.workerNames;
      case "clients":
        return [...world.workerNames, prober];
      case "holder":
        return [await this.holder()];
      default: {
        const [, rank] = /^follower(\d+)$/.exec(role) ?? [];
        return rank === undefined ? [role] : ranked.slice(Number(rank), Number(rank) + 1);
      }
    }
  }

  private holder(): Promise<Party> {
    return until("a worker that holds a lock", foundMs, () => {
      return this.world.workerNames.find((name) => this.world.worker(name).holding !== null) ?? null;
    });
  }
}

function distinct(pairs: readonly DirectedPair[]): readonly DirectedPair[] {
  const known = new Map(pairs.filter(({ from, to }) => from !== to).map((pair) => [`${pair.from} ${pair.to}`, pair]));
  return [...known.values()];
}
