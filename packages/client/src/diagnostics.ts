/** What is published for programs that watch the client from outside: on Node's diagnostics channels, at no cost while nobody listens. */
import type { Mode } from "@holdfast/lock";
import type { ErrorCode } from "@holdfast/wire";
import type { LockLossReason } from "./errors.js";
import type { AcquireOutcome } from "./recorder.js";

/** Published on "holdfast:client:session". */
export interface SessionDiagnostic {
  /** Null while it is being opened. */
  readonly session: number | null;
  readonly ttlMs: number;
  readonly state: "opening" | "open" | "jeopardy" | "recovered" | "ended";
  /** Of an end. */
  readonly reason: LockLossReason | null;
}

/** Published on "holdfast:client:acquire" at the end of each acquire, tryAcquire and request that came so far as to ask. */
export interface AcquireDiagnostic {
  readonly names: readonly string[];
  readonly mode: Mode;
  readonly outcome: AcquireOutcome;
  readonly durationMs: number;
  /** Of the grant, else null. */
  readonly token: number | null;
  readonly session: number | null;
  /** Of an error, else null. */
  readonly code: ErrorCode | null;
}

/** Published on "holdfast:client:lock": at the end of each hold, and once for one that lasts longer than its heldLongMs. */
export interface LockDiagnostic {
  readonly type: "released" | "lost" | "held_long";
  readonly names: readonly string[];
  readonly mode: Mode;
  readonly token: number;
  readonly session: number;
  /** Since the grant. */
  readonly heldMs: number;
  /** Of a loss. */
  readonly reason: LockLossReason | null;
}

/** The part of `node:diagnostics_channel` that is used. */
export interface DiagnosticsChannel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}

export interface DiagnosticsChannels {
  readonly session: DiagnosticsChannel;
  readonly acquire: DiagnosticsChannel;
  readonly lock: DiagnosticsChannel;
}

export function channelsBy(channel: (name: string) => DiagnosticsChannel): DiagnosticsChannels {
  return {
    session: channel("holdfast:client:session"),
    acquire: channel("holdfast:client:acquire"),
    lock: channel("holdfast:client:lock"),
  };
}
