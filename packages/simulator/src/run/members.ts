/**
 * Who belongs to the cluster, as the all-seeing watch knows it. Several configurations may be in force at once, each at some node: the
 * newest committed one, and later ones that may yet be committed or cut off. What is said of majorities holds for all of them.
 */
import type { Configuration, Member, NodeId } from "@holdfast/raft";
import type { SimulatedNode } from "../node/simulated-node.js";
import type { World } from "./world.js";

export class Members {
  readonly #world: World;
  readonly #first: Configuration;

  /** `firstIds`: of the configuration file. */
  constructor(world: World, firstIds: readonly NodeId[]) {
    this.#world = world;
    const voters = firstIds.map((id) => memberFor(id, ""));
    this.#first = { voters, outgoing: [], learners: [], removed: [] };
  }

  /** The newest committed one; before formation what the file says. */
  get configuration(): Configuration {
    return this.#world.watch.configuration ?? this.#first;
  }

  /** Of any configuration that may be in force: voters, those that a change removes, and learners. */
  get nodes(): readonly SimulatedNode[] {
    const ids = new Set(this.#live.flatMap(idsOf));
    return this.#world.nodes.filter(({ id }) => ids.has(id));
  }

  isMember(id: NodeId): boolean {
    return this.#live.some((each) => idsOf(each).includes(id));
  }

  /** That is committed. */
  isRemoved(id: NodeId): boolean {
    return this.configuration.removed.includes(id);
  }

  /** Whether those of whom it is true are a majority in each configuration that may be in force. */
  isQuorum(isIn: (node: SimulatedNode) => boolean): boolean {
    return this.#live.every(({ voters, outgoing }) => {
      return this.isMajority(voters, isIn) && (outgoing.length === 0 || this.isMajority(outgoing, isIn));
    });
  }

  isMajority(voters: readonly Member[], isIn: (node: SimulatedNode) => boolean): boolean {
    const count = voters.filter(({ id }) => {
      const node = this.#world.node(id);
      return node !== null && isIn(node);
    }).length;
    return 2 * count > voters.length;
  }

  /** Clients may know no others: one of the first nodes stays, unspoilt, for as long as the run lasts. */
  get firstMembers(): readonly SimulatedNode[] {
    const first = new Set(this.#first.voters.map(({ id }) => id));
    return this.nodes.filter((node) => first.has(node.id) && !node.isSpoilt && this.isVoter(node.id));
  }

  isVoter(id: NodeId): boolean {
    return this.configuration.voters.some((voter) => voter.id === id);
  }

  get #live(): readonly Configuration[] {
    const { liveConfigurations } = this.#world.watch;
    return liveConfigurations.length === 0 ? [this.#first] : liveConfigurations;
  }
}

/** As the configuration file of a run, or a joining node's arguments, have it. */
export function memberFor(id: NodeId, instance: string): Member {
  return { id, instance, peer: `${id}:7201`, client: `${id}:7101` };
}

function idsOf({ voters, outgoing, learners }: Configuration): NodeId[] {
  return [...voters, ...outgoing, ...learners].map(({ id }) => id);
}
