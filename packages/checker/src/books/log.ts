/** The committed log, and what the first node that told its effects said of each entry. */
import type { EventOf, HistoryEvent } from "../history.js";

export interface Committed {
  readonly event: EventOf<"committed">;
  readonly position: number;
}

export interface Applied {
  readonly event: EventOf<"applied">;
  readonly position: number;
}

export class LogBook {
  /** In log order. */
  readonly entries: Committed[] = [];
  private readonly firstIndex: number;
  private readonly reports: Map<number, Applied> = new Map();

  constructor(firstIndex: number) {
    this.firstIndex = firstIndex;
  }

  note(event: HistoryEvent, position: number): void {
    if (event.kind === "committed") this.entries.push({ event, position });
    if (event.kind === "applied" && event.effects !== null && !this.reports.has(event.index))
      this.reports.set(event.index, { event, position });
  }

  entryAt(index: number): Committed | null {
    return this.entries[index - this.firstIndex] ?? null;
  }

  /** Null: no node has told the effects of this entry. */
  reportOf(index: number): Applied | null {
    return this.reports.get(index) ?? null;
  }

  get isEmpty(): boolean {
    return this.entries.length === 0;
  }
}
