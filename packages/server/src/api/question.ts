/** A request that needs no session: it asks the leader once, and what comes is its answer. */
import type { ClientMessage } from "@holdfast/wire";
import type { ClientEvents, Clock, Timer } from "../ports.js";
import { notLeader, refusalAnswer } from "./answers.js";
import type { Answer } from "./answers.js";
import { ApiConnection } from "./api-connection.js";
import type { ApiConnectionOwner, Told } from "./api-connection.js";
import type { Exchange } from "./exchange.js";
import { apiLimits } from "./limits.js";

export interface QuestionOptions {
  /** Of its connection. */
  readonly id: number;
  readonly message: ClientMessage;
  /** Null: this is not its answer. */
  answerFrom(told: Told): Answer | null;
  /** When none comes in time, or its connection is closed. */
  readonly unanswered: Answer;
}

export class Question implements ApiConnectionOwner {
  private readonly options: QuestionOptions;
  private readonly exchange: Exchange;
  private readonly connection: ApiConnection;
  private readonly clock: Clock;
  private timer: Timer | null = null;

  constructor(options: QuestionOptions, exchange: Exchange, parts: { clock: Clock; clients: ClientEvents }) {
    this.options = options;
    this.exchange = exchange;
    this.connection = new ApiConnection(options.id, exchange.remote, parts.clients, this);
    this.clock = parts.clock;
  }

  start(): void {
    const { message, unanswered } = this.options;
    this.timer = this.clock.setTimer(apiLimits.answerMs, () => this.settle(unanswered));
    this.exchange.onGone(() => this.end());
    this.connection.tell(message);
  }

  onMessage(message: Told): void {
    const self = this.connection.nodeId;
    if (message.kind === "refused") this.settle(refusalAnswer(message.refusal, self));
    else if (message.kind === "leader") this.settle(notLeader(message.leader, self));
    else {
      const answer = this.options.answerFrom(message);
      if (answer !== null) this.settle(answer);
    }
  }

  onClosed(): void {
    this.settle(this.options.unanswered);
  }

  private settle(answer: Answer): void {
    this.end();
    this.exchange.answer(answer);
  }

  private end(): void {
    this.timer?.cancel();
    this.connection.end();
  }
}
