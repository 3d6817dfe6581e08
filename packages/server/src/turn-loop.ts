/**
 * When a turn runs, and what time it is in it. A turn runs after the sockets that are readable now have been read once; it is asked for by
 * whatever comes in, by what the turn before has left, and by the one timer.
 */
import type { Clock } from "./ports.js";
import { TurnTimer } from "./turn-timer.js";

/** A turn's time: timers, sockets and heartbeats get theirs in between. */
const turnMsMax = 10;

/** What is done in a turn. */
export interface TurnWork {
  /** `isTimerDue`: the timer has fired since the last turn. */
  turn(isTimerDue: boolean): void;
  /** Whether a turn has left something to the next one. */
  hasMore(): boolean;
  /** When the next turn is due though nothing comes in; infinity when none is. */
  nextDeadlineMs(): number;
  /** The loop was stuck for so long, and nobody could be heard. */
  onStall(lateMs: number): void;
  /** A turn has thrown: an invariant is broken. */
  onBroken(error: unknown): void;
}

export interface TurnLoopOptions {
  /** The armed timer is late by more than this: a stall. */
  readonly stallMs: number;
}

export class TurnLoop {
  private readonly options: TurnLoopOptions;
  private readonly clock: Clock;
  private readonly work: TurnWork;
  private readonly timer: TurnTimer;
  private readAtMs: number;
  private isScheduled = false;
  private isInTurn = false;
  private hasStopped = false;

  constructor(options: TurnLoopOptions, clock: Clock, work: TurnWork) {
    this.options = options;
    this.clock = clock;
    this.work = work;
    this.readAtMs = clock.monotonicMs();
    this.timer = new TurnTimer(clock, () => this.schedule());
  }

  /** When this turn, or the wait for the next one, began. */
  get nowMs(): number {
    return this.readAtMs;
  }

  get isStopped(): boolean {
    return this.hasStopped;
  }

  /** What can wait shall be left to the next turn. */
  get isTurnLong(): boolean {
    return this.clock.monotonicMs() - this.readAtMs > turnMsMax;
  }

  /** Whether that, and as long again since now: for what must get on in each turn, however long the rest of it takes. */
  share(): () => boolean {
    const fromMs = this.clock.monotonicMs();
    return () => this.clock.monotonicMs() - fromMs > turnMsMax;
  }

  schedule(): void {
    if (this.isScheduled || this.isInTurn || this.hasStopped) return;
    this.isScheduled = true;
    this.clock.setImmediate(() => {
      this.isScheduled = false;
      this.runTurn();
    });
  }

  /** No turn begins after this one. */
  stop(): void {
    this.hasStopped = true;
    this.timer.cancel();
  }

  private runTurn(): void {
    if (this.hasStopped) return;
    this.guardedTurn();
    if (this.hasStopped) return;
    // A turn may be the stall itself: the timer that it has held up is about to be set anew.
    this.readClock();
    if (this.work.hasMore()) this.schedule();
    this.timer.arm(this.work.nextDeadlineMs());
  }

  private guardedTurn(): void {
    this.isInTurn = true;
    try {
      this.readClock();
      this.work.turn(this.timer.takeDue());
    } catch (error) {
      this.work.onBroken(error);
    } finally {
      this.isInTurn = false;
    }
  }

  private readClock(): void {
    this.readAtMs = this.clock.monotonicMs();
    const lateMs = this.timer.lateMs(this.readAtMs);
    if (lateMs <= this.options.stallMs) return;
    this.timer.restart(this.readAtMs);
    this.work.onStall(lateMs);
  }
}
