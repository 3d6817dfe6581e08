/** A held lock, as its holder sees it. */
import type { Grant, Mode, Token } from "@holdfast/lock";
import type { LockLossReason } from "./errors.js";
import type { ReleaseOptions } from "./options.js";

/** `jeopardy`: a renewal has failed, and the lease still runs. */
export type LockState = "held" | "jeopardy" | "lost" | "released";

export type ReleaseResult = "released" | "already-released" | "already-lost";

/** What a guard is handed: the resource's name and the token it must not be older than. */
export interface Fence {
  readonly resource: string;
  readonly token: Token;
}

export interface Lock {
  /** Sorted, without duplicates. */
  readonly names: readonly string[];
  /** The only name. Throws invalid_argument when there are several. */
  readonly name: string;
  readonly mode: Mode;
  /** Per name: its token, and its slot if it is a semaphore's place. */
  readonly grants: readonly Grant[];
  /** The fencing token. Throws invalid_argument for a shared lock on several names, which bears several: see fence(name). */
  readonly token: Token;
  /** The place of a semaphore, else null. */
  readonly slot: number | null;
  /** Looks at the clock afresh, as remainingMs and assertHeld do: never "held" when the lease is over. */
  readonly state: LockState;
  /** Why it was lost; null unless it is. */
  readonly lossReason: LockLossReason | null;
  /**
   * Aborts once: at the loss (with a LockLostError), or already in jeopardy with stopOn "jeopardy"; of a loss after that only `state`
   * tells. A release doesn't abort it.
   */
  readonly signal: AbortSignal;
  /** For how long the lock is surely held if nothing renews it; 0 when it is lost or released. */
  remainingMs(): number;
  /**
   * Throws LockLostError when the lock is lost or has less than `minMs` left, already_released when it is released. What comes after
   * this check can still be late: only the guard at the resource decides.
   */
  assertHeld(minMs?: number): void;
  /** `name` is needed when there are several. */
  fence(name?: string): Fence;
  /**
   * Name, mode, slot and token in one printable text that the cluster has signed, to be handed on to the resource: nobody can make one up. `name` is
   * needed when there are several. Signed on demand: a call asks the leader. Rejects with LockLostError and already_released, and with incompatible
   * while the cluster signs none.
   */
  sequencer(name?: string): Promise<string>;
  /**
   * Renews the lease now; resolves when that is acknowledged. Rejects with LockLostError when the lease ends first, and with
   * already_released. Needed only for locks acquired with renew "manual".
   */
  renew(): Promise<void>;
  /**
   * Idempotent, and never rejects for a loss; takes no longer than one TTL: if the cluster has not confirmed by then, the result is
   * "already-lost". The release stands all the same: the lock is free when it gets through, or at the end of the lease.
   */
  release(options?: ReleaseOptions): Promise<ReleaseResult>;
  /** As release(), for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
