/**
 * All open requests over HTTP of one session share one connection, for the newest connection owns the session. It resumes the session with
 * the key that they bring, lives while one of them is open, and hands each what is said of it.
 *
 * An acquire that nobody waits for any more is withdrawn: its wait is cancelled, and a grant that crossed the cancel is given back. It is not
 * given back when the client may know of it: when it stood in the answer to the resume, or was told from here. Since this connection owns the
 * session, nobody else can have told it meanwhile.
 */
import { encodeCommand, isTraceparent } from "@holdfast/wire";
import type { Command, Outcome, ResumeView } from "@holdfast/lock";
import type { ClientMessage, ServerMessage } from "@holdfast/wire";
import type { ClientEvents, Clock, Timer } from "../ports.js";
import {
  notLeader,
  refusalAnswer,
  rejectionAnswer,
  sessionGone,
  stopping,
  unknownOutcome,
  wrongKey,
} from "./answers.js";
import type { Answer } from "./answers.js";
import { ApiConnection } from "./api-connection.js";
import type { ApiConnectionOwner, Told } from "./api-connection.js";
import { cancelCommand } from "./arguments.js";
import type { Credential } from "./arguments.js";
import { apiLimits } from "./limits.js";
import { cancelNumber, clientNumber, crossedReleaseNumber, requestNumber, requestOf } from "./request-numbers.js";

export interface SessionParts {
  readonly clock: Clock;
  readonly clients: ClientEvents;
  /** Whether that session lives, whatever its key. */
  hasSession(session: number): boolean;
  /** A number above all that were drawn before: one connection of a session may follow another within a round. */
  drawKeepalive(): number;
  onIdle(connection: SessionConnection): void;
}

/** An open request over HTTP. Whoever answers it calls `remove` first. */
export interface SessionTask {
  /** Of its command, as the lock machine has it; null: it has none. */
  readonly number: number | null;
  onOutcome(outcome: Outcome): void;
  /** Its end, of whatever kind. */
  settle(answer: Answer): void;
}

export interface RenewalTask extends SessionTask {
  readonly keepalive: number;
  onRenewed(): void;
}

export interface ViewTask extends SessionTask {
  onView(view: ResumeView): void;
}

interface Withdrawal {
  /** What is being tried. */
  command: Command;
  timer: Timer | null;
}

/** `traceparent`: of a request over HTTP, whatever it is. */
export function commandMessage(command: Command, traceparent: string | undefined): ClientMessage {
  const trace = isTraceparent(traceparent) ? { traceparent } : null;
  return { kind: "command", payload: encodeCommand(command), ...trace };
}

export class SessionConnection implements ApiConnectionOwner {
  readonly credential: Credential;
  private readonly parts: SessionParts;
  private readonly connection: ApiConnection;
  private readonly tasks = new Map<number, Set<SessionTask>>();
  private readonly renewals = new Set<RenewalTask>();
  /** Those that the resume under way answers, and those that came after it was sent: their answer has to be newer. */
  private viewing = new Set<ViewTask>();
  private nextViewing = new Set<ViewTask>();
  private resume: "none" | "sent" | "done" = "none";
  private readonly withdrawals = new Map<number, Withdrawal>();
  /** Requests whose grant the client may know of. */
  private readonly granted = new Set<number>();
  private ttl = 0;
  private isOver = false;

  constructor(id: number, remote: string, credential: Credential, parts: SessionParts) {
    this.credential = credential;
    this.parts = parts;
    this.connection = new ApiConnection(id, remote, parts.clients, this);
  }

  /** 0 before it is resumed. */
  get ttlMs(): number {
    return this.ttl;
  }

  // What the tasks ask of it.

  /** `traceparent`: of the request over HTTP, whatever it is. */
  command(task: SessionTask & { readonly number: number }, command: Command, traceparent?: string): void {
    const others = this.tasks.get(task.number);
    if (others === undefined) this.tasks.set(task.number, new Set([task]));
    else others.add(task);
    this.ensureResumed();
    this.send(command, traceparent);
  }

  renew(task: RenewalTask): void {
    this.renewals.add(task);
    this.ensureResumed();
    this.connection.tell({ kind: "keepalive", session: this.credential.session, number: task.keepalive });
  }

  view(task: ViewTask): void {
    if (this.resume === "sent") {
      this.nextViewing.add(task);
      return;
    }
    this.viewing.add(task);
    this.sendResume();
  }

  drawKeepalive(): number {
    return this.parts.drawKeepalive();
  }

  /** It is answered, or nobody waits for its answer. */
  remove(task: SessionTask): void {
    if (task.number !== null) {
      const others = this.tasks.get(task.number);
      others?.delete(task);
      if (others?.size === 0) this.tasks.delete(task.number);
    }
    this.renewals.delete(task as RenewalTask);
    this.viewing.delete(task as ViewTask);
    this.nextViewing.delete(task as ViewTask);
    this.endIfIdle();
  }

  /** Of an acquire's task: another one waits for the same request. */
  hasOthers({ number }: SessionTask & { readonly number: number }): boolean {
    return (this.tasks.get(number)?.size ?? 0) > 1;
  }

  /** The client is told of the grant: nothing gives it back but the client. */
  noteGranted(request: number): void {
    this.granted.add(request);
  }

  /** Nobody waits for this acquire any more, or not for much longer. */
  withdraw(request: number): void {
    if (this.isOver || this.granted.has(request) || this.withdrawals.has(request)) return;
    const withdrawal: Withdrawal = { command: cancelCommand(this.credential.session, request), timer: null };
    this.withdrawals.set(request, withdrawal);
    this.send(withdrawal.command);
  }

  /** The node stops. */
  stop(): void {
    this.over(stopping());
  }

  // What the gateway says.

  onMessage(message: Told): void {
    switch (message.kind) {
      case "resumed":
        return this.onResumed(message);
      case "acknowledged":
        for (const task of this.renewals) if (task.keepalive <= message.number) task.onRenewed();
        return;
      case "outcome":
        return this.onOutcome(message);
      case "rejected":
        if (message.rejection.kind === "sessionGone") return this.over(rejectionAnswer(message.rejection));
        return this.onRefused(message.request, rejectionAnswer(message.rejection));
      case "refused":
        return this.onRefusal(message);
      case "sessionEnded":
        return this.over(sessionGone(message.reason));
      case "superseded":
        return this.over(unknownOutcome("another connection speaks for this session"));
      case "leader":
        return this.over(notLeader(message.leader, this.connection.nodeId));
      case "sessionOpened":
      case "nodes":
      case "answer":
      case "forced":
      case "transferred":
      case "finalized":
      case "membersChanged":
      case "keyRotated":
      case "watching":
      case "changes":
      case "refusedRun":
        // Answers to what is not asked here.
        return;
      default:
        assertNever(message);
    }
  }

  onClosed(): void {
    this.over(unknownOutcome("the connection was closed"));
  }

  private ensureResumed(): void {
    if (this.resume === "none") this.sendResume();
  }

  private sendResume(): void {
    const { session, key } = this.credential;
    this.resume = "sent";
    this.connection.tell({ kind: "resume", session, key });
  }

  private send(command: Command, traceparent?: string): void {
    this.connection.tell(commandMessage(command, traceparent));
  }

  private onResumed(view: ResumeView): void {
    this.resume = "done";
    this.ttl = view.ttlMs;
    for (const { request } of view.holds) {
      const own = clientNumber(request);
      if (own !== null) this.granted.add(own);
    }
    const answered = this.viewing;
    this.viewing = this.nextViewing;
    this.nextViewing = new Set();
    if (this.viewing.size > 0) this.sendResume();
    for (const task of answered) task.onView(view);
  }

  private onOutcome({ request: number, outcome }: Extract<ServerMessage, { readonly kind: "outcome" }>): void {
    const own = clientNumber(number);
    for (const task of [...(this.tasks.get(number) ?? [])]) task.onOutcome(outcome);
    if (own === null) this.onWithdrawn(number, outcome);
    else if (outcome.kind !== "granted" && outcome.kind !== "waiting") this.granted.delete(own);
  }

  private onWithdrawn(number: number, outcome: Outcome): void {
    const request = requestOf(number);
    const withdrawal = this.withdrawals.get(request);
    if (withdrawal === undefined) return;
    const isCrossed = number === cancelNumber(request) && outcome.kind === "alreadyGranted";
    const isAwaited = this.tasks.has(requestNumber(request));
    if (isCrossed && !isAwaited && !this.granted.has(request)) {
      const { session } = this.credential;
      const of = requestNumber(request);
      const numbers = { session, request: crossedReleaseNumber(request), settled: 0, seen: [] };
      withdrawal.command = { kind: "release", ...numbers, of, afterMs: 0 };
      this.send(withdrawal.command);
      return;
    }
    this.endWithdrawal(request);
  }

  private endWithdrawal(request: number): void {
    this.withdrawals.get(request)?.timer?.cancel();
    this.withdrawals.delete(request);
    this.endIfIdle();
  }

  private onRefusal({ request, refusal }: Extract<ServerMessage, { readonly kind: "refused" }>): void {
    const isStranger = refusal.code === "invalid_argument" && refusal.argument === "session";
    const isForAll = request === null || refusal.code === "not_leader" || isStranger;
    const answer = refusalAnswer(refusal, this.connection.nodeId);
    if (!isForAll) return this.onRefused(request, answer);
    // A session that never was and one that lives with another key are refused alike.
    const { session } = this.credential;
    const isAlive = refusal.code === "session_gone" && refusal.reason === null && this.parts.hasSession(session);
    this.over(isAlive ? wrongKey() : answer);
  }

  private onRefused(number: number, answer: Answer): void {
    for (const task of [...(this.tasks.get(number) ?? [])]) task.settle(answer);
    const request = requestOf(number);
    const withdrawal = clientNumber(number) === null ? this.withdrawals.get(request) : undefined;
    if (withdrawal === undefined) return;
    if (answer.status !== 503) return this.endWithdrawal(request);
    withdrawal.timer?.cancel();
    withdrawal.timer = this.parts.clock.setTimer(apiLimits.retryMs, () => this.send(withdrawal.command));
  }

  private endIfIdle(): void {
    const open = this.tasks.size + this.renewals.size + this.viewing.size + this.nextViewing.size;
    if (open + this.withdrawals.size === 0) this.end();
  }

  /** This connection speaks for the session no more: what is open is answered, what was withdrawn may stay in the cluster's queues. */
  private over(answer: Answer): void {
    if (this.isOver) return;
    this.end();
    const open = [...this.tasks.values()].flatMap((each) => [...each]);
    for (const task of [...open, ...this.renewals, ...this.viewing, ...this.nextViewing]) task.settle(answer);
  }

  private end(): void {
    if (this.isOver) return;
    this.isOver = true;
    for (const { timer } of this.withdrawals.values()) timer?.cancel();
    this.withdrawals.clear();
    this.connection.end();
    this.parts.onIdle(this);
  }
}

function assertNever(value: never): never {
  throw new Error(`unexpected value ${JSON.stringify(value)}`);
}
