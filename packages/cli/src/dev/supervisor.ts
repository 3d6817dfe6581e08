/** Starts the nodes of a local cluster, says what happens to them, and stops them. */
import { NodeProcess } from "./node-process.js";
import type { NodeEnd, NodeProcessOptions } from "./node-process.js";

/** A node that was asked to stop hands its leadership over and closes its database first. */
const stopLimitMs = 10_000;

export interface SupervisorEvents {
  /** A node ended without having been asked to. `running`: how many are left. */
  onEnded(end: NodeEnd, node: NodeProcess, running: number): void;
}

export class Supervisor {
  readonly nodes: readonly NodeProcess[];
  /** Resolves when no node runs any more. */
  readonly allEnded: Promise<void>;
  #isStopping = false;

  constructor(nodes: readonly NodeProcessOptions[], events: SupervisorEvents) {
    this.nodes = nodes.map((options) => new NodeProcess(options));
    const ends = this.nodes.map(async (node) => {
      const end = await node.ended;
      if (!this.#isStopping) events.onEnded(end, node, this.running);
    });
    this.allEnded = Promise.all(ends).then(() => undefined);
  }

  get running(): number {
    return this.nodes.filter((node) => node.isRunning).length;
  }

  /** SIGTERM to all, SIGKILL to what is left after a while. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const node of this.nodes) node.kill("SIGTERM");
    const timer = setTimeout(() => this.killAll(), stopLimitMs);
    await this.allEnded;
    clearTimeout(timer);
  }

  killAll(): void {
    this.#isStopping = true;
    for (const node of this.nodes) node.kill("SIGKILL");
  }
}
