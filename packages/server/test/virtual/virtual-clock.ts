/** Time that passes only when it is told to. Events at one time run in the order of their making. */
import type { Clock, Timer } from "../../src/ports.js";

interface Scheduled {
  readonly atMs: number;
  readonly sequence: number;
  readonly run: () => void;
  cancelled: boolean;
}

export class VirtualClock {
  nowMs = 1_000;
  private sequence = 0;
  private events: Scheduled[] = [];

  at(atMs: number, run: () => void): Timer {
    const event: Scheduled = { atMs: Math.max(atMs, this.nowMs), sequence: this.sequence, run, cancelled: false };
    this.sequence += 1;
    let place = this.events.length;
    while (place > 0 && (this.events[place - 1] as Scheduled).atMs > event.atMs) place -= 1;
    this.events.splice(place, 0, event);
    return {
      cancel: () => {
        event.cancelled = true;
      },
    };
  }

  after(delayMs: number, run: () => void): Timer {
    return this.at(this.nowMs + delayMs, run);
  }

  /** Runs what is due within `ms`, promises' continuations included. */
  async pass(ms: number): Promise<void> {
    const end = this.nowMs + ms;
    for (;;) {
      const next = this.events[0];
      if (next === undefined || next.atMs > end) break;
      this.events.shift();
      this.nowMs = Math.max(this.nowMs, next.atMs);
      if (!next.cancelled) next.run();
      for (let turn = 0; turn < 4; turn += 1) await Promise.resolve();
    }
    this.nowMs = end;
  }

  /** Passes time until `condition` holds. */
  async until(what: string, condition: () => boolean, limitMs: number): Promise<void> {
    const end = this.nowMs + limitMs;
    while (!condition()) {
      if (this.nowMs >= end) throw new Error(`not within ${limitMs} virtual ms: ${what}`);
      await this.pass(1);
    }
  }
}

/** One process's view of the clock: it can be paused, and what was due meanwhile comes late and all at once, as after SIGSTOP. */
export class ProcessClock implements Clock {
  private readonly clock: VirtualClock;
  private pausedUntilMs = 0;
  private isDead = false;

  constructor(clock: VirtualClock) {
    this.clock = clock;
  }

  monotonicMs(): number {
    return this.clock.nowMs;
  }

  wallMs(): number {
    return 1_700_000_000_000 + this.clock.nowMs;
  }

  setTimer(delayMs: number, run: () => void): Timer {
    let timer: Timer;
    let cancelled = false;
    const fire = (): void => {
      if (this.isDead || cancelled) return;
      if (this.clock.nowMs < this.pausedUntilMs) timer = this.clock.at(this.pausedUntilMs, fire);
      else run();
    };
    timer = this.clock.after(Math.max(0, delayMs), fire);
    return {
      cancel: () => {
        cancelled = true;
        timer.cancel();
      },
    };
  }

  setImmediate(run: () => void): void {
    this.setTimer(0, run);
  }

  /** Nothing of this process runs until then. */
  pause(ms: number): void {
    this.pausedUntilMs = this.clock.nowMs + ms;
  }

  get isPaused(): boolean {
    return this.clock.nowMs < this.pausedUntilMs;
  }

  kill(): void {
    this.isDead = true;
  }

  get isKilled(): boolean {
    return this.isDead;
  }

  /** Runs when the process can: at once, or at the end of its pause. */
  deliver(run: () => void): void {
    this.setTimer(0, run);
  }
}
