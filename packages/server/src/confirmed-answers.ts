/**
 * Answers to clients that a quorum round has confirmed. There may be thousands at once, and some take a millisecond: after a failover every
 * client resumes its sessions at the new leader, and each is told all that it holds. They are given one by one until the turn is long.
 * An answer that waits is no older for it: it tells what is applied when it is given.
 */
import { Fifo } from "./fifo.js";
import type { QuorumRounds, RoundCallbacks } from "./quorum-rounds.js";

export class ConfirmedAnswers {
  private readonly rounds: Pick<QuorumRounds, "gather">;
  private readonly waiting = new Fifo<RoundCallbacks>();
  /** That were ever confirmed. */
  private confirmed = 0;

  constructor(rounds: Pick<QuorumRounds, "gather">) {
    this.rounds = rounds;
  }

  get isEmpty(): boolean {
    return this.waiting.length === 0;
  }

  /** The number of the newest one; they count from 1. */
  get newest(): number {
    return this.confirmed;
  }

  /** `onReady` runs in the turn in which the round is confirmed, or in a later one; `onFailed` when leadership is lost before. */
  gather(onReady: () => void, onFailed: () => void): void {
    this.rounds.gather(() => {
      this.confirmed += 1;
      this.waiting.push({ onReady, onFailed });
    }, onFailed);
  }

  /** Whether that answer, and all that came before it, have been given. */
  hasGiven(answer: number): boolean {
    return this.confirmed - this.waiting.length >= answer;
  }

  /** One at least. */
  give(isLong: () => boolean): void {
    for (let next = this.waiting.shift(); next !== undefined; next = this.waiting.shift()) {
      next.onReady();
      if (isLong()) return;
    }
  }

  /** Leadership is lost: they aren't worth an answer any more. */
  failAll(): void {
    for (let next = this.waiting.shift(); next !== undefined; next = this.waiting.shift()) next.onFailed();
  }
}
