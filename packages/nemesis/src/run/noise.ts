/**
 * When the machine itself kept the nodes or the harness waiting, with no fault of ours: an election then proves nothing against the service,
 * and what took longer for it, took longer by that much.
 */
import { machineMs } from "../clock.js";

interface Wait {
  readonly from: number;
  readonly to: number;
}

/** The harness carries every byte: when its loop is late, so is the network. */
const lookEveryMs = 50;
/** Below half an election timeout nobody stands for election because of it. */
const waitMsMin = 200;

export class Noise {
  private readonly waits: Wait[] = [];
  private readonly timer: NodeJS.Timeout;
  private lastAt = machineMs();

  constructor() {
    this.timer = setInterval(() => this.look(), lookEveryMs).unref();
  }

  stop(): void {
    clearInterval(this.timer);
  }

  /** It has just ended. */
  note(ms: number): void {
    const to = machineMs();
    if (ms >= waitMsMin) this.waits.push({ from: to - ms, to });
  }

  /** Of all waits that touch this stretch, each for as long as it lasted. */
  msWithin(from: number, to: number): number {
    return this.waits
      .filter((wait) => wait.to >= from && wait.from <= to)
      .reduce((sum, wait) => sum + wait.to - wait.from, 0);
  }

  /** Whether something that happened then can have come of a wait shortly before. */
  explains(at: number, withinMs: number): boolean {
    return this.waits.some((wait) => wait.from <= at && at <= wait.to + withinMs);
  }

  private look(): void {
    const lateMs = machineMs() - this.lastAt - lookEveryMs;
    this.lastAt = machineMs();
    this.note(lateMs);
  }
}
