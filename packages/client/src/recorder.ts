/** What the client counts and times, in words of closed sets: they become labels, so no name, token or session is among them. */
import type { Mode } from "@holdfast/lock";
import type { ErrorCode } from "@holdfast/wire";
import type { LockLossReason } from "./errors.js";

/** refused: not free, and not to be waited for. error: anything but a timeout, an abort or that. */
export const acquireOutcomes = ["granted", "refused", "timeout", "aborted", "error"] as const;
export type AcquireOutcome = (typeof acquireOutcomes)[number];

export const holdEndings = ["released", "lost", "max_hold"] as const;
export type HoldEnding = (typeof holdEndings)[number];

/** unanswered: no acknowledgement came in time. */
export const renewalOutcomes = ["renewed", "unanswered", "refused"] as const;
export type RenewalOutcome = (typeof renewalOutcomes)[number];

export const sessionStates = ["opening", "open", "jeopardy"] as const;
export type SessionState = (typeof sessionStates)[number];

export const modes: readonly Mode[] = ["exclusive", "shared", "slot"];

/** Every reason: the compiler misses one that is not named. */
const allLossReasons: Readonly<Record<LockLossReason, true>> = {
  expired: true,
  forced: true,
  max_hold: true,
  closed: true,
  restored: true,
  session_gone: true,
  clock_jump: true,
  loop_stall: true,
};
export const lossReasons: readonly LockLossReason[] = Object.keys(allLossReasons) as LockLossReason[];

export interface Recorder {
  /** `code`: of an error or a timeout; null for what isn't one of ours. */
  acquired(mode: Mode, outcome: AcquireOutcome, seconds: number, code: ErrorCode | null): void;
  held(mode: Mode): void;
  /** Ends what held() has begun. */
  holdEnded(mode: Mode, ending: HoldEnding, seconds: number): void;
  renewal(outcome: RenewalOutcome): void;
  /** What was left of the lease when a renewal was acknowledged. */
  leaseMargin(seconds: number): void;
  lost(reason: LockLossReason): void;
  /** Null: not there yet; over. */
  sessionMoved(from: SessionState | null, to: SessionState | null): void;
}
