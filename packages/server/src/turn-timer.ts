/**
 * The host's one timer, and the measure of a stall: how late the earliest armed timer comes up. The time since the last turn would be
 * none, for an idle leader is no stall.
 */
import type { Clock, Timer } from "./ports.js";

export class TurnTimer {
  private readonly clock: Clock;
  private readonly onDue: () => void;
  private armedFor: number = Number.POSITIVE_INFINITY;
  private timer: Timer | null = null;
  private isDue = false;

  constructor(clock: Clock, onDue: () => void) {
    this.clock = clock;
    this.onDue = onDue;
  }

  /** How late it is at `nowMs`; negative when it isn't due. */
  lateMs(nowMs: number): number {
    return nowMs - this.armedFor;
  }

  /** The lateness was seen: what follows is measured from here. */
  restart(nowMs: number): void {
    this.armedFor = nowMs;
  }

  /** Whether it has fired since the last call. A due timer only marks; the turn after it decides. */
  takeDue(): boolean {
    const isDue = this.isDue;
    this.isDue = false;
    return isDue;
  }

  arm(deadlineMs: number): void {
    if (deadlineMs === this.armedFor && this.timer !== null) return;
    const nowMs = this.clock.monotonicMs();
    // It fires as soon as it can: set anew at the end of each turn it never would, while turns follow one another.
    if (this.timer !== null && this.armedFor <= nowMs && deadlineMs <= nowMs) return;
    this.cancel();
    this.armedFor = Math.max(deadlineMs, nowMs);
    if (!Number.isFinite(deadlineMs)) return;
    this.timer = this.clock.setTimer(Math.max(0, deadlineMs - nowMs), () => {
      this.timer = null;
      this.isDue = true;
      this.onDue();
    });
  }

  cancel(): void {
    this.timer?.cancel();
    this.timer = null;
  }
}
