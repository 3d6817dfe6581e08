/** The one table of error codes; the client's error classes and the CLI's exit codes are made from it. */
import type { ChangeRefusalCode } from "@holdfast/raft";
import type { NodeAddress } from "./client-messages.js";

export type ErrorCode =
  | "not_leader"
  | "no_quorum"
  | "lock_held"
  | "lock_delayed"
  | "wait_timeout"
  | "lock_lost"
  | "stale_token"
  | "already_released"
  | "slots_differ"
  | "overloaded"
  | "unknown_outcome"
  | "invalid_argument"
  | "unreachable"
  | "unauthorized"
  | "connection_closed"
  | "incompatible"
  | "resource_missing"
  | "bad_sequencer"
  | "change_refused";

/** `retryable`: the same call may succeed later without a change by the caller. */
export const errorCodes: Readonly<Record<ErrorCode, { readonly retryable: boolean }>> = {
  not_leader: { retryable: true },
  no_quorum: { retryable: true },
  lock_held: { retryable: true },
  lock_delayed: { retryable: true },
  wait_timeout: { retryable: true },
  lock_lost: { retryable: false },
  stale_token: { retryable: false },
  already_released: { retryable: false },
  slots_differ: { retryable: false },
  overloaded: { retryable: true },
  unknown_outcome: { retryable: true },
  invalid_argument: { retryable: false },
  unreachable: { retryable: true },
  unauthorized: { retryable: false },
  connection_closed: { retryable: false },
  incompatible: { retryable: false },
  resource_missing: { retryable: false },
  bad_sequencer: { retryable: false },
  change_refused: { retryable: false },
};

export type ChangeRefusalReason = Exclude<ChangeRefusalCode, "not_leader">;

/** What a node refuses with. Facts, not sentences: the client words them. */
export type Refusal =
  | { readonly code: "not_leader"; readonly leader: NodeAddress | null }
  | { readonly code: "no_quorum" }
  | { readonly code: "overloaded" }
  | { readonly code: "unknown_outcome" }
  | { readonly code: "session_gone"; readonly reason: string | null }
  | { readonly code: "invalid_argument"; readonly argument: string; readonly problem: string }
  | { readonly code: "incompatible"; readonly problem: string }
  | { readonly code: "unauthorized" }
  /** Of changeMembers. `members`: whom the reason speaks of; with would_lose_quorum all voters that are not up. */
  | { readonly code: "change_refused"; readonly reason: ChangeRefusalReason; readonly members: readonly string[] };
