/**
 * Elections: whoever holds the lock leads, and its token tells one term from another. A term that is lost ends, and its candidate stands
 * again; what a deposed leader still does is a matter for the guard, as with any lock.
 */
import { LockLostError } from "./errors.js";
import type { LockHandle } from "./lock-handle.js";
import type { Fence, LockState, ReleaseResult } from "./lock.js";
import type { HoldOptions } from "./options.js";
import type { Logger } from "./ports.js";
import { runBody } from "./run-body.js";

/** What lead and elect take: those of a hold but for the mode. An abort of `signal` ends the campaign, and is handed on to the term. */
export type ElectionOptions = Omit<HoldOptions, "mode">;

/** A leadership, from its grant to its end. Guards take it as they take a lock. */
export interface Term {
  readonly name: string;
  /** Greater than that of every term before. */
  readonly token: number;
  /** Aborts when the term is lost, or with the signal that was passed in. */
  readonly signal: AbortSignal;
  readonly state: LockState;
  /** For how long it surely goes on if nothing renews it. */
  remainingMs(): number;
  /** As Lock.assertHeld. */
  assertHeld(minMs?: number): void;
  fence(): Fence;
  /** As Lock.sequencer. */
  sequencer(): Promise<string>;
  /** Gives the leadership back before its body has ended. Never rejects for a loss. */
  resign(): Promise<ReleaseResult>;
}

/** Waits for the lock without limit. */
export type Campaign = (name: string, options: ElectionOptions) => Promise<LockHandle>;

class LeaderTerm implements Term {
  readonly signal: AbortSignal;
  private readonly lock: LockHandle;

  constructor(lock: LockHandle, signal: AbortSignal | undefined) {
    this.lock = lock;
    this.signal = signal === undefined ? lock.signal : AbortSignal.any([lock.signal, signal]);
  }

  get name(): string {
    return this.lock.name;
  }

  get token(): number {
    return this.lock.token;
  }

  get state(): LockState {
    return this.lock.state;
  }

  remainingMs(): number {
    return this.lock.remainingMs();
  }

  assertHeld(minMs?: number): void {
    this.lock.assertHeld(minMs);
  }

  sequencer(): Promise<string> {
    return this.lock.sequencer();
  }

  fence(): Fence {
    return this.lock.fence();
  }

  resign(): Promise<ReleaseResult> {
    return this.lock.release();
  }
}

/**
 * Campaigns, leads, and campaigns again after a loss. Resolves with what the body returns in a term that it kept, rejects with what it
 * throws in one, with `signal.reason` when that aborts a campaign.
 */
export async function lead<T>(
  campaign: Campaign,
  name: string,
  options: ElectionOptions,
  body: (term: Term) => T | PromiseLike<T>,
  logger: Logger,
): Promise<T> {
  for (;;) {
    const lock = await campaign(name, options);
    try {
      return await runBody(lock, () => body(new LeaderTerm(lock, options.signal)));
    } catch (error) {
      if (!(error instanceof LockLostError) || !lock.wasLostWhileHeld) throw error;
      // Mostly the body's own end at the loss; if it is another trouble, it shall not be lost as well.
      logger.warn({ lock: name, token: lock.token, reason: error.reason, error: error.cause }, "leadership lost");
    }
  }
}

/** A term after another. The loop's next turn, or its end, gives the last one back. */
export async function* elect(campaign: Campaign, name: string, options: ElectionOptions): AsyncGenerator<Term, never> {
  for (;;) {
    const lock = await campaign(name, options);
    try {
      yield new LeaderTerm(lock, options.signal);
    } finally {
      await lock.release();
    }
  }
}
