/**
 * The lock machine as its rules are written down (docs/architecture.md, docs/guarantees.md), once more and as plainly as can be. It replays
 * the committed log and says what a node's machine must have said. Where the rules leave a choice (which free place of a semaphore; which of
 * two true refusals; for how long the reason of an ended session is remembered) it takes the one that was reported, if it is allowed.
 */
import type { Effect, LogCommand, NumberedRequest, Outcome } from "../log-words.js";
import { outcomeText } from "../texts.js";
import { ModelRules } from "./model-rules.js";
import { grantAt, obstacleAt, sortedNames } from "./model-state.js";
import type { ModelAcquire, ModelRequest, ModelSession } from "./model-state.js";
import type { Reported } from "./reported.js";

type CommandOf<Kind extends LogCommand["kind"]> = Extract<LogCommand, { readonly kind: Kind }>;
type SessionCommand = Extract<LogCommand, NumberedRequest>;

/** Outcomes kept for a session from which on an acquire may be refused; ended sessions whose reasons are surely remembered. */
const outcomesMax = 1_024;
const endedMax = 1_024;
const eighthsMax = 8;
/** Ids of signing keys that are remembered, and from which cluster version on there are any. */
const keysMax = 8;
const keysVersion = 2;

export class LockModel extends ModelRules {
  private clusterVersion = 1;
  /** The current one first. */
  private keyIds: readonly string[] = [];

  /** What a machine must say of this entry. At most one effect for a subject (texts.ts). */
  apply(index: number, command: LogCommand, reported: Reported): readonly Effect[] {
    this.begin(index, reported);
    this.execute(command);
    return this.finish();
  }

  /** Whether it was executed, or counts as executed: then a command with this number must have no effect. */
  wasExecuted({ session, request }: NumberedRequest): boolean {
    const known = this.sessions.get(session);
    return known !== undefined && (isSettled(known, request) || known.requests.has(request));
  }

  private execute(command: LogCommand): void {
    switch (command.kind) {
      case "openSession":
        return this.openSession(command);
      case "expireSessions":
        for (const id of new Set(command.ids)) this.expire(id);
        return;
      case "suspectSessions":
        for (const id of new Set(command.ids)) this.setSilence(id, (count) => count + command.eighths, false);
        return;
      case "renewSuspects":
        for (const id of new Set(command.ids)) this.setSilence(id, () => 0, true);
        return;
      case "forceRelease":
        return this.forceRelease(command);
      case "endLockDelay":
        return this.endLockDelay(command);
      case "endHold":
        return this.endHold(command);
      case "setClusterVersion":
        this.clusterVersion = Math.max(this.clusterVersion, command.version);
        this.effects.push({ kind: "clusterVersion", version: this.clusterVersion });
        return;
      case "setSigningKey":
        return this.setSigningKey(command);
      default:
        return this.executeNumbered(command);
    }
  }

  /** A retry of the key returns the same session. */
  private openSession({ key, ttlMs }: CommandOf<"openSession">): void {
    const existing = this.byKey.get(key);
    const session = existing ?? newSession(this.index, key, ttlMs);
    if (existing === undefined) {
      this.sessions.set(session.id, session);
      this.byKey.set(key, session);
      this.ledger.onOpened(session.id, key, ttlMs);
    }
    const isNew = existing === undefined;
    this.effects.push({ kind: "sessionOpened", key, session: session.id, ttlMs: session.ttlMs, isNew });
  }

  /** P4: changes nothing for a session whose silence count is 0. */
  private expire(id: number): void {
    const session = this.sessions.get(id);
    if (session === undefined || session.silence === 0) this.effects.push({ kind: "expiryRefused", session: id });
    else this.endSession(session, "expired", 0);
  }

  private setSilence(id: number, change: (count: number) => number, renewed: boolean): void {
    const session = this.sessions.get(id);
    if (session === undefined) return;
    session.silence = Math.min(eighthsMax, change(session.silence));
    this.effects.push({ kind: "silence", session: id, count: session.silence, renewed });
  }

  /** Ends every hold of that generation. */
  private forceRelease({ name, token, lockDelayMs }: CommandOf<"forceRelease">): void {
    const holders = this.locks.get(name)?.holders ?? [];
    const hit = holders.filter((holder) => grantAt(holder, name)?.token === token);
    this.effects.push({ kind: "forced", name, token, ended: hit.length });
    for (const hold of hit) this.lose(hold, "forced", Math.max(hold.lockDelayMs, lockDelayMs));
  }

  /** Of two that would take one key's place the first does. */
  private setSigningKey({ id, replaces }: CommandOf<"setSigningKey">): void {
    const isNew = !this.keyIds.includes(id) && (this.keyIds[0] ?? null) === replaces;
    const isSet = isNew && this.clusterVersion >= keysVersion;
    if (isSet) this.keyIds = [id, ...this.keyIds].slice(0, keysMax);
    this.effects.push({ kind: "signingKeySet", id, replaces, isSet });
  }

  private endLockDelay({ name, index }: CommandOf<"endLockDelay">): void {
    const delays = this.locks.get(name)?.delays ?? [];
    const at = delays.findIndex((delay) => delay.index === index);
    if (at < 0) return;
    delays.splice(at, 1);
    this.touched.add(name);
    this.effects.push({ kind: "lockDelayEnded", name, index });
    this.ledger.onDelayEnded(name, index, this.index);
  }

  private endHold({ session, of, token }: CommandOf<"endHold">): void {
    const hold = this.sessions.get(session)?.requests.get(of)?.acquire ?? null;
    if (hold === null || !isLive(hold) || hold.grants?.[0]?.token !== token) return;
    this.lose(hold, "max_hold", hold.lockDelayMs);
  }

  // Numbered requests of a session: each is executed once (P7).

  private executeNumbered(command: SessionCommand): void {
    const session = this.sessions.get(command.session);
    if (session === undefined) return this.answerForEnded(command);
    settle(session, command.settled, command.seen);
    if (isSettled(session, command.request)) return this.reject(command, { kind: "settled" });
    const known = session.requests.get(command.request);
    if (known !== undefined) return this.answer(command, currentOutcome(known));
    switch (command.kind) {
      case "closeSession":
        this.record(session, command, { kind: "sessionClosed" });
        return this.endSession(session, "closed", command.request);
      case "acquire":
        return this.acquire(session, command);
      case "release":
        return this.release(session, command);
      case "cancel":
        return this.cancel(session, command);
      case "setInfo": {
        const target = session.requests.get(command.of);
        const isLiveTarget = target !== undefined && target.outcome === null;
        return this.record(session, command, { kind: isLiveTarget ? "infoSet" : "notHeld" });
      }
      default:
        return command satisfies never;
    }
  }

  private answerForEnded(command: SessionCommand): void {
    const ended = this.ended.get(command.session);
    const answer = this.reported.answerTo(command.session, command.request);
    const mayBeForgotten = ended !== undefined && this.ended.size - ended.number > endedMax;
    const saysGone = answer?.kind === "rejected" && answer.rejection.kind === "sessionGone";
    const isForgotten = mayBeForgotten && saysGone && answer.rejection.reason === null;
    const isRetryOfClose = command.kind === "closeSession" && ended?.request === command.request;
    if (isRetryOfClose && !isForgotten) this.answer(command, { kind: "sessionClosed" });
    else this.reject(command, { kind: "sessionGone", reason: isForgotten ? null : (ended?.reason ?? null) });
  }

  private acquire(session: ModelSession, command: CommandOf<"acquire">): void {
    const { request: number, mode, lockDelayMs, maxHoldMs } = command;
    const answer = this.reported.answerTo(session.id, number);
    const saysTooMany = answer?.kind === "rejected" && answer.rejection.kind === "tooManyRequests";
    if (session.requests.size >= outcomesMax && saysTooMany) {
      this.reject(command, { kind: "tooManyRequests" });
      return;
    }
    const names = sortedNames(command.names);
    const slots = mode === "slot" ? Math.max(1, command.slots) : 0;
    const refusals = this.refusalsOf(names, slots, command);
    if (refusals.length > 0) {
      const said = this.reported.outcomeOf(session.id, number);
      const saidText = said === null ? "" : outcomeText(said);
      const refusal = refusals.find((each) => outcomeText(each) === saidText) ?? refusals[0];
      if (refusal !== undefined) this.record(session, command, refusal);
      return;
    }
    const acquire: ModelAcquire = {
      session,
      number,
      index: this.index,
      names,
      mode,
      slots,
      lockDelayMs,
      maxHoldMs,
      grants: null,
    };
    session.requests.set(number, { number, outcome: null, acquire });
    session.live.add(acquire);
    const isOpen = names.every((name) => this.isOpen(name, acquire));
    for (const name of names) this.lockFor(name, slots).queue.push(acquire);
    if (isOpen) this.grant(acquire);
    else this.say(acquire, { kind: "waiting" });
  }

  /** All true ones: the rules don't say which name is spoken of. */
  private refusalsOf(names: readonly string[], slots: number, command: CommandOf<"acquire">): Outcome[] {
    const locks = names.flatMap((name) => this.locks.get(name) ?? []);
    const differing = locks.filter((lock) => lock.slots !== slots);
    if (differing.length > 0)
      return differing.map((lock) => ({ kind: "slotsDiffer", name: lock.name, slots: lock.slots }));
    if (command.wait) return [];
    return locks.flatMap((lock): Outcome[] => {
      const obstacle = obstacleAt(lock, command.mode);
      if (lock.queue.length > 0 || obstacle === "held") return [{ kind: "lockHeld", name: lock.name }];
      return obstacle === "delayed" ? [{ kind: "lockDelayed", name: lock.name }] : [];
    });
  }

  private release(session: ModelSession, command: CommandOf<"release">): void {
    const target = session.requests.get(command.of);
    const hold = target?.acquire ?? null;
    if (target === undefined || hold === null || hold.grants === null || !isLive(hold)) {
      this.record(session, command, { kind: "notHeld" });
      return;
    }
    this.record(session, command, { kind: "released" });
    this.takeOut(hold, "released", command.afterMs);
    target.outcome = { kind: "released" };
    this.ledger.onOutcome(session.id, hold.number, this.index, target.outcome);
  }

  /** Of a request that has not come yet, it is remembered as that request's outcome. */
  private cancel(session: ModelSession, command: CommandOf<"cancel">): void {
    const target = session.requests.get(command.of);
    if (target !== undefined && target.outcome === null && target.acquire !== null) {
      const { grants } = target.acquire;
      if (grants !== null) return this.record(session, command, { kind: "alreadyGranted", grants });
      this.record(session, command, { kind: "cancelled" });
      this.takeOut(target.acquire, "released", 0);
      target.outcome = { kind: "cancelled" };
      this.say(target.acquire, target.outcome);
      return;
    }
    if (target !== undefined || command.of === command.request || isSettled(session, command.of)) {
      this.record(session, command, { kind: "notHeld" });
      return;
    }
    const outcome: Outcome = { kind: "cancelled" };
    this.record(session, command, outcome);
    this.record(session, { session: session.id, request: command.of }, outcome);
  }
}

function newSession(id: number, key: string, ttlMs: number): ModelSession {
  return { id, key, ttlMs, silence: 0, settled: 1, seen: new Set(), requests: new Map(), live: new Set() };
}

/** The outcomes that the client has seen are dropped, but never that of a request that still waits or holds. */
function settle(session: ModelSession, settled: number, seen: readonly number[]): void {
  if (settled > session.settled) {
    const live = [...session.live].map((acquire) => acquire.number);
    session.settled = Math.max(session.settled, Math.min(settled, ...live));
    for (const number of session.requests.keys()) if (number < session.settled) session.requests.delete(number);
  }
  for (const number of seen) {
    const request = session.requests.get(number);
    if (request !== undefined && request.outcome === null) continue;
    session.requests.delete(number);
    session.seen.add(number);
  }
}

function isSettled(session: ModelSession, number: number): boolean {
  return number < session.settled || session.seen.has(number);
}

function isLive(acquire: ModelAcquire): boolean {
  return acquire.session.live.has(acquire);
}

function currentOutcome({ outcome, acquire }: ModelRequest): Outcome {
  if (outcome !== null) return outcome;
  if (acquire === null || acquire.grants === null) return { kind: "waiting" };
  return { kind: "granted", grants: acquire.grants, maxHoldMs: acquire.maxHoldMs };
}
