/** Losses and session states on `node:diagnostics_channel`, for metrics and traces. Costs nothing while nobody listens. */
import { channel } from "node:diagnostics_channel";
import type { LockLossReason } from "./errors.js";

/** Published on "holdfast:client:session". */
export interface SessionDiagnostic {
  /** Null while it is being opened. */
  readonly session: number | null;
  readonly ttlMs: number;
  readonly state: "opening" | "open" | "jeopardy" | "recovered" | "ended";
  /** Of an end. */
  readonly reason: LockLossReason | null;
}

/** Published on "holdfast:client:lock" when a lock is lost. */
export interface LockDiagnostic {
  readonly names: readonly string[];
  readonly token: number;
  readonly session: number;
  readonly reason: LockLossReason;
}

const sessionChannel = channel("holdfast:client:session");
const lockChannel = channel("holdfast:client:lock");

export function publishSession(facts: SessionDiagnostic): void {
  if (sessionChannel.hasSubscribers) sessionChannel.publish(facts);
}

export function publishLoss(facts: LockDiagnostic): void {
  if (lockChannel.hasSubscribers) lockChannel.publish(facts);
}
