/** The client as its users see it. */
import type { LockView, PublicKey, SessionView, Token } from "@holdfast/lock";
import type { Member, MembersView, NodeAddress } from "@holdfast/wire";
import type { ElectionOptions, Term } from "./election.js";
import type { Lock } from "./lock.js";
import type { NodeReport } from "./node-status.js";
import type { LeaderView } from "./observe.js";
import type {
  AcquireOptions,
  CloseOptions,
  HoldOptions,
  ObserveOptions,
  RequestOptions,
  WatchOptions,
} from "./options.js";
import type { OncePerResult } from "./once-per.js";
import type { ForcedRelease } from "./queries.js";
import type { SequencerCheck } from "./sequencer.js";
import type { WatchEvent } from "./watch.js";
import type { Semaphore, SemaphoreOptions } from "./semaphore.js";

export interface ForceReleaseOptions {
  /** Keeps the lock closed after the forced release, so that the old holder can hear of it: 0 to 60,000 ms, default 0. */
  readonly lockDelayMs?: number | undefined;
  /** Who forces it, for the cluster's log. Default: the client's info. At most 256 bytes. */
  readonly principal?: string | undefined;
}

export interface RotateKeyOptions {
  /** Who asks for it, for the cluster's log. Default: the client's info. At most 256 bytes. */
  readonly principal?: string | undefined;
}

export interface ListOptions {
  /** Only locks whose names begin with it. Default: all. */
  readonly prefix?: string | undefined;
}

export interface StatusOptions {
  /** How long each node may take to answer. Default 3,000 ms. */
  readonly timeoutMs?: number | undefined;
}

/** One change of members, of any size. An id is named once. */
export interface MembersChangeOptions {
  /** They become learners: they get the log, and have no vote. The instance is that of the node's data directory (`/v1/identity`). */
  readonly add?: readonly Member[] | undefined;
  /** Ids of learners that get a vote: they must have caught up. */
  readonly promote?: readonly string[] | undefined;
  /** Ids of voters and learners; they never come back. */
  readonly remove?: readonly string[] | undefined;
  /** Though the voters that are up would be no majority. Default false. */
  readonly force?: boolean | undefined;
}

/**
 * A client of one cluster. Every promise settles: at the latest at its time limit, at an abort of its signal, or at close(). Wrong
 * arguments reject with invalid_argument and the argument's name; calls after close() with connection_closed.
 */
export interface Holdfast {
  /**
   * Waits for the lock, or for all of several: all or none, without deadlock. Rejects with wait_timeout after waitMs (or no_quorum,
   * unreachable, overloaded: why not even a place in the queue was got), with `signal.reason` at an abort; with waitMs 0 at once
   * with lock_held or lock_delayed.
   */
  acquire(name: string | readonly string[], options?: AcquireOptions): Promise<Lock>;
  /** Null when it is held or delayed. It waits for the cluster for at most connectTimeoutMs, never for the lock. */
  tryAcquire(name: string | readonly string[], options?: HoldOptions): Promise<Lock | null>;
  /**
   * Acquires, runs `body`, releases: in the shape of Web Locks. It never releases before the body has settled. If the lock was lost
   * meanwhile, it rejects with LockLostError then, with the body's own error as its cause.
   */
  request<T>(name: string | readonly string[], body: (lock: Lock) => T | PromiseLike<T>): Promise<T>;
  request<T>(
    name: string | readonly string[],
    options: RequestOptions & { readonly ifAvailable: true },
    body: (lock: Lock | null) => T | PromiseLike<T>,
  ): Promise<T>;
  request<T>(
    name: string | readonly string[],
    options: RequestOptions & { readonly ifAvailable?: false | undefined },
    body: (lock: Lock) => T | PromiseLike<T>,
  ): Promise<T>;
  /** Throws invalid_argument for a wrong name or number of slots. Nothing is sent before the first acquire. */
  semaphore(name: string, options: SemaphoreOptions): Semaphore;
  /**
   * Campaigns, runs `body` while it leads, and campaigns again when the leadership is lost. Resolves with what the body returns in a term that
   * was kept, which is given back then, and rejects with what it throws in one; with `options.signal`'s reason when that aborts while it campaigns.
   */
  lead<T>(name: string, body: (term: Term) => T | PromiseLike<T>): Promise<T>;
  lead<T>(name: string, options: ElectionOptions, body: (term: Term) => T | PromiseLike<T>): Promise<T>;
  /**
   * The same as a loop: `for await (const term of holdfast.elect("scheduler"))`. Each turn is one term; what comes after it, or the end of the
   * loop, gives it back. Throws `options.signal`'s reason when that aborts while it campaigns.
   */
  elect(name: string, options?: ElectionOptions): AsyncGenerator<Term, never>;
  /**
   * Runs `body` unless somebody has begun it within the last `windowMs` (1 to 60,000 ms): for jobs that clocks start on many hosts, a little
   * apart. The body holds the lock `key`, which stays closed for the rest of the window, also when the body fails or its process dies.
   */
  oncePer<T>(key: string, windowMs: number, body: (lock: Lock) => T | PromiseLike<T>): Promise<OncePerResult<T>>;
  /**
   * Tells every change of a lock, or of all with a prefix, in the order of the log: `for await (const change of holdfast.watch("doc:", { prefix: true }))`.
   * The first event is a gap: from then on nothing is missed without another one, over changes of leader too. Ends with its loop, or by its signal.
   */
  watch(name: string, options?: WatchOptions): AsyncIterableIterator<WatchEvent, undefined, undefined>;
  /** Who leads: first the present leader, then each new one; null while nobody does. */
  observe(name: string, options?: ObserveOptions): AsyncGenerator<LeaderView | null, void>;
  /** Null when nobody holds it, waits for it or delays it. Linearizable, as list and sessions are. */
  inspect(name: string): Promise<LockView | null>;
  /** In the order of names. A long list is read in pieces, each of its own moment. */
  list(options?: ListOptions): Promise<LockView[]>;
  /** The first 1,000. */
  sessions(): Promise<readonly SessionView[]>;
  /**
   * Whether the holding that a sequencer speaks of goes on (see lock.sequencer). Linearizable. One that was forged, or isn't this cluster's, or
   * can't be read, gets an answer too: see `reason`. Rejects with incompatible while the cluster signs none.
   */
  check(sequencer: string): Promise<SequencerCheck>;
  /**
   * The keys that sequencers are verified with, for guards that don't ask the cluster: the current one first, then at most 7 former ones, the
   * newest first. Empty while the cluster signs none. They are no secret. Linearizable.
   */
  publicKeys(): Promise<readonly PublicKey[]>;
  /**
   * Makes a new key for sequencers. What was signed before is still good, until 8 more have been made. For administrators. Resolves with the id of
   * the key then. Rejects with unknown_outcome when the leader is lost meanwhile, and with incompatible while the cluster's version has no keys.
   */
  rotateKey(options?: RotateKeyOptions): Promise<string>;
  /** Asks each endpoint on its own, also those that don't lead. Never rejects for a node that doesn't answer. */
  status(options?: StatusOptions): Promise<NodeReport[]>;
  /**
   * Ends every hold of the generation that bears `token`. For administrators: the old holder hears of it only by message. Rejects
   * with unknown_outcome when the leader is lost meanwhile.
   */
  forceRelease(name: string, token: Token, options?: ForceReleaseOptions): Promise<ForcedRelease>;
  /** Hands leadership to node `to`, or to the most up-to-date one. Resolves with the leader then. */
  transfer(to?: string): Promise<NodeAddress | null>;
  /**
   * Raises the cluster version to the highest that a node runs, for good: the release before can't run the cluster any more. Resolves
   * with the version then, also when there was nothing to raise; rejects with incompatible while a node can't follow or can't be reached.
   */
  finalizeUpgrade(): Promise<number>;
  /** Who belongs to the cluster, as its leader sees them. Linearizable. */
  members(): Promise<MembersView>;
  /**
   * Changes the members in one step. Resolves when the change is committed, with its index. Rejects with change_refused and the reason
   * when nothing was changed; with unknown_outcome when the leader was lost meanwhile: look at members().
   */
  changeMembers(change: MembersChangeOptions): Promise<number>;
  /**
   * What this client has counted and timed, in Prometheus' text format: print it in the program's `/metrics`, beside the text of others. Of
   * all clients that share its ClientMetrics.
   */
  metrics(): string;
  /**
   * Takes no new acquires and ends the waiting ones, lets held locks end for up to drainMs, then loses what is left (reason
   * `closed`) and releases everything in one command. Never rejects but for a wrong drainMs; a second call awaits the first.
   */
  close(options?: CloseOptions): Promise<void>;
  /** As close(), for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
