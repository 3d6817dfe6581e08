/** A correct client library, as naive as can be: one session, calls, releases, a lease counted by its own clock. Says what it believes. */
import type { Effect, Grant, LogCommand, Mode, Outcome } from "../../src/index.js";
import type { Receiver, Service } from "./service.js";
import type { World } from "./world.js";

export interface AcquireOptions {
  readonly mode?: Mode;
  readonly slots?: number;
  readonly wait?: boolean;
  readonly lockDelayMs?: number;
  readonly maxHoldMs?: number;
}

export interface AcquireCall {
  readonly call: number;
  readonly names: readonly string[];
  readonly options: Required<AcquireOptions>;
  /** Of the session it is sent in; 0: not sent. */
  request: number;
  stage: "open" | "leaving" | "held" | "releasing" | "over";
  grants: readonly Grant[];
  sentAt: number;
  /** By its maxHold. */
  heldUntil: number;
}

interface Ending {
  readonly request: number;
  readonly command: LogCommand;
  readonly acquire: AcquireCall | null;
  /** Of a release; null for a cancel. */
  readonly call: number | null;
}

interface Session {
  readonly id: number;
  readonly key: string;
  leaseFrom: number;
  nextRequest: number;
  nextKeepalive: number;
  readonly sentAt: Map<number, number>;
  readonly endings: Map<number, Ending>;
  isOver: boolean;
}

const retryMs = 150;

export function usableMs(ms: number): number {
  return ms - Math.max(ms * 0.02, 250);
}

export class Client implements Receiver {
  readonly name: string;
  readonly ttlMs: number;
  isCut = false;
  isDead = false;
  session: Session | null = null;
  acquires: AcquireCall[] = [];
  private readonly world: World;
  private readonly service: Service;
  private readonly nextCall: () => number;
  private opening: { readonly key: string; readonly sentAt: number } | null = null;
  private sessions = 0;

  constructor(name: string, ttlMs: number, parts: { world: World; service: Service; nextCall: () => number }) {
    this.name = name;
    this.ttlMs = ttlMs;
    this.world = parts.world;
    this.service = parts.service;
    this.nextCall = parts.nextCall;
    this.service.join(this);
  }

  get isReachable(): boolean {
    return !this.isCut && !this.isDead;
  }

  get held(): AcquireCall[] {
    return this.acquires.filter(({ stage }) => stage === "held");
  }

  // What an application asks.

  acquire(names: readonly string[], options: AcquireOptions = {}): AcquireCall {
    const full = { mode: "exclusive", slots: 0, wait: true, lockDelayMs: 0, maxHoldMs: 0, ...options } as const;
    const { mode, slots, wait, maxHoldMs } = full;
    const call = this.call({ kind: "acquire", names, mode, slots, wait, maxHoldMs });
    const heldUntil = Number.POSITIVE_INFINITY;
    const stage = { request: 0, stage: "open", grants: [], sentAt: 0, heldUntil } as const;
    const acquire: AcquireCall = { call, names, options: full, ...stage };
    this.acquires.push(acquire);
    this.send(acquire);
    return acquire;
  }

  /** The caller's patience is over. */
  giveUp(acquire: AcquireCall): void {
    if (acquire.stage !== "open") return;
    this.return(acquire.call, { kind: "gaveUp" });
    acquire.stage = acquire.request === 0 ? "over" : "leaving";
    if (acquire.stage === "leaving") this.end("cancel", acquire, null, 0);
  }

  release(acquire: AcquireCall, afterMs = 0): void {
    if (acquire.stage !== "held") return;
    const call = this.call({ kind: "release", of: acquire.call });
    acquire.stage = "releasing";
    this.end("release", acquire, call, afterMs);
  }

  inspect(name: string): void {
    const call = this.call({ kind: "inspect", name });
    this.service.read(this, name, (holders) => {
      if (this.isReachable) this.return(call, { kind: "inspected", holders });
    });
  }

  crash(): void {
    if (this.isDead) return;
    this.world.record({ kind: "crashed", process: this.name });
    this.isDead = true;
  }

  // What the network does.

  cut(): void {
    this.isCut = true;
  }

  heal(): void {
    if (!this.isCut) return;
    this.isCut = false;
    this.onServing();
  }

  /** Everything unanswered is sent again, and what is known of is asked for. */
  onServing(): void {
    if (this.session === null) {
      if (this.opening !== null) this.sendOpening();
      return;
    }
    const resent = new Set(this.session.endings.keys());
    for (const acquire of this.acquires.filter(({ request, stage }) => request > 0 && stage !== "over")) {
      this.world.record({ kind: "sent", client: this.name, ...this.idOf(acquire.request), call: acquire.call });
      this.service.receive(this, this.commandOf(acquire));
    }
    for (const ending of this.session.endings.values())
      if (resent.has(ending.request)) this.service.receive(this, ending.command);
    this.sendKeepalive(this.session);
  }

  onAcknowledged(number: number): void {
    const { session } = this;
    const sentAt = session?.sentAt.get(number);
    if (session === null || sentAt === undefined) return;
    this.world.record({ kind: "keepaliveTold", client: this.name, session: session.id, number });
    session.leaseFrom = Math.max(session.leaseFrom, sentAt);
    const ms = session.leaseFrom + this.world.byClock(this.name, usableMs(this.ttlMs)) - this.world.now;
    for (const { call, stage, heldUntil } of this.acquires) {
      const leftMs = Math.min(ms, heldUntil - this.world.now);
      if (leftMs <= 0 || stage !== "held") continue;
      this.world.record({ kind: "remaining", client: this.name, call, session: session.id, ms: leftMs });
    }
  }

  onEffect(_index: number, effect: Effect): void {
    if (effect.kind === "sessionOpened") this.onOpened(effect);
    if (this.session === null || !("session" in effect) || effect.session !== this.session.id) return;
    if (effect.kind === "outcome") {
      const { session, request, outcome } = effect;
      this.world.record({ kind: "told", client: this.name, session, request, outcome });
      this.onOutcome(request, outcome);
    } else if (effect.kind === "sessionEnded" || effect.kind === "rejected") {
      const isGone = effect.kind === "sessionEnded" || effect.rejection.kind === "sessionGone";
      if (isGone) this.lose(this.session, "expired", "cluster");
    }
  }

  // Sessions and leases.

  private open(): void {
    this.sessions += 1;
    this.opening = { key: `${this.name}-${this.sessions}`, sentAt: this.world.now };
    this.sendOpening();
  }

  private sendOpening(): void {
    const { opening } = this;
    if (opening === null || this.isDead) return;
    // Opened under the first key, it would be over as soon as it is known.
    if (this.world.now - opening.sentAt > this.world.byClock(this.name, usableMs(this.ttlMs))) {
      this.open();
      return;
    }
    this.world.record({ kind: "openSent", client: this.name, key: opening.key });
    this.service.receive(this, { kind: "openSession", key: opening.key, ttlMs: this.ttlMs });
    this.world.after(retryMs, () => {
      if (this.opening === opening) this.sendOpening();
    });
  }

  private onOpened({ session: id, key, ttlMs }: Extract<Effect, { readonly kind: "sessionOpened" }>): void {
    if (this.opening?.key !== key) return;
    const { sentAt: leaseFrom } = this.opening;
    this.opening = null;
    this.world.record({ kind: "sessionOpened", client: this.name, session: id, key, ttlMs });
    const session: Session = {
      id,
      key,
      leaseFrom,
      nextRequest: 1,
      nextKeepalive: 1,
      sentAt: new Map(),
      endings: new Map(),
      isOver: false,
    };
    this.session = session;
    this.watchLease(session);
    this.keepAlive(session);
    for (const acquire of this.acquires) if (acquire.stage === "open" && acquire.request === 0) this.send(acquire);
  }

  private keepAlive(session: Session): void {
    if (this.session !== session || this.isDead) return;
    this.sendKeepalive(session);
    this.world.after(this.world.byClock(this.name, this.ttlMs / 3), () => this.keepAlive(session));
  }

  private sendKeepalive(session: Session): void {
    const number = session.nextKeepalive;
    session.nextKeepalive += 1;
    session.sentAt.set(number, this.world.now);
    this.world.record({ kind: "keepaliveSent", client: this.name, session: session.id, number });
    this.service.receiveKeepalive(this, session.id, number);
  }

  private watchLease(session: Session): void {
    const endsAt = session.leaseFrom + this.world.byClock(this.name, usableMs(this.ttlMs));
    if (this.session !== session || this.isDead) return;
    if (endsAt <= this.world.now) this.lose(session, "expired", "client");
    else this.world.after(endsAt - this.world.now, () => this.watchLease(session));
  }

  private lose(session: Session, reason: string, by: "cluster" | "client"): void {
    this.world.record({ kind: "sessionEnded", client: this.name, session: session.id, reason, by });
    this.session = null;
    session.isOver = true;
    for (const { call, acquire } of session.endings.values()) {
      if (call !== null) this.return(call, { kind: "released", how: "alreadyLost" });
      if (acquire !== null) acquire.stage = "over";
    }
    for (const acquire of this.acquires) {
      if (acquire.stage === "held") this.sayLost(acquire, reason);
      if (acquire.stage === "leaving") acquire.stage = "over";
      acquire.request = 0;
    }
    this.tidy();
    for (const acquire of this.acquires) this.send(acquire);
  }

  private sayLost(acquire: AcquireCall, reason: string): void {
    this.world.record({ kind: "state", call: acquire.call, state: "lost", reason, since: null });
    acquire.stage = "over";
  }

  // Requests.

  private send(acquire: AcquireCall): void {
    const { session } = this;
    if (session === null) {
      if (this.opening === null) this.open();
      return;
    }
    acquire.request = session.nextRequest;
    acquire.sentAt = this.world.now;
    session.nextRequest += 1;
    this.world.record({ kind: "sent", client: this.name, ...this.idOf(acquire.request), call: acquire.call });
    this.service.receive(this, this.commandOf(acquire));
  }

  private end(kind: "release" | "cancel", acquire: AcquireCall, call: number | null, afterMs: number): void {
    const { session } = this;
    if (session === null) return;
    const request = session.nextRequest;
    session.nextRequest += 1;
    const common = { ...this.carried(request), of: acquire.request };
    const command: LogCommand = kind === "release" ? { kind, ...common, afterMs } : { kind, ...common };
    session.endings.set(request, { request, command, acquire, call });
    this.world.record({ kind: "sent", client: this.name, ...this.idOf(request), call: call ?? acquire.call });
    this.service.receive(this, command);
  }

  private onOutcome(request: number, outcome: Outcome): void {
    const acquire = this.acquires.find((each) => each.request === request && each.stage !== "over");
    if (acquire !== undefined) this.onAcquireOutcome(acquire, outcome);
    const ending = this.session?.endings.get(request);
    if (ending === undefined) return;
    this.session?.endings.delete(request);
    if (ending.acquire === null) return;
    if (outcome.kind === "alreadyGranted") {
      this.end("release", ending.acquire, null, 0);
      return;
    }
    ending.acquire.stage = "over";
    const how = outcome.kind === "released" ? "released" : "alreadyLost";
    if (ending.call !== null) this.return(ending.call, { kind: "released", how });
    this.tidy();
  }

  private onAcquireOutcome(acquire: AcquireCall, outcome: Outcome): void {
    const { stage } = acquire;
    if (outcome.kind === "granted" && stage === "open") {
      this.onGranted(acquire, outcome.grants, outcome.maxHoldMs);
    } else if (outcome.kind === "lost") {
      if (stage === "held") this.sayLost(acquire, outcome.reason);
      else if (stage === "open") this.send(acquire);
      this.tidy();
    } else if (stage === "open" && (outcome.kind === "lockHeld" || outcome.kind === "lockDelayed")) {
      const code = outcome.kind === "lockHeld" ? "lock_held" : "lock_delayed";
      this.return(acquire.call, { kind: "refused", code });
      acquire.stage = "over";
      this.tidy();
    } else if (stage === "open" && outcome.kind === "slotsDiffer") {
      this.return(acquire.call, { kind: "failed", code: "slots_differ" });
      acquire.stage = "over";
      this.tidy();
    }
  }

  private onGranted(acquire: AcquireCall, grants: readonly Grant[], maxHoldMs: number): void {
    const { session } = this;
    if (session === null) return;
    acquire.stage = "held";
    acquire.grants = grants;
    this.return(acquire.call, { kind: "acquired", grants, session: session.id, request: acquire.request });
    if (maxHoldMs === 0) return;
    const endsAt = Math.max(session.leaseFrom, acquire.sentAt) + this.world.byClock(this.name, usableMs(maxHoldMs));
    acquire.heldUntil = endsAt;
    this.world.after(endsAt - this.world.now, () => {
      if (acquire.stage === "held" && !this.isDead) this.sayLost(acquire, "max_hold");
    });
  }

  private commandOf({ request, names, options }: AcquireCall): LogCommand {
    return { kind: "acquire", ...this.carried(request), names: [...names].sort(), ...options };
  }

  /** All below the oldest one that is open is settled. */
  private carried(request: number): { session: number; request: number; settled: number; seen: readonly number[] } {
    const open = this.acquires.filter((each) => each.stage !== "over" && each.request > 0).map((each) => each.request);
    const settled = Math.min(request, ...open, ...(this.session?.endings.keys() ?? []));
    return { ...this.idOf(request), settled, seen: [] };
  }

  private idOf(request: number): { session: number; request: number } {
    return { session: this.session?.id ?? 0, request };
  }

  private call(op: Extract<Parameters<World["record"]>[0], { kind: "call" }>["op"]): number {
    const call = this.nextCall();
    this.world.record({ kind: "call", client: this.name, call, op });
    return call;
  }

  private return(call: number, result: Extract<Parameters<World["record"]>[0], { kind: "return" }>["result"]): void {
    this.world.record({ kind: "return", call, result });
  }

  private tidy(): void {
    this.acquires = this.acquires.filter(({ stage }) => stage !== "over");
  }
}
