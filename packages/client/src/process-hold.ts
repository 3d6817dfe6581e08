/** Keeps the process alive while a caller awaits an answer, and only then: held locks and idle sockets don't. */
import type { Clock } from "./ports.js";

export class ProcessHold {
  private count = 0;
  private readonly clock: Clock;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  get isHeld(): boolean {
    return this.count > 0;
  }

  begin(): void {
    this.count += 1;
    if (this.count === 1) this.clock.keepProcess(true);
  }

  end(): void {
    this.count -= 1;
    if (this.count === 0) this.clock.keepProcess(false);
  }
}
