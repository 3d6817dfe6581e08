/**
 * Rule 9 at a leader, at the moment of a change: an entry of its own term is committed before it (Ongaro's correction of thesis 4.1), so is
 * the configuration before, and who is promoted has caught up.
 */
import type { Event, NodeId, Raft } from "@holdfast/raft";
import { demand } from "./invariant-error.js";
import type { DurableView } from "./watched-node.js";

const rule = "configuration";

/** What a learner may be behind when it gets a vote: the core's own bound, said once more (promotionLagMax). */
const lagMax = 1_000;

/** Of one life of a node. */
export class Changes {
  readonly #id: NodeId;
  readonly #diskOf: (id: NodeId) => DurableView | null;
  #lastIndex = 0;
  #configurationIndex = 0;
  readonly #heard = new Set<NodeId>();
  #term = 0;

  constructor(id: NodeId, diskOf: (id: NodeId) => DurableView | null) {
    this.#id = id;
    this.#diskOf = diskOf;
  }

  beforeStep(raft: Raft, event: Event): void {
    this.#lastIndex = raft.lastIndex;
    if (raft.term !== this.#term) this.#heard.clear();
    this.#term = raft.term;
    if (event.kind === "received") this.#heard.add(event.from);
    if (event.kind === "changeMembers") this.#configurationIndex = raft.status().configurationIndex;
  }

  afterStep(raft: Raft, event: Event): void {
    if (raft.role !== "leader" || raft.lastIndex === this.#lastIndex) return;
    const newest = raft.entryAt(raft.lastIndex);
    if (newest === null || newest.kind !== "configuration") return;
    demand(raft.termAt(raft.commitIndex) === raft.term, rule, () => {
      return `${this.#id} changes the members at ${newest.index}, and has committed nothing of its term ${raft.term}`;
    });
    if (event.kind !== "changeMembers") return;
    demand(this.#configurationIndex <= raft.commitIndex, rule, () => {
      return `${this.#id} changes the members at ${newest.index}, and the change at ${this.#configurationIndex} is open`;
    });
    for (const id of event.change.promote) this.#checkPromoted(raft, id);
  }

  #checkPromoted(raft: Raft, id: NodeId): void {
    const disk = this.#diskOf(id);
    const last = disk?.last ?? null;
    const isNear = last !== null && raft.lastIndex - 1 - last.index <= lagMax;
    // Without an entry of the leader's term it can't acknowledge the change that gives it a vote.
    demand(isNear && last.term >= raft.term && this.#heard.has(id), rule, () => {
      const end = last === null ? "nothing" : `${last.index} of term ${last.term}`;
      return `${this.#id} promotes ${id} in term ${raft.term}, which has not caught up: its disk ends at ${end} of ${raft.lastIndex}`;
    });
  }
}
