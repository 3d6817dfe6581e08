/** The nodes that are well from the healing on, as long as they belong to the cluster: one that a change removes goes, one that it brings comes. */
import type { SimulatedNode } from "../node/simulated-node.js";
import type { World } from "./world.js";

export class Core {
  readonly #world: World;
  readonly #nodes: Set<SimulatedNode>;
  readonly #broken: ReadonlySet<SimulatedNode>;

  /** `broken`: those that are left out, for ever. */
  constructor(world: World, nodes: Iterable<SimulatedNode>, broken: Iterable<SimulatedNode>) {
    this.#world = world;
    this.#nodes = new Set(nodes);
    this.#broken = new Set(broken);
  }

  get nodes(): readonly SimulatedNode[] {
    const { members } = this.#world;
    return [...this.#nodes].filter(({ id }) => members.isMember(id) && !members.isRemoved(id));
  }

  /** Whether somebody was left out. */
  get isPart(): boolean {
    return this.#broken.size > 0;
  }

  add(node: SimulatedNode): void {
    this.#nodes.add(node);
  }

  has(node: SimulatedNode): boolean {
    return this.nodes.includes(node);
  }

  /** Removed nodes that still run, though they could hear of it. */
  get unaware(): readonly SimulatedNode[] {
    const { nodes, members } = this.#world;
    const core = this.nodes.map(({ id }) => id);
    return nodes.filter((node) => {
      if (!node.isRunning || this.#broken.has(node) || !members.isRemoved(node.id)) return false;
      // Whom it knows: without a configuration it waits for a call that nobody makes any more.
      return node.memberIds.some((id) => core.includes(id));
    });
  }
}
