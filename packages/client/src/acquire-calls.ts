/** Acquires that are under way: from a caller's arguments to the end of its waiting. */
import { AbortListeners } from "./abort-listeners.js";
import { Acquire } from "./acquire.js";
import type { OnSettled } from "./acquire.js";
import { errorFor, HoldfastError, WaitTimeoutError } from "./errors.js";
import type { LockHandle } from "./lock-handle.js";
import type { Observation } from "./observation.js";
import { checkAcquire } from "./options.js";
import type { ClientOptions, RequestOptions } from "./options.js";
import type { Clock } from "./ports.js";
import type { ProcessHold } from "./process-hold.js";
import { WaitLimits } from "./wait-limits.js";

export type AcquireCall = "acquire" | "tryAcquire" | "request";

export interface AcquireCallsParts {
  readonly clock: Clock;
  readonly hold: ProcessHold;
  readonly observation: Observation;
  /** Throws when no acquire may begin now. */
  checkOpen(): void;
  /** Hands it to a session. */
  start(acquire: Acquire): void;
  /** A leader is known and linked. */
  hasLeader(): boolean;
  /** Why the cluster has not answered for so long. */
  unanswered(afterMs: number): HoldfastError;
}

export class AcquireCalls {
  private readonly options: ClientOptions;
  private readonly parts: AcquireCallsParts;
  private readonly waits: WaitLimits;
  private readonly aborts: AbortListeners;

  constructor(options: ClientOptions, parts: AcquireCallsParts) {
    this.options = options;
    this.parts = parts;
    this.waits = new WaitLimits(parts.clock, (acquire) => this.fail(acquire, this.limitError(acquire)));
    this.aborts = new AbortListeners((acquire, reason) => this.giveUp(acquire, () => acquire.abort(reason)));
  }

  /** Resolves with null when it was only to be taken if free. `slots`: of a semaphore, else 0. */
  begin(
    call: AcquireCall,
    names: string | readonly string[],
    options: RequestOptions | undefined,
    slots = 0,
  ): Promise<LockHandle | null> {
    const { parts } = this;
    return new Promise((resolve, reject) => {
      const request = checkAcquire(call, names, options, this.options, slots);
      parts.checkOpen();
      const { signal, waitMs } = request;
      if (signal?.aborted === true) {
        reject(signal.reason);
        return;
      }
      const isTry = call === "tryAcquire" || options?.ifAvailable === true;
      const beganMs = parts.clock.monotonicMs();
      const limits = { beganMs, waitUntilMs: beganMs + waitMs, isTry };
      const acquire = new Acquire(request, limits, { resolve, reject }, this.onSettled);
      acquire.span = parts.observation.beginAcquire(request.names, request.mode);
      this.aborts.add(acquire);
      parts.hold.begin();
      this.waits.add(acquire);
      parts.start(acquire);
    });
  }

  /** Ends all waiting. */
  failAll(error: HoldfastError): void {
    for (const acquire of this.waits.all()) this.fail(acquire, error);
  }

  close(): void {
    this.waits.close();
  }

  private readonly onSettled: OnSettled = (acquire, outcome, error) => {
    this.parts.observation.acquireEnded(acquire, outcome, error);
    this.waits.delete(acquire);
    this.aborts.delete(acquire);
    this.parts.hold.end();
  };

  private fail(acquire: Acquire, error: HoldfastError): void {
    this.giveUp(acquire, () => acquire.fail(error));
  }

  /** The caller hears at once; what the cluster has to hear goes on behind. */
  private giveUp(acquire: Acquire, answer: () => void): void {
    if (acquire.isSettled) return;
    answer();
    acquire.home?.abandon(acquire);
  }

  private limitError(acquire: Acquire): HoldfastError {
    const { wait, waitMs, names } = acquire.request;
    if (acquire.stage === "queued" && acquire.home?.isFull === true) {
      const problem =
        "this client's session holds and waits for as many locks as one may; another connect() brings another session";
      return new HoldfastError("overloaded", problem);
    }
    const hasLeader = this.parts.hasLeader();
    const isAsked = acquire.ahead !== null || (wait && hasLeader && !acquire.wasOverloaded);
    if (isAsked) return new WaitTimeoutError(names, waitMs, acquire.holder, acquire.ahead);
    if (hasLeader && acquire.wasOverloaded) return errorFor({ code: "overloaded" });
    return this.parts.unanswered(waitMs);
  }
}
