/**
 * The lock machine once more, as naive as can be: lists that are searched from the front, rules in the order of the text, and after every
 * entry all waiters are examined. It shares no line with what it judges. Limits on what is kept are not modelled.
 */
import type { Command, Effect, Grant, LossReason, Mode, Outcome } from "../src/index.js";
import { ModelState } from "./model-state.js";
import type { Live, ModelRequest, ModelSession } from "./model-state.js";

type CommandOf<Kind extends Command["kind"]> = Extract<Command, { kind: Kind }>;

export class Model extends ModelState {
  private readonly ended: { id: number; reason: LossReason; request: number }[] = [];
  private effects: Effect[] = [];
  private index = 0;
  private clusterVersion = 1;
  readonly keys: { readonly id: string; readonly publicKey: string; readonly since: number; readonly seed: string }[] =
    [];

  apply(index: number, command: Command): Effect[] {
    this.index = index;
    this.effects = [];
    const before = new Set(this.delays);
    this.execute(command);
    for (const { name, index: at, delayMs } of this.delays.filter((delay) => !before.has(delay))) {
      this.effects.push({ kind: "lockDelayBegan", name, index: at, delayMs });
    }
    for (let next = this.nextGrantable(); next !== null; next = this.nextGrantable()) this.grant(next);
    return this.effects;
  }

  // Commands.

  private execute(command: Command): void {
    switch (command.kind) {
      case "openSession":
        return this.openSession(command);
      case "expireSessions":
        for (const id of new Set(command.ids)) {
          const session = this.sessions.find((each) => each.id === id);
          if (session === undefined || session.silence === 0) this.effects.push({ kind: "expiryRefused", session: id });
          else this.endSession(session, "expired", 0);
        }
        return;
      case "suspectSessions":
      case "renewSuspects":
        for (const id of new Set(command.ids)) {
          const session = this.sessions.find((each) => each.id === id);
          if (session === undefined) continue;
          const renewed = command.kind === "renewSuspects";
          session.silence = renewed ? 0 : Math.min(8, session.silence + command.eighths);
          this.effects.push({ kind: "silence", session: id, count: session.silence, renewed });
        }
        return;
      case "forceRelease":
        return this.forceRelease(command);
      case "setClusterVersion":
        this.clusterVersion = Math.max(this.clusterVersion, command.version);
        this.effects.push({ kind: "clusterVersion", version: this.clusterVersion });
        return;
      case "setSigningKey": {
        const { id, publicKey, seed, replaces, principal } = command;
        const isSet =
          this.clusterVersion >= 2 &&
          this.keys.slice(0, 8).every((key) => key.id !== id) &&
          (this.keys[0]?.id ?? null) === replaces;
        if (isSet) this.keys.unshift({ id, publicKey, since: this.index, seed });
        this.effects.push({ kind: "signingKeySet", id, replaces, principal, isSet });
        return;
      }
      case "endLockDelay":
        return this.endLockDelay(command);
      case "endHold": {
        const hold = this.holds().find((each) => each.session.id === command.session && each.number === command.of);
        if (hold?.acquire.grants?.[0]?.token === command.token) this.lose(hold, "max_hold", hold.acquire.lockDelayMs);
        return;
      }
      default:
        return this.executeOfSession(command);
    }
  }

  private openSession({ key, ttlMs, info }: CommandOf<"openSession">): void {
    let session = this.sessions.find((each) => each.key === key);
    const isNew = session === undefined;
    session ??= { id: this.index, key, ttlMs, info, silence: 0, seen: new Set(), settled: 1 };
    if (isNew) this.sessions.push(session);
    this.effects.push({ kind: "sessionOpened", key, session: session.id, ttlMs: session.ttlMs, isNew });
  }

  private executeOfSession(command: Extract<Command, { request: number }>): void {
    const session = this.sessions.find((each) => each.id === command.session);
    if (session === undefined) {
      const ended = this.ended.find((each) => each.id === command.session);
      const closed = command.kind === "closeSession" && ended?.reason === "closed" && ended.request === command.request;
      if (closed) this.answer(command, { kind: "sessionClosed" });
      else this.reject(command, { kind: "sessionGone", reason: ended?.reason ?? null });
      return;
    }
    this.settle(session, command.settled, command.seen);
    if (this.isSettled(session, command.request)) {
      this.reject(command, { kind: "settled" });
      return;
    }
    const known = this.find(session, command.request);
    if (known !== undefined) {
      this.answer(command, this.outcomeOf(known));
      return;
    }
    switch (command.kind) {
      case "closeSession":
        this.answer(command, { kind: "sessionClosed" });
        return this.endSession(session, "closed", command.request);
      case "acquire":
        return this.acquire(session, command);
      case "release":
        return this.release(session, command);
      case "cancel":
        return this.cancel(session, command);
      case "setInfo":
        return this.setInfo(session, command);
      default:
        return command satisfies never;
    }
  }

  private acquire(session: ModelSession, command: CommandOf<"acquire">): void {
    const { mode, info, lockDelayMs, maxHoldMs } = command;
    const names = [...new Set(command.names)].sort();
    const slots = mode === "slot" ? command.slots : 0;
    const acquire = { index: this.index, names, mode, slots, lockDelayMs, maxHoldMs, info, grants: null };
    const request: Live = { session, number: command.request, outcome: null, acquire };
    const differing = names.find((name) => (this.slotsOf(name) ?? slots) !== slots);
    const blocked = names.find((name) => !this.isFreeFor(request, name));
    let refusal: Outcome | null = null;
    if (names.length === 0) refusal = { kind: "cancelled" };
    else if (differing !== undefined)
      refusal = { kind: "slotsDiffer", name: differing, slots: this.slotsOf(differing) ?? 0 };
    else if (blocked !== undefined && !command.wait) refusal = this.refusalAt(blocked, mode);
    if (refusal !== null) {
      this.requests.push({ session, number: command.request, outcome: refusal, acquire: null });
      this.answer(command, refusal);
      return;
    }
    this.requests.push(request);
    if (blocked === undefined) this.grant(request);
    else this.answer(command, this.outcomeOf(request));
  }

  private refusalAt(name: string, mode: Mode): Outcome {
    const holders = this.holdersOf(name);
    const conflicting = mode === "shared" ? holders.filter(({ acquire }) => acquire.mode === "exclusive") : holders;
    if (this.waitersOf(name).length > 0 || conflicting.length > 0) {
      const holder = holders[0] === undefined ? null : this.holderView(holders[0], name);
      return { kind: "lockHeld", name, holder };
    }
    const closing = this.delaysOf(name).filter((delay) => mode !== "shared" || delay.mode === "exclusive");
    return { kind: "lockDelayed", name, delayMs: Math.max(...closing.map(({ delayMs }) => delayMs)) };
  }

  private release(session: ModelSession, command: CommandOf<"release">): void {
    const hold = this.holds().find((each) => each.session === session && each.number === command.of);
    if (hold === undefined) return this.notHeld(session, command);
    this.answer(command, { kind: "released" });
    this.endHold(hold, "released", command.afterMs);
    hold.outcome = { kind: "released" };
    this.requests.push({ session, number: command.request, outcome: { kind: "released" }, acquire: null });
  }

  private cancel(session: ModelSession, command: CommandOf<"cancel">): void {
    const { request: number, of } = command;
    const target = this.find(session, of);
    const grants = target?.outcome === null ? target.acquire?.grants : null;
    if (grants) {
      const outcome: Outcome = { kind: "alreadyGranted", grants };
      this.requests.push({ session, number, outcome, acquire: null });
      this.answer(command, outcome);
      return;
    }
    const outcome: Outcome = { kind: "cancelled" };
    if (target === undefined && of !== number && !this.isSettled(session, of)) {
      this.requests.push({ session, number: of, outcome, acquire: null });
    } else if (target?.outcome === null) {
      target.outcome = outcome;
    } else {
      return this.notHeld(session, command);
    }
    this.answer(command, outcome);
    this.effects.push({ kind: "outcome", session: session.id, request: of, outcome });
    this.requests.push({ session, number, outcome, acquire: null });
  }

  private setInfo(session: ModelSession, command: CommandOf<"setInfo">): void {
    const target = this.find(session, command.of);
    if (target === undefined || target.outcome !== null || target.acquire === null)
      return this.notHeld(session, command);
    target.acquire.info = command.info;
    this.answer(command, { kind: "infoSet" });
    this.requests.push({ session, number: command.request, outcome: { kind: "infoSet" }, acquire: null });
    for (const { name, token, slot } of target.acquire.grants ?? []) {
      this.effects.push({ kind: "changed", name, change: "info", token, slot });
    }
  }

  private forceRelease({ name, token, principal, lockDelayMs }: CommandOf<"forceRelease">): void {
    const current = this.holdersOf(name);
    const hit = current.filter(({ acquire }) =>
      acquire.grants?.some((grant) => grant.name === name && grant.token === token),
    );
    const holders = hit.length > 0 ? [] : current.map((holder) => this.holderView(holder, name));
    this.effects.push({ kind: "forced", name, token, principal, ended: hit.length, holders });
    for (const hold of hit) this.lose(hold, "forced", Math.max(hold.acquire.lockDelayMs, lockDelayMs));
  }

  private endLockDelay({ name, index }: CommandOf<"endLockDelay">): void {
    const delay = this.delays.find((each) => each.name === name && each.index === index);
    if (delay === undefined) return;
    this.delays = this.delays.filter((each) => each !== delay);
    this.effects.push({ kind: "lockDelayEnded", name, index });
    for (const slot of delay.places.length === 0 ? [null] : delay.places) {
      this.effects.push({ kind: "changed", name, change: "delayEnded", token: index, slot });
    }
  }

  // Rules.

  private settle(session: ModelSession, settled: number, seen: readonly number[]): void {
    const own = this.requests.filter((each) => each.session === session);
    const live = own.filter(({ outcome }) => outcome === null).map(({ number }) => number);
    session.settled = Math.max(session.settled, Math.min(settled, ...live));
    for (const number of seen) if (!live.includes(number)) session.seen.add(number);
    this.requests = this.requests.filter((each) => each.session !== session || !this.isSettled(session, each.number));
  }

  private nextGrantable(): Live | null {
    const waiting = this.live(null).filter(({ acquire }) => acquire.grants === null);
    return waiting.find((waiter) => waiter.acquire.names.every((name) => this.isFreeFor(waiter, name))) ?? null;
  }

  private grant(request: Live): void {
    const { session, number, acquire } = request;
    const grants = acquire.names.map((name): Grant => {
      if (acquire.mode === "slot") return { name, token: this.index, slot: this.freePlace(name, acquire.slots) };
      const running = this.holdersOf(name)[0]?.acquire.grants?.find((grant) => grant.name === name);
      return { name, token: running?.token ?? this.index, slot: null };
    });
    acquire.grants = grants;
    this.effects.push({ kind: "outcome", session: session.id, request: number, outcome: this.outcomeOf(request) });
    const token = grants[0]?.token ?? 0;
    this.effects.push({ kind: "holdBegan", session: session.id, of: number, token, maxHoldMs: acquire.maxHoldMs });
    for (const grant of grants) {
      this.effects.push({ kind: "changed", name: grant.name, change: "granted", token: grant.token, slot: grant.slot });
    }
  }

  private lose(hold: Live, reason: LossReason, delayMs: number): void {
    hold.outcome = this.tellLoss(hold, reason);
    this.endHold(hold, "lost", delayMs);
  }

  private tellLoss(request: ModelRequest, reason: LossReason): Outcome {
    const outcome: Outcome = { kind: "lost", reason, index: this.index };
    this.effects.push({ kind: "outcome", session: request.session.id, request: request.number, outcome });
    return outcome;
  }

  private endHold(hold: Live, change: "released" | "lost", delayMs: number): void {
    const { mode, slots, grants } = hold.acquire;
    for (const { name, token, slot } of grants ?? []) {
      this.effects.push({ kind: "changed", name, change, token, slot });
      if (delayMs === 0) continue;
      let delay = this.delays.find((each) => each.name === name && each.index === this.index);
      if (delay === undefined) {
        delay = { name, index: this.index, mode, slots, delayMs, places: [] };
        this.delays.push(delay);
      }
      delay.delayMs = Math.max(delay.delayMs, delayMs);
      if (slot !== null) delay.places.push(slot);
    }
  }

  private endSession(session: ModelSession, reason: "expired" | "closed", request: number): void {
    const own = this.live(null).filter((each) => each.session === session);
    for (const each of own.sort((a, b) => a.number - b.number)) {
      const outcome = this.tellLoss(each, reason);
      if (each.acquire.grants !== null) {
        this.endHold(
          each,
          reason === "closed" ? "released" : "lost",
          reason === "closed" ? 0 : each.acquire.lockDelayMs,
        );
      }
      each.outcome = outcome;
    }
    this.requests = this.requests.filter((each) => each.session !== session);
    this.sessions = this.sessions.filter((each) => each !== session);
    this.ended.push({ id: session.id, reason, request });
    this.effects.push({ kind: "sessionEnded", session: session.id, reason });
  }

  private notHeld(session: ModelSession, command: Extract<Command, { of: number; request: number }>): void {
    const names = this.find(session, command.of)?.acquire?.names ?? [];
    const holders = names.flatMap((name) => this.holdersOf(name).map((holder) => this.holderView(holder, name)));
    const outcome: Outcome = { kind: "notHeld", holders: holders.slice(0, 8) };
    this.requests.push({ session, number: command.request, outcome, acquire: null });
    this.answer(command, outcome);
  }

  private answer(command: { session: number; request: number }, outcome: Outcome): void {
    this.effects.push({ kind: "outcome", session: command.session, request: command.request, outcome });
  }

  private reject(
    command: { session: number; request: number },
    rejection: Extract<Effect, { kind: "rejected" }>["rejection"],
  ): void {
    this.effects.push({ kind: "rejected", session: command.session, request: command.request, rejection });
  }
}
