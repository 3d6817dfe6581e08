/** What is told of one session's states: each change once, on the channel and in the metrics. */
import type { SessionId } from "@holdfast/lock";
import type { SessionDiagnostic } from "./diagnostics.js";
import type { LockLossReason } from "./errors.js";
import type { Observation } from "./observation.js";
import type { SessionState } from "./recorder.js";

const shownStates: Readonly<Record<SessionDiagnostic["state"], SessionState | null>> = {
  opening: "opening",
  open: "open",
  jeopardy: "jeopardy",
  recovered: "open",
  ended: null,
};

export class SessionSigns {
  private readonly ttlMs: number;
  private readonly observation: Observation;
  /** As the metrics count it; null: not there. */
  private shown: SessionState | null = null;

  constructor(ttlMs: number, observation: Observation) {
    this.ttlMs = ttlMs;
    this.observation = observation;
  }

  /** `id` 0: being opened. */
  tell(id: SessionId, state: SessionDiagnostic["state"], reason: LockLossReason | null = null): void {
    const before = this.shown;
    this.shown = shownStates[state];
    this.observation.session(before, this.shown, { session: id === 0 ? null : id, ttlMs: this.ttlMs, state, reason });
  }
}
