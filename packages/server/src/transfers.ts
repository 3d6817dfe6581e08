/** Leadership transfers that somebody waits for. */
import type { NodeAddress } from "@holdfast/wire";

interface Waiting {
  readonly untilMs: number;
  readonly onEnded: (leader: NodeAddress | null) => void;
}

export class Transfers {
  private waiting: Waiting[] = [];

  get nextDeadlineMs(): number {
    return this.waiting.reduce((earliest, { untilMs }) => Math.min(earliest, untilMs), Number.POSITIVE_INFINITY);
  }

  /** `onEnded` gets the successor, or null when there is none by then. */
  add(untilMs: number, onEnded: (leader: NodeAddress | null) => void): void {
    this.waiting.push({ untilMs, onEnded });
  }

  /** A transfer has ended when another leader is known, or its time is over. */
  settle(nowMs: number, successor: () => NodeAddress | null): void {
    if (this.waiting.length === 0) return;
    const leader = successor();
    const ended = leader === null ? this.waiting.filter(({ untilMs }) => nowMs >= untilMs) : this.waiting;
    if (ended.length === 0) return;
    this.waiting = this.waiting.filter((one) => !ended.includes(one));
    for (const { onEnded } of ended) onEnded(leader);
  }
}
