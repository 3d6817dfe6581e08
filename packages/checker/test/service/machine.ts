/**
 * A lock machine for tests, written apart from the checker's own: one list of acquires in log order, searched from the front at every
 * question, everything granted that can be granted after every entry.
 */
import type { Effect, Grant, LogCommand, LossReason, Mode, Outcome } from "../../src/index.js";

interface Session {
  readonly id: number;
  readonly key: string;
  readonly ttlMs: number;
  silence: number;
  settled: number;
  readonly outcomes: Map<number, Outcome>;
}

interface Acquire {
  readonly session: Session;
  readonly request: number;
  readonly names: readonly string[];
  readonly mode: Mode;
  readonly slots: number;
  readonly lockDelayMs: number;
  readonly maxHoldMs: number;
  grants: readonly Grant[] | null;
}

interface Delay {
  readonly name: string;
  readonly index: number;
  readonly mode: Mode;
  readonly slots: number;
  readonly places: readonly (number | null)[];
  readonly delayMs: number;
}

type Numbered = Extract<LogCommand, { readonly request: number }>;

export class Machine {
  sessions: Session[] = [];
  acquires: Acquire[] = [];
  delays: Delay[] = [];
  private closed: { readonly session: number; readonly request: number; readonly reason: LossReason }[] = [];
  private effects: Effect[] = [];
  private clusterVersion = 1;
  private readonly keyIds: string[] = [];
  private index = 0;

  apply(index: number, command: LogCommand): Effect[] {
    this.index = index;
    this.effects = [];
    this.execute(command);
    const begun = this.delays.filter((delay) => delay.index === index);
    for (const name of new Set(begun.map((delay) => delay.name))) {
      const all = begun.filter((delay) => delay.name === name).map(({ delayMs }) => delayMs);
      this.effects.push({ kind: "lockDelayBegan", name, index, delayMs: Math.max(...all) });
    }
    let next = this.nextGrant();
    while (next !== undefined) {
      this.grant(next);
      next = this.nextGrant();
    }
    return this.effects;
  }

  holdersOf(name: string): { readonly token: number; readonly slot: number | null }[] {
    return this.held(name).flatMap(({ grants }) => (grants ?? []).filter((grant) => grant.name === name));
  }

  /** Equal for equal states. */
  get hash(): string {
    const acquires = this.acquires.map(({ session, request, grants }) => [session.id, request, grants]);
    const sessions = this.sessions.map(({ id, silence, outcomes }) => [id, silence, [...outcomes]]);
    return JSON.stringify([sessions, acquires, this.delays]);
  }

  private execute(command: LogCommand): void {
    switch (command.kind) {
      case "openSession": {
        const { key, ttlMs } = command;
        let session = this.sessions.find((each) => each.key === key);
        const isNew = session === undefined;
        session ??= { id: this.index, key, ttlMs, silence: 0, settled: 1, outcomes: new Map() };
        if (isNew) this.sessions.push(session);
        this.effects.push({ kind: "sessionOpened", key, session: session.id, ttlMs: session.ttlMs, isNew });
        return;
      }
      case "expireSessions":
        for (const id of command.ids) {
          const session = this.sessions.find((each) => each.id === id && each.silence > 0);
          if (session === undefined) this.effects.push({ kind: "expiryRefused", session: id });
          else this.end(session, "expired", 0);
        }
        return;
      case "suspectSessions":
      case "renewSuspects":
        for (const session of this.sessions.filter(({ id }) => command.ids.includes(id))) {
          const renewed = command.kind === "renewSuspects";
          session.silence = renewed ? 0 : Math.min(8, session.silence + command.eighths);
          this.effects.push({ kind: "silence", session: session.id, count: session.silence, renewed });
        }
        return;
      case "forceRelease": {
        const { name, token, lockDelayMs } = command;
        const hit = this.held(name).filter(({ grants }) => grants?.some((grant) => isGrantOf(grant, name, token)));
        this.effects.push({ kind: "forced", name, token, ended: hit.length });
        for (const hold of hit) this.lose(hold, "forced", Math.max(lockDelayMs, hold.lockDelayMs));
        return;
      }
      case "endLockDelay": {
        const { name, index } = command;
        const left = this.delays.filter((delay) => delay.name !== name || delay.index !== index);
        if (left.length < this.delays.length) this.effects.push({ kind: "lockDelayEnded", name, index });
        this.delays = left;
        return;
      }
      case "endHold": {
        const { session, of, token } = command;
        const hold = this.acquires.find((each) => each.session.id === session && each.request === of);
        if (hold?.grants?.[0]?.token === token) this.lose(hold, "max_hold", hold.lockDelayMs);
        return;
      }
      case "setClusterVersion":
        this.clusterVersion = Math.max(this.clusterVersion, command.version);
        this.effects.push({ kind: "clusterVersion", version: this.clusterVersion });
        return;
      case "setSigningKey": {
        const { id, replaces } = command;
        const isKnown = this.keyIds.slice(-8).includes(id);
        const isSet = this.clusterVersion > 1 && !isKnown && (this.keyIds.at(-1) ?? null) === replaces;
        if (isSet) this.keyIds.push(id);
        this.effects.push({ kind: "signingKeySet", id, replaces, isSet });
        return;
      }
      default:
        return this.executeNumbered(command);
    }
  }

  private executeNumbered(command: Numbered): void {
    const { session: id, request, settled } = command;
    const session = this.sessions.find((each) => each.id === id);
    if (session === undefined) {
      const end = this.closed.find((each) => each.session === id);
      if (command.kind === "closeSession" && end?.request === request) this.say(id, request, { kind: "sessionClosed" });
      else {
        const rejection = { kind: "sessionGone", reason: end?.reason ?? null } as const;
        this.effects.push({ kind: "rejected", session: id, request, rejection });
      }
      return;
    }
    session.settled = Math.max(session.settled, settled);
    for (const number of [...session.outcomes.keys()].filter((each) => each < session.settled))
      session.outcomes.delete(number);
    const known = session.outcomes.get(request) ?? this.liveOutcome(session, request);
    if (request < session.settled) {
      this.effects.push({ kind: "rejected", session: id, request, rejection: { kind: "settled" } });
    } else if (known === undefined) {
      this.executeOnce(session, command);
    } else {
      this.say(id, request, known);
    }
  }

  private executeOnce(session: Session, command: Numbered): void {
    switch (command.kind) {
      case "closeSession":
        this.say(session.id, command.request, { kind: "sessionClosed" });
        return this.end(session, "closed", command.request);
      case "acquire":
        return this.acquire(session, command);
      case "release": {
        const hold = this.live(session, command.of);
        if (!hold?.grants) return this.keep(session, command.request, { kind: "notHeld" });
        this.keep(session, command.request, { kind: "released" });
        session.outcomes.set(command.of, { kind: "released" });
        return this.takeOut(hold, command.afterMs);
      }
      case "cancel": {
        const target = this.live(session, command.of);
        if (target?.grants)
          return this.keep(session, command.request, { kind: "alreadyGranted", grants: target.grants });
        if (target === undefined && (session.outcomes.has(command.of) || command.of < session.settled))
          return this.keep(session, command.request, { kind: "notHeld" });
        this.keep(session, command.request, { kind: "cancelled" });
        this.keep(session, command.of, { kind: "cancelled" });
        if (target !== undefined) this.takeOut(target, 0);
        return;
      }
      case "setInfo":
        return this.keep(session, command.request, {
          kind: this.live(session, command.of) === undefined ? "notHeld" : "infoSet",
        });
      default:
        return command satisfies never;
    }
  }

  private acquire(session: Session, command: Extract<LogCommand, { readonly kind: "acquire" }>): void {
    const { request, mode, slots, lockDelayMs, maxHoldMs } = command;
    const names = [...command.names].sort();
    const wanted: Acquire = { session, request, names, mode, slots, lockDelayMs, maxHoldMs, grants: null };
    for (const name of names) {
      const other = [...this.acquires.filter((each) => each.names.includes(name)), ...this.delaysOf(name)][0];
      if (other !== undefined && other.slots !== slots)
        return this.keep(session, request, { kind: "slotsDiffer", name, slots: other.slots });
    }
    const blocked = names.find((name) => !this.isFree(name, wanted));
    if (blocked !== undefined && !command.wait) {
      const isHeld = this.acquires.some((each) => each.names.includes(blocked) && excludes(each, wanted));
      return this.keep(session, request, { kind: isHeld ? "lockHeld" : "lockDelayed", name: blocked });
    }
    this.acquires.push(wanted);
    if (blocked === undefined) this.grant(wanted);
    else this.say(session.id, request, { kind: "waiting" });
  }

  private nextGrant(): Acquire | undefined {
    return this.acquires.find((each) => each.grants === null && each.names.every((name) => this.isFree(name, each)));
  }

  private isFree(name: string, acquire: Acquire): boolean {
    const at = this.acquires.indexOf(acquire);
    const before = at < 0 ? this.acquires : this.acquires.slice(0, at);
    if (before.some((each) => each.grants === null && each.names.includes(name))) return false;
    if (acquire.mode === "slot") return this.freePlace(name, acquire.slots) !== undefined;
    const isHeld = this.held(name).some((holder) => acquire.mode === "exclusive" || holder.mode === "exclusive");
    return !isHeld && !this.delaysOf(name).some(({ mode }) => acquire.mode === "exclusive" || mode === "exclusive");
  }

  private freePlace(name: string, slots: number): number | undefined {
    const used = [
      ...this.holdersOf(name).map(({ slot }) => slot),
      ...this.delaysOf(name).flatMap((each) => each.places),
    ];
    return Array.from({ length: slots }, (_, place) => place).find((place) => !used.includes(place));
  }

  private grant(acquire: Acquire): void {
    const { session, request, names, mode, slots, maxHoldMs } = acquire;
    acquire.grants = names.map((name) => {
      if (mode === "slot") return { name, token: this.index, slot: this.freePlace(name, slots) ?? 0 };
      return { name, token: this.holdersOf(name)[0]?.token ?? this.index, slot: null };
    });
    this.say(session.id, request, { kind: "granted", grants: acquire.grants, maxHoldMs });
    const token = acquire.grants[0]?.token ?? 0;
    this.effects.push({ kind: "holdBegan", session: session.id, of: request, token, maxHoldMs });
  }

  private end(session: Session, reason: "expired" | "closed", request: number): void {
    for (const acquire of this.acquires.filter((each) => each.session === session)) {
      this.say(session.id, acquire.request, { kind: "lost", reason, index: this.index });
      this.takeOut(acquire, reason === "closed" ? 0 : acquire.lockDelayMs);
    }
    this.sessions = this.sessions.filter((each) => each !== session);
    this.closed.push({ session: session.id, request, reason });
    this.effects.push({ kind: "sessionEnded", session: session.id, reason });
  }

  private lose(hold: Acquire, reason: LossReason, delayMs: number): void {
    this.keep(hold.session, hold.request, { kind: "lost", reason, index: this.index });
    this.takeOut(hold, delayMs);
  }

  private takeOut(acquire: Acquire, delayMs: number): void {
    this.acquires = this.acquires.filter((each) => each !== acquire);
    if (delayMs === 0) return;
    const { mode, slots } = acquire;
    for (const { name, slot } of acquire.grants ?? [])
      this.delays.push({ name, index: this.index, mode, slots, places: [slot], delayMs });
  }

  private live(session: Session, request: number): Acquire | undefined {
    return this.acquires.find((each) => each.session === session && each.request === request);
  }

  private liveOutcome(session: Session, request: number): Outcome | undefined {
    const acquire = this.live(session, request);
    if (acquire === undefined) return undefined;
    const { grants, maxHoldMs } = acquire;
    return grants === null ? { kind: "waiting" } : { kind: "granted", grants, maxHoldMs };
  }

  private held(name: string): Acquire[] {
    return this.acquires.filter(({ grants }) => grants?.some((grant) => grant.name === name));
  }

  private delaysOf(name: string): Delay[] {
    return this.delays.filter((delay) => delay.name === name);
  }

  private keep(session: Session, request: number, outcome: Outcome): void {
    session.outcomes.set(request, outcome);
    this.say(session.id, request, outcome);
  }

  private say(session: number, request: number, outcome: Outcome): void {
    this.effects.push({ kind: "outcome", session, request, outcome });
  }
}

function isGrantOf(grant: Grant, name: string, token: number): boolean {
  return grant.name === name && grant.token === token;
}

/** A waiter stands before everybody. */
function excludes(other: Acquire, wanted: Acquire): boolean {
  return other.grants === null || other.mode !== "shared" || wanted.mode !== "shared";
}
