/**
 * What a leader may only do after a quorum round (rules 15 and 17): it proposes an expiry after a round that began when the session's silence had
 * been heard out, and confirms nothing while it hands its leadership over.
 */
import type { Event, NodeId, Output, Raft } from "@holdfast/raft";
import { decodeCommand } from "@holdfast/wire";
import { demand } from "./invariant-error.js";
import { Recent } from "./recent.js";

const remembered = 4_096;

/** Of one life of a node. */
export class Rounds {
  readonly #id: NodeId;
  readonly #electionTimeoutMs: number;
  #term = 0;
  /** Counts what happens to the core. */
  #position = 0;
  #nowMs = 0;
  /** When rounds were asked for, and of those that have ended the one asked for last. */
  readonly #asked = new Recent<number, number>(remembered);
  #confirmed = 0;
  /** When the last eighth of a session's silence was proposed. */
  readonly #suspected = new Recent<number, number>(remembered);
  #handingOverSinceMs: number | null = null;
  /** What was confirmed before the transfer began may still have to come out. */
  #isOutputOld = false;

  constructor(id: NodeId, electionTimeoutMs: number) {
    this.#id = id;
    this.#electionTimeoutMs = electionTimeoutMs;
  }

  afterStep(raft: Raft, event: Event): void {
    if (raft.term !== this.#term) this.#forget(raft.term);
    this.#position += 1;
    this.#nowMs = event.nowMs;
    if (event.kind === "confirm") this.#asked.set(event.id, this.#position);
    else if (event.kind === "transfer") this.#onTransfer(raft);
    else if (event.kind === "propose" && event.proposal.decidedInTerm !== null)
      this.#onDecision(event.proposal.payload);
  }

  afterOutput({ confirmed }: Output): void {
    const sinceMs = this.#handingOverSinceMs;
    if (sinceMs !== null && this.#nowMs - sinceMs >= this.#electionTimeoutMs) this.#handingOverSinceMs = null;
    const isSilent = this.#handingOverSinceMs !== null && !this.#isOutputOld;
    this.#isOutputOld = false;
    demand(!isSilent || confirmed.length === 0, "quorum-round", () => {
      return `${this.#id} confirms what it leads in term ${this.#term} while it hands its leadership over`;
    });
    for (const { id } of confirmed) this.#confirmed = Math.max(this.#confirmed, this.#asked.get(id) ?? 0);
  }

  #onTransfer(raft: Raft): void {
    if (raft.role !== "leader" || this.#handingOverSinceMs !== null || raft.status().transferTo === null) return;
    this.#handingOverSinceMs = this.#nowMs;
    this.#isOutputOld = true;
  }

  #onDecision(payload: Uint8Array): void {
    const command = decodeCommand(payload);
    if (command.kind === "suspectSessions") for (const id of command.ids) this.#suspected.set(id, this.#position);
    if (command.kind !== "expireSessions") return;
    for (const id of command.ids) {
      const since = this.#suspected.get(id) ?? 0;
      demand(this.#confirmed > since, "quorum-round", () => {
        return `${this.#id} ends session ${id} in term ${this.#term}, and no quorum round has begun since its time was over`;
      });
    }
  }

  #forget(term: number): void {
    this.#term = term;
    this.#confirmed = 0;
    this.#position = 0;
    this.#suspected.clear();
    this.#handingOverSinceMs = null;
  }
}
