/** The sessions of a raw client, and which of them hears what its connections are told; all of it goes into the history. */
import type { ServerMessage } from "@holdfast/wire";
import type { Counts } from "./counts.js";
import type { RawConnection } from "./raw-connections.js";
import type { RawCommand, RawSession } from "./raw-session.js";
import type { HistorySink } from "./sink.js";

export interface RawSessionsParts {
  readonly sink: HistorySink;
  readonly counts: Counts;
}

export interface RawSessionsEvents {
  /** What a session has to say to what it was told. */
  sendLater(session: RawSession, command: RawCommand): void;
}

const formerMax = 5;

export class RawSessions {
  readonly #client: string;
  readonly #parts: RawSessionsParts;
  readonly #events: RawSessionsEvents;
  #newest: RawSession | null = null;
  readonly #former: RawSession[] = [];
  readonly #known = new Set<number>();
  readonly #ended = new Set<number>();

  constructor(client: string, parts: RawSessionsParts, events: RawSessionsEvents) {
    this.#client = client;
    this.#parts = parts;
    this.#events = events;
  }

  get newest(): RawSession | null {
    return this.#newest;
  }

  /** Over, or left to expire: late duplicates of theirs come all the same. */
  get former(): readonly RawSession[] {
    return this.#former;
  }

  /** It is the newest from now on. */
  add(session: RawSession): RawSession {
    if (this.#newest !== null) this.#former.push(this.#newest);
    if (this.#former.length > formerMax) this.#former.shift();
    this.#newest = session;
    return session;
  }

  onMessage(connection: RawConnection, message: ServerMessage): void {
    const { sink } = this.#parts;
    const client = this.#client;
    switch (message.kind) {
      case "sessionOpened":
        return this.#onOpened(connection, message);
      case "resumed": {
        connection.sessions.add(message.session);
        const { session } = message;
        for (const { request, grants, maxHoldMs } of message.holds) {
          this.#onTold(session, request, { kind: "granted", grants, maxHoldMs });
        }
        for (const request of message.waiting) {
          sink.emit({ kind: "told", client, session, request, outcome: { kind: "waiting" } });
        }
        for (const { request, outcome } of message.outcomes) this.#onTold(session, request, outcome);
        return;
      }
      case "superseded":
        this.#parts.counts.add("raw: superseded");
        connection.sessions.delete(message.session);
        return;
      case "outcome":
        return this.#onTold(message.session, message.request, message.outcome);
      case "acknowledged":
        sink.emit({ kind: "keepaliveTold", client, session: message.session, number: message.number });
        return;
      case "rejected":
        if (message.rejection.kind === "sessionGone") this.#onEnded(message.session, message.rejection.reason);
        else if (message.rejection.kind === "settled") this.#sessionWith(message.session)?.onSettled(message.request);
        return;
      case "sessionEnded":
        return this.#onEnded(message.session, message.reason);
      case "refused": {
        const { refusal, session } = message;
        this.#parts.counts.add(`raw: refused: ${refusal.code}`);
        if (session === null) return;
        if (refusal.code === "session_gone") this.#onEnded(session, refusal.reason);
        else if (refusal.code === "invalid_argument") connection.sessions.delete(session);
        return;
      }
      default:
        return;
    }
  }

  #onOpened(
    connection: RawConnection,
    { key, session: id, ttlMs }: Extract<ServerMessage, { readonly kind: "sessionOpened" }>,
  ): void {
    connection.sessions.add(id);
    if (this.#known.has(id)) return;
    this.#known.add(id);
    this.#parts.sink.emit({ kind: "sessionOpened", client: this.#client, session: id, key, ttlMs });
    // Of a late duplicate after the session's end it is an orphan, which expires.
    const session = this.#newest;
    if (session?.key === key && session.id === 0) session.id = id;
    else this.#parts.counts.add("raw: orphan session");
  }

  #onTold(id: number, request: number, outcome: Parameters<RawSession["onOutcome"]>[1]): void {
    this.#parts.sink.emit({ kind: "told", client: this.#client, session: id, request, outcome });
    const session = this.#sessionWith(id);
    if (session === null || session.isOver) return;
    const command = session.onOutcome(request, outcome);
    if (command !== null) this.#events.sendLater(session, command);
    if (outcome.kind === "sessionClosed") this.#onEnded(id, "closed");
  }

  #onEnded(id: number, reason: string | null): void {
    if (!this.#ended.has(id)) {
      this.#ended.add(id);
      const facts = { session: id, reason: reason ?? "session_gone", by: "cluster" } as const;
      this.#parts.sink.emit({ kind: "sessionEnded", client: this.#client, ...facts });
    }
    this.#sessionWith(id)?.onEnded();
  }

  #sessionWith(id: number): RawSession | null {
    if (id === 0) return null;
    return this.#newest?.id === id ? this.#newest : (this.#former.find((each) => each.id === id) ?? null);
  }
}
