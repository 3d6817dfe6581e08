/** Time that passes only when it is told to. Events at one time run in the order of their making. */
import type { Clock, Timer } from "../../src/ports.js";

const timerMsMin = 0.1;

interface Scheduled {
  readonly atMs: number;
  readonly sequence: number;
  readonly run: () => void;
  cancelled: boolean;
}

export class VirtualClock {
  nowMs = 1_000;
  private sequence = 0;
  /** A binary heap, the earliest first. */
  private readonly events: Scheduled[] = [];

  at(atMs: number, run: () => void): Timer {
    const event: Scheduled = { atMs: Math.max(atMs, this.nowMs), sequence: this.sequence, run, cancelled: false };
    this.sequence += 1;
    this.push(event);
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
    for (let next = this.popDue(end); next !== undefined; next = this.popDue(end)) {
      this.nowMs = Math.max(this.nowMs, next.atMs);
      if (next.cancelled) continue;
      next.run();
      for (let turn = 0; turn < 4; turn += 1) await Promise.resolve();
    }
    this.nowMs = Math.max(this.nowMs, end);
  }

  /** Passes time until `condition` holds. */
  async until(what: string, condition: () => boolean, limitMs: number): Promise<void> {
    const end = this.nowMs + limitMs;
    while (!condition()) {
      if (this.nowMs >= end) throw new Error(`not within ${limitMs} virtual ms: ${what}`);
      await this.pass(1);
    }
  }

  private push(event: Scheduled): void {
    const { events } = this;
    let at = events.length;
    events.push(event);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(event, events[parent] as Scheduled)) break;
      events[at] = events[parent] as Scheduled;
      at = parent;
    }
    events[at] = event;
  }

  private popDue(end: number): Scheduled | undefined {
    const { events } = this;
    const first = events[0];
    if (first === undefined || first.atMs > end) return undefined;
    const last = events.pop() as Scheduled;
    if (events.length > 0) this.sink(last);
    return first;
  }

  private sink(event: Scheduled): void {
    const { events } = this;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= events.length) break;
      if (child + 1 < events.length && isBefore(events[child + 1] as Scheduled, events[child] as Scheduled)) child += 1;
      if (!isBefore(events[child] as Scheduled, event)) break;
      events[at] = events[child] as Scheduled;
      at = child;
    }
    events[at] = event;
  }
}

function isBefore(a: Scheduled, b: Scheduled): boolean {
  return a.atMs !== b.atMs ? a.atMs < b.atMs : a.sequence < b.sequence;
}

/** One process's view of the clock: it can be paused, and what was due meanwhile comes late and all at once, as after SIGSTOP. */
export class ProcessClock implements Clock {
  private readonly clock: VirtualClock;
  /** How fast its time passes: 1.001 gains a millisecond in a second. */
  private readonly rate: number;
  private pausedUntilMs = 0;
  /** What was due during a pause, in its order. */
  private frozen: (() => void)[] = [];
  private isDead = false;

  constructor(clock: VirtualClock, rate = 1) {
    this.clock = clock;
    this.rate = rate;
  }

  monotonicMs(): number {
    return this.clock.nowMs * this.rate;
  }

  wallMs(): number {
    return 1_700_000_000_000 + this.clock.nowMs;
  }

  /** As in Node no timer fires in the turn that set it: whoever sets one for now, again and again, gets on all the same. */
  setTimer(delayMs: number, run: () => void): Timer {
    return this.schedule(Math.max(timerMsMin, delayMs), run);
  }

  private schedule(delayMs: number, run: () => void): Timer {
    let timer: Timer;
    let cancelled = false;
    const dueMs = this.monotonicMs() + delayMs;
    const fire = (): void => {
      if (this.isDead || cancelled) return;
      if (this.isPaused) this.frozen.push(fire);
      // Rounding: a timer is never early.
      else if (this.monotonicMs() < dueMs) timer = this.clock.after(0.001, fire);
      else run();
    };
    timer = this.clock.after(delayMs / this.rate, fire);
    return {
      cancel: () => {
        cancelled = true;
        timer.cancel();
      },
    };
  }

  setImmediate(run: () => void): void {
    this.schedule(0, run);
  }

  /** Nothing of this process runs until then. */
  pause(ms: number): void {
    this.pausedUntilMs = Math.max(this.pausedUntilMs, this.clock.nowMs + ms);
    this.clock.at(this.pausedUntilMs, () => this.thaw());
  }

  resume(): void {
    this.pausedUntilMs = this.clock.nowMs;
    this.thaw();
  }

  private thaw(): void {
    if (this.isPaused) return;
    for (const fire of this.frozen.splice(0)) this.clock.at(this.clock.nowMs, fire);
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
    this.schedule(0, run);
  }
}
