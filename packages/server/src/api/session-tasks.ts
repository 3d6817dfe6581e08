/** Requests of a session that are open: what each waits for, for how long, and what becomes of it when its client goes. */
import type { Outcome, ResumeView } from "@holdfast/lock";
import type { Clock, Timer } from "../ports.js";
import { noQuorum, unknownOutcome } from "./answers.js";
import type { Answer } from "./answers.js";
import { closeCommand } from "./arguments.js";
import type { AcquireCall, SessionCall } from "./arguments.js";
import type { Exchange } from "./exchange.js";
import { apiLimits } from "./limits.js";
import { closeNumber, requestNumber } from "./request-numbers.js";
import type { RenewalTask, SessionConnection, SessionTask, ViewTask } from "./session-connection.js";
import { acquireAnswer, sessionBody, waitOver } from "./views.js";
import type { WaitNews } from "./views.js";

export interface TaskParts {
  readonly exchange: Exchange;
  readonly connection: SessionConnection;
  readonly clock: Clock;
}

/** What all of them have: an answer is given once, and nothing of them stays behind. */
export abstract class Task implements SessionTask {
  abstract readonly number: number | null;
  protected readonly exchange: Exchange;
  protected readonly connection: SessionConnection;
  private readonly clock: Clock;
  private timer: Timer | null = null;

  constructor({ exchange, connection, clock }: TaskParts) {
    this.exchange = exchange;
    this.connection = connection;
    this.clock = clock;
  }

  start(): void {
    this.exchange.onGone(() => this.onGone());
    this.armAnswer();
    this.begin();
  }

  protected get traceparent(): string | undefined {
    return this.exchange.header("traceparent");
  }

  protected abstract begin(): void;

  onOutcome(_outcome: Outcome): void {}

  settle(answer: Answer): void {
    this.end();
    this.exchange.answer(answer);
  }

  protected onGone(): void {
    this.end();
  }

  protected end(): void {
    this.timer?.cancel();
    this.connection.remove(this);
  }

  /** One at a time. */
  protected arm(delayMs: number, run: () => void): void {
    this.timer?.cancel();
    this.timer = this.clock.setTimer(delayMs, run);
  }

  protected armAnswer(): void {
    this.arm(apiLimits.answerMs, () => this.onLate());
  }

  protected onLate(): void {
    this.settle(this.number === null ? noQuorum() : unknownOutcome("no answer came in time"));
  }
}

type ToAnswer = (request: number, outcome: Outcome) => Answer;

/** A release, a cancel or a new info. */
export class EndingTask extends Task {
  readonly number: number;
  private readonly call: SessionCall;
  private readonly toAnswer: ToAnswer;

  constructor(call: SessionCall, toAnswer: ToAnswer, parts: TaskParts) {
    super(parts);
    this.number = requestNumber(call.request);
    this.call = call;
    this.toAnswer = toAnswer;
  }

  override onOutcome(outcome: Outcome): void {
    this.settle(this.toAnswer(this.call.request, outcome));
  }

  protected override begin(): void {
    this.connection.command(this, this.call.command, this.traceparent);
  }
}

/** The session's close. Who asks once more, for one that is closed, has its answer. */
export class CloseTask extends Task {
  readonly number: number = closeNumber;

  override onOutcome(): void {
    super.settle(closed);
  }

  override settle(answer: Answer): void {
    const { reason } = (answer.body ?? {}) as { readonly reason?: unknown };
    super.settle(answer.status === 410 && reason === "closed" ? closed : answer);
  }

  protected override begin(): void {
    this.connection.command(this, closeCommand(this.connection.credential.session), this.traceparent);
  }
}

const closed: Answer = { status: 204, body: null };

export class RenewTask extends Task implements RenewalTask {
  readonly number: null = null;
  readonly keepalive: number;

  constructor(parts: TaskParts) {
    super(parts);
    this.keepalive = parts.connection.drawKeepalive();
  }

  onRenewed(): void {
    const { credential, ttlMs } = this.connection;
    this.settle({ status: 200, body: { session: credential.session, ttlMs } });
  }

  protected override begin(): void {
    this.connection.renew(this);
  }
}

export class SessionViewTask extends Task implements ViewTask {
  readonly number: null = null;

  onView(view: ResumeView): void {
    this.settle({ status: 200, body: sessionBody(view) });
  }

  protected override begin(): void {
    this.connection.view(this);
  }
}

/** An acquire, which may hang for long. */
export class AcquireTask extends Task {
  readonly number: number;
  private readonly call: AcquireCall;
  private news: WaitNews = { ahead: null, holder: null };

  constructor(call: AcquireCall, parts: TaskParts) {
    super(parts);
    this.call = call;
    this.number = requestNumber(call.request);
  }

  override onOutcome(outcome: Outcome): void {
    if (outcome.kind === "waiting") this.news = outcome;
    const { request } = this.call;
    const answer = acquireAnswer(request, outcome, this.news);
    if (answer === null) return;
    if (outcome.kind === "granted") this.connection.noteGranted(request);
    this.settle(answer);
  }

  protected override begin(): void {
    const { command, waitMs } = this.call;
    if (waitMs > 0) this.arm(waitMs, () => this.onWaitOver());
    this.connection.command(this, command, this.traceparent);
  }

  /** Nothing may be granted to nobody. */
  protected override onGone(): void {
    this.leave();
    this.end();
  }

  protected override onLate(): void {
    this.leave();
    super.onLate();
  }

  /** What comes now decides: that it was cancelled, or a grant that crossed the cancel. */
  private onWaitOver(): void {
    if (this.connection.hasOthers(this)) return this.settle(waitOver(this.call.request, this.news));
    this.armAnswer();
    this.leave();
  }

  private leave(): void {
    if (!this.connection.hasOthers(this)) this.connection.withdraw(this.call.request);
  }
}
