/** Writes the history of a run for the checker, and keeps the last lines of what happened for people. */
import type { HistoryEvent } from "@holdfast/checker";
import type { Raft } from "@holdfast/raft";
import { decodeCommand } from "@holdfast/wire";
import type { UntimedEvent } from "./clients/index.js";
import type { Scheduler } from "./scheduler.js";

export interface TraceLine {
  readonly atMs: number;
  readonly process: string;
  readonly text: string;
}

export class Recorder {
  readonly events: HistoryEvent[] = [];
  /** Only of runs that are to be shown. */
  readonly lines: TraceLine[] | null;
  /** Entries that some node knows to be committed. */
  #committedIndex: number;
  /** "index:term" of entries that a leader's clock decided, and in which term. */
  readonly #decisions = new Map<string, number>();
  readonly #scheduler: Scheduler;

  constructor(scheduler: Scheduler, options: { readonly firstIndex: number; readonly isShown: boolean }) {
    this.#scheduler = scheduler;
    this.#committedIndex = options.firstIndex - 1;
    this.lines = options.isShown ? [] : null;
  }

  get committedIndex(): number {
    return this.#committedIndex;
  }

  emit(event: UntimedEvent): void {
    this.events.push({ ...event, at: this.#scheduler.nowMs });
  }

  /** For people. */
  tell(process: string, text: string, facts: object = {}): void {
    if (this.lines === null) return;
    const shown = Object.entries(facts).map(([name, value]) => `${name}=${String(value)}`);
    this.lines.push({ atMs: this.#scheduler.nowMs, process, text: [text, ...shown].join(" ") });
  }

  noteDecision(index: number, term: number, decidedInTerm: number): void {
    this.#decisions.set(`${index}:${term}`, decidedInTerm);
  }

  /** Tells of the entries that this node knows to be committed, and nobody before it. */
  noteCommitted(raft: Raft): void {
    while (this.#committedIndex < raft.commitIndex) {
      const index = this.#committedIndex + 1;
      const entry = raft.entryAt(index as Parameters<Raft["entryAt"]>[0]);
      // Compacted already: then its commit was told when it happened, or another node will tell.
      if (entry === null) throw new Error(`entry ${index} is committed, and its first knower lacks it`);
      this.#committedIndex = index;
      const key = `${index}:${entry.term}`;
      this.emit({
        kind: "committed",
        index,
        term: entry.term,
        hash: String(entry.chain),
        decidedInTerm: this.#decisions.get(key) ?? null,
        entry:
          entry.kind === "command" ? { kind: "command", command: decodeCommand(entry.payload) } : { kind: entry.kind },
      });
      this.#decisions.delete(key);
    }
  }
}
