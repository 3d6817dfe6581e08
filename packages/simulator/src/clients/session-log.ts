/**
 * A client's own view of its sessions, from its log: the only place where one client among many in a Node process says that a session is
 * over by its own clock. (`diagnostics_channel` is one for all of them.)
 */
import type { Logger } from "@holdfast/client";

export interface SessionLogEvents {
  onEnded(session: number, reason: string): void;
  onJeopardy(session: number): void;
  onRecovered(session: number): void;
}

export class SessionLog implements Logger {
  readonly #events: SessionLogEvents;

  constructor(events: SessionLogEvents) {
    this.#events = events;
  }

  debug(): void {}

  info(facts: object, text: string): void {
    this.#onLine(facts, text);
  }

  warn(facts: object, text: string): void {
    this.#onLine(facts, text);
  }

  error(): void {}

  #onLine(facts: object, text: string): void {
    const { session, reason } = facts as { readonly session?: number; readonly reason?: string };
    // One that was never open has no number.
    if (session === undefined || session === 0) return;
    if (text === "session lost" || text === "session closed") this.#events.onEnded(session, reason ?? "unknown");
    else if (text === "session in jeopardy") this.#events.onJeopardy(session);
    else if (text === "session renewed again") this.#events.onRecovered(session);
  }
}
