/** One call of acquire, tryAcquire or request: what it asks for, how far it has come, and its caller's promise. */
import type { HolderView, RequestNumber } from "@holdfast/lock";
import type { HoldfastError } from "./errors.js";
import type { Instant } from "./lease.js";
import type { LockHandle } from "./lock-handle.js";
import { traceparentOf } from "./open-telemetry.js";
import type { OpenTelemetrySpan } from "./open-telemetry.js";
import type { AcquireRequest } from "./options.js";
import type { AcquireOutcome } from "./recorder.js";

/**
 * queued: not sent in any session. asked: sent, unanswered. waiting: in the cluster's queues. held, releasing: granted. leaving: its
 * caller has given up; the cancel, or the release of a grant that crossed it, is under way. over: its end is known.
 */
export type AcquireStage = "queued" | "asked" | "waiting" | "held" | "releasing" | "leaving" | "over";

/** Where it is queued or sent. */
export interface AcquireHome {
  /** Why a queued acquire isn't even sent: its session has no room for more. */
  readonly isFull: boolean;
  abandon(acquire: Acquire): void;
}

/** The caller's promise; null: not free, for tryAcquire. */
export interface AcquireCaller {
  resolve(lock: LockHandle | null): void;
  reject(reason: unknown): void;
}

export interface AcquireLimits {
  /** By the monotonic clock, as waitUntilMs. */
  readonly beganMs: number;
  readonly waitUntilMs: number;
  /** Answers null instead of an error when the lock isn't free. */
  readonly isTry: boolean;
}

/** `error`: what the caller is answered with; null when it was granted, or refused without one. */
export type OnSettled = (acquire: Acquire, outcome: AcquireOutcome, error: unknown) => void;

export class Acquire {
  readonly request: AcquireRequest;
  readonly beganMs: number;
  readonly waitUntilMs: number;
  readonly isTry: boolean;
  stage: AcquireStage = "queued";
  home: AcquireHome | null = null;
  /** Within its session; 0 while queued. */
  number: RequestNumber = 0;
  /** The encoded command, until the cluster has answered it. */
  payload: Uint8Array | null = null;
  /** When it was first sent. Null where maxHoldMs doesn't need it. */
  sentAt: Instant | null = null;
  lock: LockHandle | null = null;
  isReleaseSent = false;
  /** What the cluster last said while it waited. */
  holder: HolderView | null = null;
  ahead: number | null = null;
  /** The last word was that the cluster takes no more. */
  wasOverloaded = false;
  /** Null: nobody traces. */
  span: OpenTelemetrySpan | null = null;
  private readonly caller: AcquireCaller;
  private readonly onSettled: OnSettled;
  private settled = false;

  /** `onSettled` is called once, before the caller is answered. */
  constructor(request: AcquireRequest, limits: AcquireLimits, caller: AcquireCaller, onSettled: OnSettled) {
    this.request = request;
    this.beganMs = limits.beganMs;
    this.waitUntilMs = limits.waitUntilMs;
    this.isTry = limits.isTry;
    this.caller = caller;
    this.onSettled = onSettled;
  }

  /** Null: nobody traces. */
  get traceparent(): string | null {
    return traceparentOf(this.span);
  }

  get isSettled(): boolean {
    return this.settled;
  }

  grant(lock: LockHandle): void {
    if (!this.settle("granted", null)) return;
    this.caller.resolve(lock);
  }

  /** For tryAcquire: not free. */
  refuse(): void {
    if (!this.settle("refused", null)) return;
    this.caller.resolve(null);
  }

  fail(error: HoldfastError): void {
    if (!this.settle(outcomeOf(error), error)) return;
    this.caller.reject(error);
  }

  /** By its caller's own signal, with whatever reason that has. */
  abort(reason: unknown): void {
    if (!this.settle("aborted", reason)) return;
    this.caller.reject(reason);
  }

  /** Its session is gone, or its number is used up without a grant: as if it had never been sent. */
  requeue(): void {
    this.stage = "queued";
    this.number = 0;
    this.payload = null;
    this.sentAt = null;
  }

  private settle(outcome: AcquireOutcome, error: unknown): boolean {
    if (this.settled) return false;
    this.settled = true;
    this.onSettled(this, outcome, error);
    return true;
  }
}

function outcomeOf({ code }: HoldfastError): AcquireOutcome {
  if (code === "wait_timeout") return "timeout";
  return code === "lock_held" || code === "lock_delayed" ? "refused" : "error";
}
