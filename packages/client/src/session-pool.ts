/** The client's sessions: one for each TTL in use, and one for each manual lock. */
import type { ServerMessage } from "@holdfast/wire";
import type { Acquire } from "./acquire.js";
import { Backoff } from "./backoff.js";
import { assertNever, connectionClosed } from "./errors.js";
import type { LockLossReason } from "./errors.js";
import type { LockHandle } from "./lock-handle.js";
import { Session } from "./session.js";
import type { SessionEvents, SessionParts } from "./session.js";

/** A session that the cluster ended sooner than this after its opening is followed by another only after a while. */
const shortLifeMs = 1_000;
const reopenOptions = { firstMs: 50, maxMs: 1_000 };

export interface SessionPoolOptions {
  /** Of the session that stays while nothing is held. */
  readonly ttlMs: number;
  readonly info: string;
}

/** Messages that speak of a session, or are refused. */
export type SessionMessage = Exclude<
  ServerMessage,
  {
    readonly kind:
      | "welcome"
      | "leader"
      | "answer"
      | "forced"
      | "transferred"
      | "finalized"
      | "keyRotated"
      | "watching"
      | "changes";
  }
>;

export class SessionPool {
  private readonly options: SessionPoolOptions;
  private readonly parts: SessionParts;
  private readonly sessions = new Set<Session>();
  private readonly byTtl = new Map<number, Session>();
  private readonly byId = new Map<number, Session>();
  private readonly events: SessionEvents;
  private readonly reopen: Backoff;
  private openFromMs = 0;
  private isClosing = false;
  private onDrained: (() => void) | null = null;
  private onEmpty: (() => void) | null = null;

  constructor(options: SessionPoolOptions, parts: SessionParts) {
    this.options = options;
    this.parts = parts;
    this.reopen = new Backoff(reopenOptions, parts.random);
    this.events = {
      onEnded: (session, reason, orphans) => this.onEnded(session, reason, orphans),
      onRequestEnded: () => this.checkDrained(),
    };
  }

  acquire(acquire: Acquire): void {
    const { ttlMs, isManual } = acquire.request;
    let session = isManual ? undefined : this.byTtl.get(ttlMs);
    if (session === undefined || !session.takesAcquires) {
      session = this.newSession(ttlMs, isManual);
      if (!isManual) this.byTtl.set(ttlMs, session);
    }
    session.acquire(acquire);
  }

  heldLocks(): readonly LockHandle[] {
    return [...this.sessions].flatMap((session) => session.heldLocks());
  }

  onLeader(): void {
    this.each((session) => session.onLeader());
  }

  onMessage(message: SessionMessage): void {
    switch (message.kind) {
      case "outcome":
        this.byId.get(message.session)?.onOutcome(message.request, message.outcome);
        return;
      case "acknowledged":
        this.byId.get(message.session)?.onAcknowledged(message.number);
        return;
      case "sessionOpened":
        this.onOpened(message);
        return;
      case "resumed":
        this.byId.get(message.session)?.onResumed(message);
        return;
      case "rejected":
        this.byId.get(message.session)?.onRejected(message.request, message.rejection);
        return;
      case "sessionEnded":
        this.byId.get(message.session)?.onEnded(message.reason ?? "session_gone");
        return;
      case "superseded":
        this.byId.get(message.session)?.onSuperseded();
        return;
      case "refused":
        this.onRefused(message);
        return;
      case "refusedRun":
        this.onRefusedRun(message);
        return;
      case "nodes":
      case "membersChanged":
        return; // of no session
      default:
        assertNever(message);
    }
  }

  /** Calls `done` once, when no lock is held. */
  drain(done: () => void): void {
    this.onDrained = done;
    this.checkDrained();
  }

  /** Whatever is still held. */
  endDrain(): void {
    const { onDrained } = this;
    this.onDrained = null;
    onDrained?.();
  }

  /** Whoever holds a lock hears that it is lost, then all is released. Calls `done` once, when that is known of every session. */
  close(done: () => void): void {
    this.isClosing = true;
    this.onEmpty = done;
    for (const lock of this.heldLocks()) if (lock.state !== "released") lock.lose("closed");
    this.each((session) => session.close());
    this.checkEmpty();
  }

  /** Ends all sessions here, whatever the cluster knows of it. */
  endAll(reason: LockLossReason): void {
    this.each((session) => session.end(reason));
  }

  /** Of those there are now: what `act` does may end some and make others. */
  private each(act: (session: Session) => void): void {
    const sessions = [...this.sessions];
    for (const session of sessions) act(session);
  }

  private newSession(ttlMs: number, isManual: boolean): Session {
    const { info } = this.options;
    const isLasting = ttlMs === this.options.ttlMs && !isManual;
    const session = new Session(
      { ttlMs, isManual, isLasting, info, openFromMs: this.openFromMs },
      this.parts,
      this.events,
    );
    this.sessions.add(session);
    return session;
  }

  private onOpened({ key, session: id, ttlMs }: Extract<SessionMessage, { kind: "sessionOpened" }>): void {
    const session = this.withKey(key);
    // The answer to an opening that was given up: that session holds nothing, and expires.
    if (session === null || session.session !== 0) return;
    this.byId.set(id, session);
    session.onOpened(id, ttlMs);
  }

  private onRefused({ session: id, request, key, refusal }: Extract<SessionMessage, { kind: "refused" }>): void {
    if (key !== null) {
      // One that is open was brought through by another copy of its opening.
      const session = this.withKey(key);
      if (session?.session === 0) session.onRefused(null, refusal);
    } else if (id !== null) this.byId.get(id)?.onRefused(request, refusal);
    else this.parts.logger.error({ refusal }, "a node could not read what this client sent");
  }

  private onRefusedRun({ session: id, from, to, refusal }: Extract<SessionMessage, { kind: "refusedRun" }>): void {
    for (let request = from; request <= to; request += 1) this.byId.get(id)?.onRefused(request, refusal);
  }

  private withKey(key: string): Session | null {
    for (const session of this.sessions) if (session.key === key) return session;
    return null;
  }

  private onEnded(session: Session, reason: LockLossReason, orphans: readonly Acquire[]): void {
    this.sessions.delete(session);
    this.byId.delete(session.session);
    if (this.byTtl.get(session.options.ttlMs) === session) this.byTtl.delete(session.options.ttlMs);
    if (reason === "session_gone" && session.ageMs < shortLifeMs) {
      this.openFromMs = this.parts.clock.monotonicMs() + this.reopen.nextMs();
    } else {
      this.reopen.reset();
    }
    for (const orphan of orphans) {
      if (this.isClosing) orphan.fail(connectionClosed());
      else if (!orphan.isSettled) this.acquire(orphan);
    }
    this.checkDrained();
    this.checkEmpty();
  }

  private checkEmpty(): void {
    const { onEmpty } = this;
    if (onEmpty === null || this.sessions.size > 0) return;
    this.onEmpty = null;
    onEmpty();
  }

  private checkDrained(): void {
    if (this.onDrained !== null && this.heldLocks().length === 0) this.endDrain();
  }
}
