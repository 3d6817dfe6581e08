/**
 * What a guard refuses with. The codes are those of the whole project; test `error.code` rather than the class when two copies of
 * this package may be loaded.
 */
export type FenceErrorCode =
  | "stale_token"
  | "resource_missing"
  | "invalid_argument"
  | "unknown_outcome"
  | "incompatible"
  | "bad_sequencer"
  | "unreachable";

export abstract class FenceError extends Error {
  abstract readonly code: FenceErrorCode;
  /** The same call may succeed later without a change by the caller, and does no harm if the first one did take effect. */
  abstract readonly retryable: boolean;
}

/** The resource has accepted a newer token: the presenter's lock is over, whatever it believes. Nothing was changed. */
export class StaleTokenError extends FenceError {
  override readonly name: string = "StaleTokenError";
  readonly code = "stale_token" as const;
  readonly retryable = false as const;
  /** The lock's name when the fence bears one, else the row, as `table/key`. */
  readonly resource: string;
  readonly presented: number;
  /** The register's value, read just after the refusal: never below the value that caused it. */
  readonly highest: number;

  constructor(resource: string, presented: number, highest: number) {
    super(`token ${presented} for ${resource} is stale: token ${highest} has been accepted`);
    this.resource = resource;
    this.presented = presented;
    this.highest = highest;
  }
}

/** There is no such row, so there is nothing to compare the token with. Nothing was changed. */
export class ResourceMissingError extends FenceError {
  override readonly name: string = "ResourceMissingError";
  readonly code = "resource_missing" as const;
  readonly retryable = false as const;
  readonly resource: string;

  constructor(resource: string, problem: string) {
    super(problem);
    this.resource = resource;
  }
}

/** A mistake of the caller, found before anything was sent. `argument` is its path, such as `options.table`. */
export class InvalidArgumentError extends FenceError {
  override readonly name: string = "InvalidArgumentError";
  readonly code = "invalid_argument" as const;
  readonly retryable = false as const;
  readonly argument: string;

  constructor(argument: string, problem: string) {
    super(`${argument}: ${problem}`);
    this.argument = argument;
  }
}

/** The connection was lost after the write or the COMMIT was sent and before its answer: it took effect whole, or not at all. */
export class UnknownOutcomeError extends FenceError {
  override readonly name: string = "UnknownOutcomeError";
  readonly code = "unknown_outcome" as const;
  /** True for one guarded write (the same values under the same token do no harm twice), false for a transaction and what adds. */
  readonly retryable: boolean;
  readonly resource: string;
  /** The database's id of the transaction, for `txid_status`; null for a single statement. */
  readonly transactionId: string | null;

  constructor(
    resource: string,
    transactionId: string | null,
    cause: unknown,
    retryable: boolean = transactionId === null,
  ) {
    super(`the connection was lost before the store confirmed the write to ${resource}: it may have taken effect`, {
      cause,
    });
    this.resource = resource;
    this.transactionId = transactionId;
    this.retryable = retryable;
  }
}

/** The resource can't be guarded as it stands: a fence that is no token, a key that isn't unique, a trigger in the way. */
export class IncompatibleResourceError extends FenceError {
  override readonly name: string = "IncompatibleResourceError";
  readonly code = "incompatible" as const;
  readonly retryable = false as const;
  readonly resource: string;

  constructor(resource: string, problem: string) {
    super(problem);
    this.resource = resource;
  }
}

/**
 * Why a sequencer is not believed.
 *
 * | reason      | it                                                                                             |
 * |-------------|------------------------------------------------------------------------------------------------|
 * | malformed   | is no text that a cluster makes                                                                |
 * | unknown_key | is of a key that isn't among the cluster's: another cluster's, one long gone, or one just made |
 * | forged      | bears a signature that this key never made of this text                                        |
 */
export type SequencerProblem = "malformed" | "unknown_key" | "forged";

/** What was presented is not signed by the cluster: its token must not reach a register. */
export class SequencerError extends FenceError {
  override readonly name: string = "SequencerError";
  readonly code = "bad_sequencer" as const;
  readonly reason: SequencerProblem;
  /** Null when it is malformed. */
  readonly keyId: string | null;

  constructor(reason: SequencerProblem, keyId: string | null, problem: string) {
    super(problem);
    this.reason = reason;
    this.keyId = keyId;
  }

  /** For a key that isn't known: it may have been made since the keys were last fetched. */
  get retryable(): boolean {
    return this.reason === "unknown_key";
  }
}

/** No node has told its keys yet, so nothing can be verified. `cause` is what the last one failed with. */
export class KeysUnavailableError extends FenceError {
  override readonly name: string = "KeysUnavailableError";
  readonly code = "unreachable" as const;
  readonly retryable = true as const;

  constructor(cause: unknown) {
    super("no node of the cluster has told the keys that sequencers are verified with", { cause });
  }
}
