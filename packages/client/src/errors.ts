/** What the client rejects with. `code` is stable and comes from wire's one table; messages may change. */
import type { HolderView, LossReason, Outcome } from "@holdfast/lock";
import { errorCodes } from "@holdfast/wire";
import type { ChangeRefusalReason, ErrorCode, Refusal } from "@holdfast/wire";

/**
 * Why a lock was lost. From the log: `expired`, `forced`, `max_hold`, `closed`, `restored`. Found by this client: `expired` (the
 * lease ran out unrenewed), `session_gone` (the cluster doesn't know the session), `clock_jump` (the machine was suspended),
 * `loop_stall` (this process's event loop was stuck, or the process was stopped).
 */
export type LockLossReason = LossReason | "session_gone" | "clock_jump" | "loop_stall";

export interface HoldfastErrorOptions {
  readonly cause?: unknown;
}

export class HoldfastError extends Error {
  readonly code: ErrorCode;
  /** The same call may succeed later without a change by the caller. */
  readonly retryable: boolean;

  constructor(code: ErrorCode, message: string, options: HoldfastErrorOptions = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.name = new.target.name;
    this.code = code;
    this.retryable = errorCodes[code].retryable;
  }
}

export class InvalidArgumentError extends HoldfastError {
  /** The argument's name as the caller wrote it, e.g. "ttlMs" or "names[2]". */
  readonly argument: string;

  constructor(argument: string, problem: string) {
    super("invalid_argument", `${argument} ${problem}`);
    this.argument = argument;
  }
}

/** The lock is this caller's no more. What it protects may belong to another by now: stop, and let the guard judge what was sent. */
export class LockLostError extends HoldfastError {
  readonly reason: LockLossReason;
  readonly names: readonly string[];

  constructor(names: readonly string[], reason: LockLossReason, options: HoldfastErrorOptions = {}) {
    super("lock_lost", `the lock on ${quoted(names)} is lost: ${lossTexts[reason]}`, options);
    this.reason = reason;
    this.names = names;
  }
}

/** Not granted within waitMs. `holder` and `ahead` are what the cluster last said; null when it has said nothing yet. */
export class WaitTimeoutError extends HoldfastError {
  readonly holder: HolderView | null;
  /** How many requests stood before this one. */
  readonly ahead: number | null;

  constructor(names: readonly string[], waitMs: number, holder: HolderView | null, ahead: number | null) {
    const place = ahead === null ? "" : `, with ${ahead} requests before this one`;
    super("wait_timeout", `${quoted(names)} was not granted within ${waitMs} ms${held(holder)}${place}`);
    this.holder = holder;
    this.ahead = ahead;
  }
}

export class LockHeldError extends HoldfastError {
  readonly holder: HolderView | null;

  constructor(name: string, holder: HolderView | null) {
    super("lock_held", `${quoted([name])} is not free${held(holder)}`);
    this.holder = holder;
  }
}

export class LockDelayedError extends HoldfastError {
  /** The whole of the lock-delay; when it began isn't told. */
  readonly delayMs: number;

  constructor(name: string, delayMs: number) {
    super("lock_delayed", `${quoted([name])} is free, but closed by a lock-delay of ${delayMs} ms`);
    this.delayMs = delayMs;
  }
}

/** A change of members was refused; nothing was changed. */
export class ChangeRefusedError extends HoldfastError {
  readonly reason: ChangeRefusalReason;
  /** Whom the reason speaks of; with would_lose_quorum all voters that are not up. */
  readonly members: readonly string[];

  constructor(reason: ChangeRefusalReason, members: readonly string[]) {
    super("change_refused", changeTexts[reason].replace("MEMBER", members.join(", ")));
    this.reason = reason;
    this.members = members;
  }
}

/** The error that says what a node refused with. `session_gone` has no error of its own: the session is opened anew. */
export function errorFor(refusal: Refusal): HoldfastError {
  switch (refusal.code) {
    case "not_leader":
      return new HoldfastError("not_leader", "the node asked does not lead the cluster");
    case "no_quorum":
      return new HoldfastError("no_quorum", "the cluster has no majority to decide with");
    case "overloaded":
      return new HoldfastError("overloaded", "the cluster takes no more requests at the moment");
    case "unknown_outcome":
      return new HoldfastError("unknown_outcome", "whether the request took effect is not known");
    case "session_gone":
      return new HoldfastError("unknown_outcome", "the session ended before the request was answered");
    case "invalid_argument":
      return new InvalidArgumentError(refusal.argument, refusal.problem);
    case "incompatible":
      return new HoldfastError("incompatible", refusal.problem);
    case "unauthorized":
      return new HoldfastError("unauthorized", "the cluster does not admit this client");
    case "change_refused":
      return new ChangeRefusedError(refusal.reason, refusal.members);
    default:
      return assertNever(refusal);
  }
}

/** Why an acquire that doesn't wait was not granted. */
export function refusalOf(
  outcome: Extract<Outcome, { kind: "lockHeld" | "lockDelayed" | "slotsDiffer" }>,
): HoldfastError {
  switch (outcome.kind) {
    case "lockHeld":
      return new LockHeldError(outcome.name, outcome.holder);
    case "lockDelayed":
      return new LockDelayedError(outcome.name, outcome.delayMs);
    case "slotsDiffer":
      return new HoldfastError("slots_differ", `${quoted([outcome.name])} is a semaphore of ${outcome.slots} slots`);
    default:
      return assertNever(outcome);
  }
}

/** A reason that this release doesn't know is told as `session_gone`. */
export function lossReasonFrom(reason: string | null): LockLossReason {
  return reason !== null && Object.hasOwn(lossTexts, reason) ? (reason as LockLossReason) : "session_gone";
}

export function connectionClosed(): HoldfastError {
  return new HoldfastError("connection_closed", "this client is closed");
}

export function assertNever(value: never): never {
  throw new Error(`unexpected value ${JSON.stringify(value)}`);
}

const changeTexts: Readonly<Record<ChangeRefusalReason, string>> = {
  transfer_running: "the leader is handing its leadership on; ask again",
  not_ready: "the leader has just been elected; ask again",
  change_in_progress: "another change of members is not finished; ask again",
  empty_change: "the change names nobody",
  named_twice: "the change names MEMBER twice",
  removed_id: "MEMBER was removed from this cluster, and an id never comes back: choose another",
  already_member: "MEMBER is that already",
  instance_differs: "MEMBER is a member with another data directory: remove it, and add the new one under another id",
  instance_taken: "the data directory of MEMBER is another member's: it was copied",
  address_taken: "an address of MEMBER is another member's",
  invalid_member: "MEMBER has an id or an address that is too long",
  unknown_member: "MEMBER is no member of this cluster, or not of the right kind",
  not_caught_up: "MEMBER has not caught up with the leader's log yet",
  no_voters: "no voter would be left",
  too_many_voters: "the cluster would have too many voters",
  too_many_members: "the cluster would have too many members",
  too_many_removed: "too many ids were removed from this cluster",
  would_lose_quorum: "the voters that are up would be no majority: MEMBER not up, or far behind",
};

const lossTexts: Readonly<Record<LockLossReason, string>> = {
  expired: "its lease ran out",
  forced: "an administrator released it",
  max_hold: "it was held for maxHoldMs",
  closed: "the client was closed",
  restored: "the cluster was restored from a backup",
  session_gone: "the cluster does not know its session",
  clock_jump: "the machine was suspended for longer than the lease",
  loop_stall: "this process was stuck for longer than the lease allows",
};

function quoted(names: readonly string[]): string {
  const [first = "", ...rest] = names;
  return rest.length === 0 ? JSON.stringify(first) : `${JSON.stringify(first)} and ${rest.length} more`;
}

function held(holder: HolderView | null): string {
  if (holder === null) return "";
  return `; held by session ${holder.session} (${JSON.stringify(holder.info)}) with token ${holder.token}`;
}
