/**
 * Gets a session's numbered requests across: gives them their numbers, keeps within what the cluster remembers, and sends each one,
 * with the same number and the same bytes, over any number of connections and leaders until it is answered (P7).
 */
import type { RequestNumber, SessionId } from "@holdfast/lock";
import { limits } from "@holdfast/wire";
import type { ClientMessage } from "@holdfast/wire";
import type { Acquire } from "./acquire.js";
import { Backoff } from "./backoff.js";
import { instantNow } from "./lease.js";
import type { Clock, Random, Timer } from "./ports.js";
import { RequestBook } from "./requests.js";
import { encodeAcquire, encodeEnding } from "./session-commands.js";
import type { Ending } from "./session-commands.js";

/** The cluster refuses an acquire while it keeps so many outcomes of the session; what frees something is never refused for that. */
const unseenMax = limits.outcomesPerSessionMax - 24;
const retryOptions = { firstMs: 50, maxMs: 1_000 };

/** A release, cancel or closeSession that is not yet answered. */
export interface OpenEnding {
  readonly kind: Ending;
  /** Null for closeSession. */
  readonly of: Acquire | null;
  readonly payload: Uint8Array;
  readonly traceparent: string | null;
}

export interface SenderHost {
  readonly session: SessionId;
  /** Open, and connected to the leader. */
  readonly canSend: boolean;
  send(message: ClientMessage): void;
  /** An acquire was sent just now. */
  onAcquireSent(): void;
  /** A request has ended. */
  onRequestEnded(): void;
}

const nothing = { payload: null, traceparent: null };

export class RequestSender {
  /** Waiting for a number. */
  readonly queue: Set<Acquire> = new Set();
  /** Numbered, and not over. */
  readonly acquires: Map<RequestNumber, Acquire> = new Map();
  readonly endings: Map<RequestNumber, OpenEnding> = new Map();
  private readonly clock: Clock;
  private readonly host: SenderHost;
  private readonly book = new RequestBook();
  /** To be sent once more. */
  private readonly retries = new Set<RequestNumber>();
  private readonly backoff: Backoff;
  private retryTimer: Timer | null = null;

  constructor(parts: { clock: Clock; random: Random }, host: SenderHost) {
    this.clock = parts.clock;
    this.backoff = new Backoff(retryOptions, parts.random);
    this.host = host;
  }

  /** It holds and waits for as many acquires as the cluster keeps for one session. */
  get isFull(): boolean {
    return this.host.canSend && this.queue.size > 0 && !this.book.hasRoom(unseenMax);
  }

  get isEmpty(): boolean {
    return this.queue.size === 0 && this.acquires.size === 0 && this.endings.size === 0;
  }

  acquire(acquire: Acquire): void {
    if (this.queue.size === 0 && this.canAcquire) {
      this.sendAcquire(acquire);
      return;
    }
    this.queue.add(acquire);
    // It may be ended numbers alone that are in its way, and nobody has told the cluster of them yet.
    this.pump();
  }

  /** Without a leader it is sent at the next resume. */
  end(kind: Ending, of: Acquire | null, afterMs: number): void {
    const carried = this.book.begin(this.host.session);
    const payload = encodeEnding(kind, carried, of?.number ?? 0, afterMs);
    const traceparent = kind === "release" ? (of?.lock?.releaseTraceparent ?? null) : null;
    this.endings.set(carried.request, { kind, of, payload, traceparent });
    if (this.host.canSend) this.send(payload, traceparent);
  }

  /** Sends what there is room for. */
  pump(): void {
    if (this.queue.size > 0 && this.host.canSend) this.makeRoom();
    for (const acquire of this.queue) {
      if (!this.canAcquire) return;
      this.queue.delete(acquire);
      this.sendAcquire(acquire);
    }
  }

  /** On a new connection, after resume: everything unanswered, in order. */
  sendUnanswered(): void {
    this.endRetry();
    const numbers = [...this.acquires.keys(), ...this.endings.keys()].sort((a, b) => a - b);
    for (const number of numbers) this.sendAgain(number);
    this.pump();
  }

  /** An acquire that was told to wait, of which the cluster says nothing now. */
  askAgain(acquire: Acquire): void {
    const carried = this.book.repeat(this.host.session, acquire.number);
    const payload = encodeAcquire(carried, acquire.request);
    acquire.stage = "asked";
    acquire.payload = payload;
    this.send(payload, acquire.traceparent);
  }

  retryLater(number: RequestNumber): void {
    if (!this.acquires.has(number) && !this.endings.has(number)) return;
    this.retries.add(number);
    this.retryTimer ??= this.clock.setTimer(this.backoff.nextMs(), () => {
      this.retryTimer = null;
      if (!this.host.canSend) return;
      const numbers = [...this.retries].sort((a, b) => a - b);
      this.retries.clear();
      for (const each of numbers) this.sendAgain(each);
    });
  }

  /** From the log. */
  onAnswered(number: RequestNumber): void {
    if (this.retryTimer === null) this.backoff.reset();
    this.book.answered(number);
  }

  /** Refused, and in no log. */
  onUnanswered(number: RequestNumber): void {
    this.book.unanswered(number);
  }

  /** Its end is known. */
  finish(acquire: Acquire): void {
    if (!this.acquires.delete(acquire.number)) return;
    acquire.stage = "over";
    acquire.payload = null;
    this.onOver(acquire.number);
  }

  finishEnding(number: RequestNumber): void {
    if (this.endings.delete(number)) this.onOver(number);
  }

  /** Forgets everything, at the session's end. */
  clear(): void {
    this.endRetry();
    this.queue.clear();
    this.acquires.clear();
    this.endings.clear();
  }

  private get canAcquire(): boolean {
    return this.host.canSend && this.book.hasRoom(unseenMax);
  }

  /**
   * After a burst beside a long wait thousands of ended numbers may be untold, and no command is left to carry them: a cancel of
   * something that is over has no other effect.
   */
  private makeRoom(): void {
    while (!this.book.hasRoom(unseenMax) && this.book.canMakeRoom) {
      const carried = this.book.beginTelling(this.host.session);
      const payload = encodeEnding("cancel", carried, carried.seen[0] ?? 0, 0);
      this.endings.set(carried.request, { kind: "cancel", of: null, payload, traceparent: null });
      this.send(payload, null);
    }
  }

  private onOver(number: RequestNumber): void {
    this.retries.delete(number);
    this.book.end(number);
    if (this.queue.size > 0) this.pump();
    this.host.onRequestEnded();
  }

  private sendAcquire(acquire: Acquire): void {
    const carried = this.book.begin(this.host.session);
    const payload = encodeAcquire(carried, acquire.request);
    acquire.stage = "asked";
    acquire.number = carried.request;
    acquire.payload = payload;
    if (acquire.request.maxHoldMs > 0) acquire.sentAt = instantNow(this.clock);
    this.acquires.set(carried.request, acquire);
    this.send(payload, acquire.traceparent);
    this.host.onAcquireSent();
  }

  private sendAgain(number: RequestNumber): void {
    const acquire = this.acquires.get(number);
    const { payload, traceparent } = (acquire?.stage === "asked" ? acquire : this.endings.get(number)) ?? nothing;
    if (payload !== null) this.send(payload, traceparent);
  }

  private send(payload: Uint8Array, traceparent: string | null): void {
    this.host.send({ kind: "command", payload, ...(traceparent === null ? null : { traceparent }) });
  }

  private endRetry(): void {
    this.retryTimer?.cancel();
    this.retryTimer = null;
    this.retries.clear();
  }
}
