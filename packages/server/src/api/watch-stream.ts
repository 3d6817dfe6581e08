/**
 * A watch over HTTP: server-sent events, one for all that an entry has changed, with the entry's index as its id. So a client that comes back
 * with its Last-Event-ID, here or at the next leader, misses nothing or is told of a gap. The stream ends when the leader changes; a client
 * that doesn't read is cut off.
 */
import type { ClientEvents, Clock, Timer } from "../ports.js";
import { noQuorum, notLeader, refusalAnswer, stopping } from "./answers.js";
import type { Answer } from "./answers.js";
import { ApiConnection } from "./api-connection.js";
import type { ApiConnectionOwner, Told } from "./api-connection.js";
import type { WatchCall } from "./arguments.js";
import type { EventSink, Exchange } from "./exchange.js";
import { apiLimits } from "./limits.js";
import { changeBody } from "./views.js";

export interface WatchStreamParts {
  readonly clock: Clock;
  readonly clients: ClientEvents;
  onEnded(stream: WatchStream): void;
}

export class WatchStream implements ApiConnectionOwner {
  private readonly exchange: Exchange;
  private readonly parts: WatchStreamParts;
  private readonly connection: ApiConnection;
  /** Null before it has begun. */
  private sink: EventSink | null = null;
  private timer: Timer;
  private isOver = false;

  constructor(id: number, call: WatchCall, exchange: Exchange, parts: WatchStreamParts) {
    this.exchange = exchange;
    this.parts = parts;
    this.connection = new ApiConnection(id, exchange.remote, parts.clients, this);
    this.timer = parts.clock.setTimer(apiLimits.answerMs, () => this.over(noQuorum()));
    exchange.onGone(() => this.end());
    this.connection.tell({ kind: "watch", id: 1, ...call });
  }

  onMessage(message: Told): void {
    const self = this.connection.nodeId;
    if (message.kind === "watching") {
      const { index, isGap } = message;
      this.write(index, isGap ? "gap" : "watching", { index });
    } else if (message.kind === "changes") {
      const { index, changes } = message;
      this.write(index, "changes", { index, changes: changes.map(changeBody) });
    } else if (message.kind === "leader") this.over(notLeader(message.leader, self));
    else if (message.kind === "refused") this.over(refusalAnswer(message.refusal, self));
  }

  onClosed(): void {
    this.over(stopping());
  }

  /** The node stops. */
  stop(): void {
    this.over(stopping());
  }

  private write(index: number, event: string, data: object): void {
    this.begin().write(`id: ${index}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  private begin(): EventSink {
    if (this.sink !== null) return this.sink;
    const sink = this.exchange.stream();
    this.sink = sink;
    sink.write(`retry: ${apiLimits.reconnectMs}\n\n`);
    this.timer.cancel();
    this.beat(sink);
    return sink;
  }

  private beat(sink: EventSink): void {
    this.timer = this.parts.clock.setTimer(apiLimits.heartbeatMs, () => {
      this.beat(sink);
      sink.write(": alive\n\n");
    });
  }

  /** A stream that has begun just ends: its client asks again, and hears why then. */
  private over(answer: Answer): void {
    if (this.isOver) return;
    this.end();
    if (this.sink === null) this.exchange.answer(answer);
    else this.sink.end();
  }

  private end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.timer.cancel();
    this.connection.end();
    this.parts.onEnded(this);
  }
}
