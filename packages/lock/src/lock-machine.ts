/**
 * The replicated lock machine. It reads its state and the command and nothing else: no clock, no configuration. It is total: whatever the
 * command, `apply` returns effects; what makes no sense changes nothing, or only what the sender owns.
 *
 * The effects of an entry come in this order:
 * 1. the answer to the command itself (`sessionOpened`, `outcome` or `rejected` of its request, `forced`, `silence`, `expiryRefused`,
 *    `lockDelayEnded`, `clusterVersion`, `signingKeySet`); for a granted acquire with its `holdBegan` and its `changed`, name by name;
 * 2. what ended by it, request by request: the `outcome`, then `changed` name by name; a session's `sessionEnded` after all of its own;
 * 3. the delays begun by it (`lockDelayBegan`), one for a lock;
 * 4. the grants that this made possible, the oldest request first, each as `outcome`, `holdBegan`, `changed` name by name.
 */
import { assert } from "./assert.js";
import { applyCommand } from "./commands.js";
import { tellBegunDelays } from "./delays.js";
import { Entry } from "./entry.js";
import { grantWaiters } from "./granting.js";
import { checkInvariants } from "./invariants.js";
import { closingMs, restoreState } from "./restoring.js";
import { publicKeys } from "./signing-keys.js";
import { SnapshotCursor } from "./snapshot-cursor.js";
import { stateHash } from "./state-hash.js";
import { State } from "./state.js";
import type {
  Command,
  Effect,
  HoldingView,
  LockView,
  LossReason,
  Mode,
  PublicKey,
  ResumeView,
  SessionId,
  SessionView,
  SigningKey,
  Token,
} from "./types.js";
import {
  hasHold,
  holdingView,
  listLocks,
  lockView,
  resumeView,
  runningDelays,
  sessionView,
  sessionViews,
  timedHolds,
  tokenAt,
} from "./views.js";
import type { LockList, RunningDelay, TimedHold } from "./views.js";

export class LockMachine {
  private readonly state: State;
  private cursor: SnapshotCursor | null = null;

  /** An empty machine. SnapshotLoader makes those that aren't. */
  constructor(state: State = new State()) {
    this.state = state;
  }

  /** `index`: of the command's entry; greater than any before. */
  apply(index: number, command: Command): Effect[] {
    const { state } = this;
    assert(Number.isSafeInteger(index) && index > state.lastIndex, "entries are applied in the order of the log");
    state.lastIndex = index;
    const entry = new Entry(index);
    applyCommand(state, entry, command);
    tellBegunDelays(entry);
    grantWaiters(state, entry);
    return entry.effects;
  }

  /** Null when nobody holds it, nobody waits and no delay runs. Shows at most `waitersMax` waiters, and 1,024 holders. */
  lockView(name: string, waitersMax: number): LockView | null {
    return lockView(this.state, name, waitersMax);
  }

  /** The mode in which it is held; null when nobody holds it. */
  modeOf(name: string): Mode | null {
    return this.state.lockFor(name)?.firstHolder?.acquire.mode ?? null;
  }

  /**
   * Locks whose name begins with `prefix` and comes after `after`, in the order of code units; at most `limit`, 1,000, or 10,000 holders
   * and waiters in all, 16 and 4 of each, or what fits in a frame (but always one lock). Looks at every lock once: about 100 ms at a million of them.
   */
  list(prefix: string, after: string, limit: number): LockList {
    return listLocks(this.state, prefix, after, limit);
  }

  sessionView(id: SessionId): SessionView | null {
    return sessionView(this.state, id);
  }

  /** All sessions, in no order that means anything. */
  sessions(): Iterable<SessionView> {
    return sessionViews(this.state);
  }

  /** Null unless the session lives and has this key. */
  resumeView(session: SessionId, key: string): ResumeView | null {
    return resumeView(this.state, session, key);
  }

  /** Why a session has ended; null when it lives, never was, or ended long ago. */
  endReason(session: SessionId): LossReason | null {
    return this.state.endReason(session);
  }

  /** Running lock-delays, for a new leader's timers. In no order that means anything. */
  delays(): Iterable<RunningDelay> {
    return runningDelays(this.state);
  }

  /** Holds with a maxHold, for a new leader's timers. In no order that means anything. */
  timedHolds(): Iterable<TimedHold> {
    return timedHolds(this.state);
  }

  get clusterVersion(): number {
    return this.state.clusterVersion;
  }

  /** No command was ever applied: whatever release runs this cluster, there is nothing yet that another couldn't read. */
  get isUntouched(): boolean {
    return this.state.lastIndex === 0;
  }

  /** Secret. Null before the first one is set. */
  get signingKey(): SigningKey | null {
    return this.state.signingKey;
  }

  /** The current one first, then the newest first. Empty before the first one is set. */
  publicKeys(): PublicKey[] {
    return publicKeys(this.state);
  }

  /** What the session's acquire `of` holds at `name`; null when it holds nothing there, or the session has another key. */
  holdingView(session: SessionId, key: string, of: number, name: string): HoldingView | null {
    return holdingView(this.state, session, key, of, name);
  }

  /** The token of the generation that holds `name` now, or its place `slot`; null when nobody does. */
  tokenAt(name: string, slot: number | null): Token | null {
    return tokenAt(this.state, name, slot);
  }

  /** Whether this hold, as timedHolds tells it, goes on. */
  hasHold(session: SessionId, of: number, token: number): boolean {
    return hasHold(this.state, session, of, token);
  }

  get sessionCount(): number {
    return this.state.sessionCount;
  }

  /** Locks that somebody holds, somebody waits for, or a delay closes. */
  get lockCount(): number {
    return this.state.lockCount;
  }

  /** Granted acquires: one that holds several names counts once. */
  get holdCount(): number {
    return this.state.holdCount;
  }

  /** Waiting acquires: one that waits for several names counts once. */
  get waiterCount(): number {
    return this.state.waiterCount;
  }

  /** Equal on every node that has applied the same entries, from the log or from a snapshot. Walks everything, in order: for tests. */
  stateHash(): string {
    return stateHash(this.state);
  }

  /**
   * Begins a snapshot of the state as it is now; entries may be applied while the cursor walks. One at a time: the former must be at its
   * end or closed.
   */
  beginSnapshot(): SnapshotCursor {
    assert(this.cursor === null || this.cursor.isClosed, "one snapshot is taken at a time");
    this.cursor = new SnapshotCursor(this.state);
    return this.cursor;
  }

  /**
   * Ends everything in it, as of `index`: a cluster made out of a backup begins with that (restoring.ts). Nothing is granted until the
   * leader has waited `closingMs` out. `index` must be above every index of the cluster that the backup was taken of.
   */
  restore(index: number): void {
    assert(
      Number.isSafeInteger(index) && index > this.state.lastIndex,
      "a restored cluster continues above its backup",
    );
    restoreState(this.state, index);
  }

  /**
   * For how many milliseconds a restore of it as it is now would grant nothing: the longest TTL of its sessions and the longest lock-delay
   * that a hold asks for, or the longest one that runs.
   */
  get closingMs(): number {
    return closingMs(this.state);
  }

  /** Milliseconds for which a restored cluster grants nothing, from its first leader on; 0 when that is over, or was never so. */
  get closedMs(): number {
    return this.state.closedMs;
  }

  /** Throws at the first broken invariant. Walks everything: for tests and simulations. */
  checkInvariants(): void {
    checkInvariants(this.state);
  }
}
