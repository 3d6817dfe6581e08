/**
 * The HTTP API for locks, one method for each operation. It knows no sockets and has no way of its own to the lock machine: sessions, reads
 * and watches go through the gateway, as those of websocket clients do.
 */
import { randomBytes } from "node:crypto";
import type { ClientMessage, Query } from "@holdfast/wire";
import type { ClientEvents, Clock } from "../ports.js";
import { noQuorum, overloaded, stopping, unknownOutcome } from "./answers.js";
import type { Answer } from "./answers.js";
import type { Told } from "./api-connection.js";
import {
  isAnswer,
  parseAcquire,
  parseCancel,
  parseCheck,
  parseCredential,
  parseInspect,
  parseList,
  parseOpen,
  parseRelease,
  parseSequencer,
  parseSetInfo,
  parseWatch,
  sessionHeader,
} from "./arguments.js";
import type { Credential } from "./arguments.js";
import type { Exchange } from "./exchange.js";
import { apiLimits } from "./limits.js";
import { Question } from "./question.js";
import { commandMessage, SessionConnection } from "./session-connection.js";
import { AcquireTask, CloseTask, EndingTask, RenewTask, SessionViewTask } from "./session-tasks.js";
import type { Task, TaskParts } from "./session-tasks.js";
import { cancelAnswer, infoAnswer, lockBody, releaseAnswer } from "./views.js";
import { WatchStream } from "./watch-stream.js";

export interface LockApiParts {
  readonly clock: Clock;
  /** Whether that session lives, whatever its key. */
  hasSession(session: number): boolean;
}

export class LockApi {
  private readonly parts: LockApiParts;
  private clients: ClientEvents | null = null;
  private readonly sessions = new Map<string, SessionConnection>();
  private readonly streams = new Set<WatchStream>();
  private lastConnection = 0;
  private lastKeepalive = 0;

  constructor(parts: LockApiParts) {
    this.parts = parts;
  }

  /** From now on there is a gateway to ask. */
  open(clients: ClientEvents): void {
    this.clients = clients;
  }

  /** The node stops: what is open is answered, and nothing of it stays behind. */
  close(): void {
    this.clients = null;
    for (const connection of this.sessions.values()) connection.stop();
    for (const stream of this.streams) stream.stop();
  }

  openSession(exchange: Exchange): void {
    const call = parseOpen(exchange.body, () => randomBytes(16).toString("hex"));
    if (isAnswer(call)) return exchange.answer(call);
    const unanswered = unknownOutcome("no answer came in time");
    this.ask(exchange, commandMessage(call, exchange.header("traceparent")), unanswered, (told) => {
      if (told.kind !== "sessionOpened") return null;
      const { key, session, ttlMs } = told;
      return { status: 201, body: { session, key, ttlMs, credential: `${session}.${key}` } };
    });
  }

  viewSession(exchange: Exchange): void {
    this.inSession(exchange, noCall, (parts) => new SessionViewTask(parts));
  }

  renewSession(exchange: Exchange): void {
    this.inSession(exchange, noCall, (parts) => new RenewTask(parts));
  }

  closeSession(exchange: Exchange): void {
    this.inSession(exchange, noCall, (parts) => new CloseTask(parts));
  }

  acquire(exchange: Exchange): void {
    this.inSession(exchange, parseAcquire, (parts, call) => new AcquireTask(call, parts));
  }

  release(exchange: Exchange): void {
    this.inSession(exchange, parseRelease, (parts, call) => new EndingTask(call, releaseAnswer, parts));
  }

  cancel(exchange: Exchange): void {
    this.inSession(exchange, parseCancel, (parts, call) => new EndingTask(call, cancelAnswer, parts));
  }

  setInfo(exchange: Exchange): void {
    this.inSession(exchange, parseSetInfo, (parts, call) => new EndingTask(call, infoAnswer, parts));
  }

  sequencer(exchange: Exchange): void {
    const credential = parseCredential(exchange.header(sessionHeader));
    if (isAnswer(credential)) return exchange.answer(credential);
    this.query(exchange, parseSequencer(credential, exchange.body), (told) => {
      if (told.kind !== "answer" || told.result.kind !== "sequencer") return null;
      const { index, sequencer } = told.result;
      return { status: 200, body: { index, sequencer } };
    });
  }

  check(exchange: Exchange): void {
    this.query(exchange, parseCheck(exchange.body), (told) => {
      if (told.kind !== "answer" || told.result.kind !== "check") return null;
      const { index, verdict, token } = told.result;
      return { status: 200, body: { index, isCurrent: verdict === "current", verdict, token } };
    });
  }

  inspect(exchange: Exchange): void {
    this.query(exchange, parseInspect(exchange.parameter), (told) => {
      if (told.kind !== "answer" || told.result.kind !== "lock") return null;
      const { index, lock } = told.result;
      return { status: 200, body: { index, lock: lock === null ? null : lockBody(lock) } };
    });
  }

  list(exchange: Exchange): void {
    this.query(exchange, parseList(exchange.query), (told) => {
      if (told.kind !== "answer" || told.result.kind !== "locks") return null;
      const { index, locks, more } = told.result;
      const next = more ? (locks.at(-1)?.name ?? null) : null;
      return { status: 200, body: { index, locks: locks.map(lockBody), next } };
    });
  }

  watch(exchange: Exchange): void {
    const call = parseWatch(exchange.query, exchange.header("last-event-id"));
    if (isAnswer(call)) return exchange.answer(call);
    const { clients } = this;
    if (clients === null) return exchange.answer(stopping());
    if (this.streams.size >= apiLimits.streamsMax) {
      return exchange.answer(overloaded("this node has as many streams of events as it takes"));
    }
    const { clock } = this.parts;
    const onEnded = (stream: WatchStream): boolean => this.streams.delete(stream);
    this.streams.add(new WatchStream(this.drawConnection(), call, exchange, { clock, clients, onEnded }));
  }

  private query(exchange: Exchange, query: Query | Answer, answerFrom: (told: Told) => Answer | null): void {
    if (isAnswer(query)) exchange.answer(query);
    else this.ask(exchange, { kind: "query", id: 1, query }, noQuorum(), answerFrom);
  }

  private ask(
    exchange: Exchange,
    message: ClientMessage,
    unanswered: Answer,
    answerFrom: (told: Told) => Answer | null,
  ): void {
    const { clients } = this;
    if (clients === null) return exchange.answer(stopping());
    const { clock } = this.parts;
    new Question({ id: this.drawConnection(), message, answerFrom, unanswered }, exchange, { clock, clients }).start();
  }

  private inSession<Call extends object>(
    exchange: Exchange,
    parse: (session: number, body: unknown) => Call | Answer,
    make: (parts: TaskParts, call: Call) => Task,
  ): void {
    const credential = parseCredential(exchange.header(sessionHeader));
    if (isAnswer(credential)) return exchange.answer(credential);
    const call = parse(credential.session, exchange.body);
    if (isAnswer(call)) return exchange.answer(call);
    const connection = this.connectionFor(credential, exchange.remote);
    if (connection === null) return exchange.answer(stopping());
    make({ exchange, connection, clock: this.parts.clock }, call).start();
  }

  /** The one of this session and key; whoever has another key has another connection, and hears that it is the wrong one. */
  private connectionFor(credential: Credential, remote: string): SessionConnection | null {
    const name = `${credential.session}.${credential.key}`;
    const existing = this.sessions.get(name);
    const { clients } = this;
    if (existing !== undefined || clients === null) return existing ?? null;
    const { clock } = this.parts;
    const connection = new SessionConnection(this.drawConnection(), remote, credential, {
      clock,
      clients,
      hasSession: (session) => this.parts.hasSession(session),
      drawKeepalive: () => {
        this.lastKeepalive += 1;
        return this.lastKeepalive;
      },
      onIdle: () => this.sessions.delete(name),
    });
    this.sessions.set(name, connection);
    return connection;
  }

  private drawConnection(): number {
    this.lastConnection += 1;
    return this.lastConnection;
  }
}

/** Of an operation that is told nothing but the session. */
function noCall(): object {
  return {};
}
