/** What a node's host does, as events of the history: entries committed and applied, leadership, stalls. The watch compares states. */
import type { Effect } from "@holdfast/lock";
import type { NodeHost } from "@holdfast/server";
import type { Recorder } from "../recorder.js";
import { probed } from "./host-access.js";
import type { ProbedHost } from "./host-access.js";

export class HostTap {
  readonly #node: string;
  readonly #parts: ProbedHost;
  readonly #recorder: Recorder;
  #applied: number;
  #term = 0;
  #isLeader = false;

  constructor(node: string, host: NodeHost, recorder: Recorder) {
    this.#node = node;
    this.#parts = probed(host);
    this.#recorder = recorder;
    this.#applied = this.#lastApplied;
    recorder.emit({ kind: "started", node, index: this.#applied });
    this.#watchProposals();
  }

  get #lastApplied(): number {
    return this.#parts.applier.lastApplied;
  }

  get isLeader(): boolean {
    return this.#isLeader;
  }

  /** Right after the machine has applied an entry that is a command. */
  noteEffects(effects: readonly Effect[]): void {
    this.#recorder.noteCommitted(this.#parts.raft);
    this.#noteApplied(this.#lastApplied - 1);
    this.#emitApplied(this.#lastApplied, effects);
    this.#applied = this.#lastApplied;
  }

  afterEvent(): void {
    this.#recorder.noteCommitted(this.#parts.raft);
    this.#noteApplied(this.#lastApplied);
    this.#noteRole();
  }

  noteLog(text: string, facts: object): void {
    const { term, index, durationMs } = facts as { term?: number; index?: number; durationMs?: number };
    const node = this.#node;
    if (text === "serving as leader") {
      this.#recorder.noteCommitted(this.#parts.raft);
      this.#noteApplied(this.#lastApplied);
      this.#noteRole();
      this.#recorder.emit({ kind: "serving", node, term: term ?? 0 });
    } else if (text === "snapshot installed") {
      this.#applied = index ?? 0;
      this.#recorder.emit({ kind: "installed", node, index: this.#applied, stateHash: null });
    } else if (text.endsWith("the loop was stalled") && durationMs !== undefined && this.#isLeader) {
      this.#recorder.emit({ kind: "stall", node, ms: Math.max(durationMs, 1) });
    }
  }

  onEnd(): void {
    if (this.#isLeader) this.#recorder.emit({ kind: "deposed", node: this.#node, term: this.#term });
    this.#isLeader = false;
  }

  #noteRole(): void {
    const raft = this.#parts.raft;
    const isLeader = raft.role === "leader";
    if (this.#isLeader && (!isLeader || raft.term !== this.#term)) {
      this.#isLeader = false;
      this.#recorder.emit({ kind: "deposed", node: this.#node, term: this.#term });
    }
    if (isLeader && !this.#isLeader) {
      this.#isLeader = true;
      this.#term = raft.term;
      this.#recorder.emit({ kind: "leader", node: this.#node, term: raft.term });
    }
  }

  /** No-ops and configurations have no effects. */
  #noteApplied(through: number): void {
    while (this.#applied < through) {
      this.#applied += 1;
      this.#emitApplied(this.#applied, null);
    }
  }

  #emitApplied(index: number, effects: readonly Effect[] | null): void {
    const entry = this.#parts.raft.entryAt(index as never);
    // Compacted in the turn that applied it: what it was is told by others.
    if (entry === null) return;
    const hash = String(entry.chain);
    this.#recorder.emit({ kind: "applied", node: this.#node, index, hash, stateHash: null, effects });
  }

  /** Remembers in which term a leader's clock decided an entry: the log doesn't say it. */
  #watchProposals(): void {
    const raft = this.#parts.raft;
    const step = raft.step.bind(raft);
    raft.step = (event): void => {
      step(event);
      if (event.kind !== "propose" || event.proposal.decidedInTerm === null) return;
      const last = raft.entryAt(raft.lastIndex);
      if (last === null || last.payload !== event.proposal.payload) return;
      this.#recorder.noteDecision(last.index, last.term, event.proposal.decidedInTerm);
    };
  }
}
