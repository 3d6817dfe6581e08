/** Keeps the process alive while a caller awaits something of the cluster, and only then: held locks and idle sockets don't. */
import type { Clock } from "./ports.js";

export class ProcessHold {
  private answers = 0;
  private news = 0;
  private readonly clock: Clock;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Somebody waits for an answer that is due now: a node that is silent is suspected soon. */
  get isHeld(): boolean {
    return this.answers > 0;
  }

  begin(): void {
    this.answers += 1;
    if (this.answers + this.news === 1) this.clock.keepProcess(true);
  }

  end(): void {
    this.answers -= 1;
    if (this.answers + this.news === 0) this.clock.keepProcess(false);
  }

  /** Somebody waits for news, which may be long in coming. */
  beginWatching(): void {
    this.news += 1;
    if (this.answers + this.news === 1) this.clock.keepProcess(true);
  }

  endWatching(): void {
    this.news -= 1;
    if (this.answers + this.news === 0) this.clock.keepProcess(false);
  }
}
