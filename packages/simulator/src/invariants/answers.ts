/** What clients ask of a node, and what it answers: an answer that speaks for the cluster needs a quorum round since the question was read. */
import type { LockMachine } from "@holdfast/lock";
import type { ClientMessage, ServerMessage } from "@holdfast/wire";
import { Recent } from "./recent.js";
import type { Rounds } from "./rounds.js";

const remembered = 4_096;

/** What the node's machine is at the moment. */
export interface Applied {
  readonly machine: LockMachine;
  readonly lastApplied: number;
}

/** Of one life of a node. */
export class Answers {
  readonly #rounds: Rounds;
  readonly #applied: Applied;
  /** When a question was first read. */
  readonly #readAt = new Recent<string, number>(remembered);

  constructor(rounds: Rounds, applied: Applied) {
    this.#rounds = rounds;
    this.#applied = applied;
  }

  onRead(connection: number, message: ClientMessage): void {
    const key = questionIn(connection, message);
    if (key !== null && !this.#readAt.has(key)) this.#readAt.set(key, this.#rounds.now);
  }

  checkSaid(connection: number, message: ServerMessage): void {
    const key = answeredBy(connection, message);
    const readAt = key === null ? undefined : this.#readAt.get(key);
    if (key === null || readAt === undefined) return;
    const { machine, lastApplied } = this.#applied;
    this.#rounds.checkAnswer(key, readAt, lastApplied);
    if (message.kind === "acknowledged") this.#rounds.checkRenewal(message.session, machine, lastApplied);
  }
}

function questionIn(connection: number, message: ClientMessage): string | null {
  switch (message.kind) {
    case "keepalive":
      return keepaliveText(message.session, message.number);
    case "resume":
      return `a resume of session ${message.session} on connection ${connection}`;
    case "query":
      // Of itself a node may speak for itself.
      return message.query.kind === "status" ? null : `query ${message.id} on connection ${connection}`;
    default:
      return null;
  }
}

function answeredBy(connection: number, message: ServerMessage): string | null {
  switch (message.kind) {
    // Whoever owns the session by then hears of it.
    case "acknowledged":
      return keepaliveText(message.session, message.number);
    case "resumed":
      return `a resume of session ${message.session} on connection ${connection}`;
    case "answer":
      return `query ${message.id} on connection ${connection}`;
    default:
      return null;
  }
}

function keepaliveText(session: number, number: number): string {
  return `keepalive ${number} of session ${session}`;
}
