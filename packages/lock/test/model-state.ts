/** What the model knows, and the answers that follow from it. */
import type { Grant, HolderView, LockView, Mode, Outcome, ResumeView, SessionView } from "../src/index.js";

export interface ModelSession {
  readonly id: number;
  readonly key: string;
  readonly ttlMs: number;
  readonly info: string;
  silence: number;
  /** Numbers whose outcome was seen. */
  readonly seen: Set<number>;
  settled: number;
}

export interface ModelRequest {
  readonly session: ModelSession;
  readonly number: number;
  /** Null while it waits or holds. */
  outcome: Outcome | null;
  /** Of an acquire that entered or was granted. */
  readonly acquire: ModelAcquire | null;
}

export interface ModelAcquire {
  readonly index: number;
  readonly names: readonly string[];
  readonly mode: Mode;
  readonly slots: number;
  readonly lockDelayMs: number;
  readonly maxHoldMs: number;
  info: string;
  /** Null while it waits. */
  grants: Grant[] | null;
}

export interface ModelDelay {
  readonly name: string;
  readonly index: number;
  readonly mode: Mode;
  readonly slots: number;
  delayMs: number;
  readonly places: number[];
}

export type Live = ModelRequest & { readonly acquire: ModelAcquire };

export class ModelState {
  sessions: ModelSession[] = [];
  requests: ModelRequest[] = [];
  delays: ModelDelay[] = [];

  holdersOf(name: string): Live[] {
    return this.live(name).filter(({ acquire }) => acquire.grants !== null);
  }

  waitersOf(name: string): Live[] {
    return this.live(name).filter(({ acquire }) => acquire.grants === null);
  }

  holds(): Live[] {
    return this.live(null).filter(({ acquire }) => acquire.grants !== null);
  }

  names(): string[] {
    const names = [...this.live(null).flatMap(({ acquire }) => acquire.names), ...this.delays.map(({ name }) => name)];
    return [...new Set(names)].sort();
  }

  lockView(name: string): LockView | null {
    if (!this.names().includes(name)) return null;
    const holders = this.holdersOf(name);
    const waiters = this.waitersOf(name);
    return {
      name,
      mode: holders[0]?.acquire.mode ?? null,
      slots: this.slotsOf(name) ?? 0,
      holders: holders.map((holder) => this.holderView(holder, name)),
      holderCount: holders.length,
      waiters: waiters.map((waiter, at) => {
        const { session, number, acquire } = waiter;
        const { mode, info, names } = acquire;
        const isElsewhere = names.some((other) => other !== name && !this.isFreeFor(waiter, other));
        const reserves = at === 0 && isElsewhere;
        return { session: session.id, request: number, mode, info: info || session.info, names, reserves };
      }),
      waiterCount: waiters.length,
      delays: this.delaysOf(name).flatMap(({ index, delayMs, places }) =>
        (places.length === 0 ? [null] : places).map((slot) => ({ index, delayMs, slot })),
      ),
    };
  }

  sessionViews(): SessionView[] {
    return this.sessions.map((session) => {
      const { id, ttlMs, info, silence } = session;
      const live = this.live(null).filter((request) => request.session === session);
      const holds = live.filter(({ acquire }) => acquire.grants !== null).length;
      return { id, ttlMs, info, silence, holds, waits: live.length - holds };
    });
  }

  resumeView(id: number): ResumeView | null {
    const session = this.sessions.find((each) => each.id === id);
    if (session === undefined) return null;
    const own = this.requests.filter((each) => each.session === session).sort((a, b) => a.number - b.number);
    const live = own.filter((each): each is Live => each.outcome === null);
    return {
      session: id,
      ttlMs: session.ttlMs,
      holds: live
        .filter(({ acquire }) => acquire.grants !== null)
        .map(({ number: request, acquire }) => ({
          request,
          grants: acquire.grants ?? [],
          maxHoldMs: acquire.maxHoldMs,
        })),
      waiting: live.filter(({ acquire }) => acquire.grants === null).map(({ number }) => number),
      outcomes: own.flatMap(({ number: request, outcome }) => (outcome === null ? [] : [{ request, outcome }])),
    };
  }

  isSettled(session: ModelSession, number: number): boolean {
    return number < session.settled || session.seen.has(number);
  }

  /** Nothing stands before it at this name: no earlier waiter, no conflicting hold, no closing delay. */
  isFreeFor(request: Live, name: string): boolean {
    const { mode, slots, index } = request.acquire;
    if (this.waitersOf(name).some((waiter) => waiter.acquire.index < index)) return false;
    if (mode === "slot") return this.freePlace(name, slots) !== null;
    if (this.holdersOf(name).some((holder) => mode === "exclusive" || holder.acquire.mode === "exclusive"))
      return false;
    return !this.delaysOf(name).some((delay) => mode === "exclusive" || delay.mode === "exclusive");
  }

  freePlace(name: string, slots: number): number | null {
    const held = this.holdersOf(name).map(({ acquire }) => acquire.grants?.find((grant) => grant.name === name)?.slot);
    const delayed = this.delaysOf(name).flatMap(({ places }) => places);
    for (let place = 0; place < slots; place += 1) {
      if (!held.includes(place) && !delayed.includes(place)) return place;
    }
    return null;
  }

  outcomeOf(request: ModelRequest): Outcome {
    const { outcome, acquire } = request;
    if (outcome !== null) return outcome;
    const live = request as Live;
    if (acquire === null) throw new Error("what is not over is an acquire");
    if (acquire.grants !== null) return { kind: "granted", grants: acquire.grants, maxHoldMs: acquire.maxHoldMs };
    const before = acquire.names.map(
      (name) => this.waitersOf(name).filter((each) => each.acquire.index < acquire.index).length,
    );
    const blocked = acquire.names.find((name) => !this.isFreeFor(live, name)) ?? "";
    const holder = this.holdersOf(blocked)[0];
    return {
      kind: "waiting",
      ahead: Math.max(...before),
      holder: holder === undefined ? null : this.holderView(holder, blocked),
    };
  }

  /** Acquires that wait or hold, in the order of the log; at `name`, or all. */
  live(name: string | null): Live[] {
    const live = this.requests.filter((each): each is Live => each.outcome === null);
    const here = name === null ? live : live.filter(({ acquire }) => acquire.names.includes(name));
    return here.sort((a, b) => a.acquire.index - b.acquire.index);
  }

  delaysOf(name: string): ModelDelay[] {
    return this.delays.filter((delay) => delay.name === name).sort((a, b) => a.index - b.index);
  }

  /** Null when there is no such lock. */
  slotsOf(name: string): number | null {
    return this.live(name)[0]?.acquire.slots ?? this.delaysOf(name)[0]?.slots ?? null;
  }

  holderView({ session, number, acquire }: Live, name: string): HolderView {
    const grant = acquire.grants?.find((each) => each.name === name);
    const { token = 0, slot = null } = grant ?? {};
    return {
      session: session.id,
      request: number,
      token,
      slot,
      mode: acquire.mode,
      info: acquire.info || session.info,
    };
  }

  find(session: ModelSession, number: number): ModelRequest | undefined {
    return this.requests.find((each) => each.session === session && each.number === number);
  }
}
