/**
 * Answers to clients that a quorum round has confirmed. There may be thousands at once, and some take a millisecond: after a failover every
 * client resumes its sessions at the new leader, and each is told all that it holds. They are given one by one until the turn is long; what
 * a lease may hang on goes first, so that no flood of questions makes it wait. An answer that waits is no older for it: it tells what is
 * applied when it is given.
 */
import { Fifo } from "./fifo.js";
import type { QuorumRounds, RoundCallbacks } from "./quorum-rounds.js";

export class ConfirmedAnswers {
  private readonly rounds: Pick<QuorumRounds, "gather" | "gatherPatiently">;
  private readonly ofLeases = new Fifo<RoundCallbacks>();
  private readonly questions = new Fifo<RoundCallbacks>();
  /** Of leases, that were ever confirmed. */
  private confirmed = 0;

  constructor(rounds: Pick<QuorumRounds, "gather" | "gatherPatiently">) {
    this.rounds = rounds;
  }

  get isEmpty(): boolean {
    return this.ofLeases.length === 0 && this.questions.length === 0;
  }

  /** The number of the newest one that a lease may hang on; they count from 1. */
  get newestOfLeases(): number {
    return this.confirmed;
  }

  /** `onReady` runs in the turn in which the round is confirmed, or in a later one; `onFailed` when leadership is lost before. */
  gather(onReady: () => void, onFailed: () => void): void {
    this.rounds.gather(() => this.questions.push({ onReady, onFailed }), onFailed);
  }

  /** The same for what a lease may hang on: a resume, behind which a keepalive may wait. */
  gatherForLease(onReady: () => void, onFailed: () => void): void {
    this.rounds.gather(() => this.pushForLease({ onReady, onFailed }), onFailed);
  }

  /** The same for an expiry: its round has time, and no resume that was confirmed before it is overtaken. */
  gatherExpiry(onReady: () => void, onFailed: () => void): void {
    this.rounds.gatherPatiently(() => this.pushForLease({ onReady, onFailed }), onFailed);
  }

  /** Whether that one, and all of leases that came before it, have been given. */
  hasGiven(ofLease: number): boolean {
    return this.confirmed - this.ofLeases.length >= ofLease;
  }

  /** One of each kind at least. */
  give(isLong: () => boolean): void {
    giveFrom(this.ofLeases, isLong);
    giveFrom(this.questions, isLong);
  }

  /** Leadership is lost: they aren't worth an answer any more. */
  failAll(): void {
    for (const waiting of [this.ofLeases, this.questions]) {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) next.onFailed();
    }
  }

  private pushForLease(callbacks: RoundCallbacks): void {
    this.confirmed += 1;
    this.ofLeases.push(callbacks);
  }
}

function giveFrom(waiting: Fifo<RoundCallbacks>, isLong: () => boolean): void {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    next.onReady();
    if (isLong()) return;
  }
}
