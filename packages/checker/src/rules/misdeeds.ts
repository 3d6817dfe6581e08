/** Which promise a machine has broken when it said something else of an entry than the rules do. */
import type { Effect, Grant, LogCommand } from "../log-words.js";
import type { LockModel } from "../model/lock-model.js";
import { freePlaces, grantAt, obstacleAt } from "../model/model-state.js";
import type { ModelAcquire, ModelLock } from "../model/model-state.js";
import type { Findings, Rule } from "../verdict.js";

/** Both null: said twice. */
export interface Difference {
  readonly subject: string;
  readonly said: Effect | null;
  readonly due: Effect | null;
}

export interface Misdeed {
  /** After the entry. */
  readonly model: LockModel;
  readonly command: LogCommand | null;
  readonly wasExecuted: boolean;
  readonly differences: readonly Difference[];
}

/** The first of these that fits names the misdeed: what comes later often follows from it. */
const precedence: readonly Rule[] = [
  "one-effect",
  "conditional-expiry",
  "exclusion",
  "fifo",
  "lock-delay",
  "generation-token",
  "lost-wakeup",
  "replay",
];

export function misdeedOf(misdeed: Misdeed): Rule {
  const found = new Set(misdeed.differences.map((difference) => ruleFor(misdeed, difference)));
  return precedence.find((rule) => found.has(rule)) ?? "replay";
}

/** Every entry that was told is judged by replay; each promise counts what it could have been broken by. */
export function countJudged(
  command: LogCommand | null,
  due: readonly Effect[],
  wasExecuted: boolean,
  findings: Findings,
): void {
  findings.judged("replay");
  if (wasExecuted) findings.judged("one-effect");
  for (const effect of due) {
    if (isGrant(effect) && !wasExecuted) {
      findings.judged("exclusion");
      findings.judged("generation-token");
      const isOwn = command?.kind === "acquire" && command.session === effect.session;
      if (!isOwn || command.request !== effect.request) {
        findings.judged("fifo");
        findings.judged("lost-wakeup");
      }
    }
    const isExpiry = effect.kind === "expiryRefused" || (effect.kind === "sessionEnded" && effect.reason === "expired");
    if (isExpiry) findings.judged("conditional-expiry");
    if (effect.kind === "lockDelayBegan") findings.judged("lock-delay");
  }
}

function ruleFor(misdeed: Misdeed, { said, due }: Difference): Rule {
  const { model, command, wasExecuted } = misdeed;
  if (wasExecuted && command !== null && "request" in command) return "one-effect";
  if (said?.kind === "sessionEnded" && due?.kind === "expiryRefused" && model.sessions.has(said.session)) {
    return "conditional-expiry";
  }
  if (said !== null && isGrant(said)) {
    if (due !== null && isGrant(due)) return ruleForGrants(misdeed, said.outcome.grants, due.outcome.grants);
    return ruleForGrant(misdeed, said);
  }
  // Refused outright, it doesn't even wait.
  if (due !== null && isGrant(due)) return said === null || isWait(said) ? "lost-wakeup" : "replay";
  return isAboutDelay(said) || isAboutDelay(due) ? "lock-delay" : "replay";
}

/** Granted as due, but with other words. */
function ruleForGrants({ model }: Misdeed, said: readonly Grant[], due: readonly Grant[]): Rule {
  for (const { name, token, slot } of said) {
    const right = due.find((grant) => grant.name === name);
    if (right === undefined) return "replay";
    if (right.slot !== slot) {
      const lock = model.locks.get(name);
      return isHeldPlace(lock, slot) ? "exclusion" : isDelayedPlace(lock, slot) ? "lock-delay" : "replay";
    }
    if (right.token !== token) return "generation-token";
  }
  return "replay";
}

/** Granted although it wasn't due. */
function ruleForGrant(misdeed: Misdeed, said: Extract<Effect, { readonly kind: "outcome" }>): Rule {
  const { model, command } = misdeed;
  const { session: id, request: number } = said;
  const isOwn = command?.kind === "acquire" && command.session === id && command.request === number;
  const session = model.sessions.get(id);
  // A holder's session must live (P1), and who died in the queue is never granted (P8).
  if (session === undefined) return isOwn ? "exclusion" : "fifo";
  const request = session.requests.get(number);
  const acquire = request?.acquire ?? null;
  if (request?.outcome?.kind === "cancelled") return "fifo";
  if (!isOwn && (request === undefined || request.outcome !== null || acquire?.grants !== null)) return "one-effect";
  const mode = acquire?.mode ?? (command?.kind === "acquire" ? command.mode : "exclusive");
  const grants = said.outcome.kind === "granted" ? said.outcome.grants : [];
  const locks = grants.map(({ name }) => lockAsSaid(misdeed, name));
  const obstacles = grants.map(({ slot }, at) => {
    const lock = locks[at]?.lock;
    if (slot === null || mode !== "slot") return obstacleAt(lock, mode);
    if (lock === undefined || freePlaces(lock, lock.slots).includes(slot)) return null;
    return isDelayedPlace(lock, slot) ? "delayed" : "held";
  });
  if (obstacles.includes("held")) return "exclusion";
  if (locks.some(({ queue }) => queue[0] !== undefined && queue[0] !== acquire)) return "fifo";
  if (obstacles.includes("delayed")) return "lock-delay";
  return "replay";
}

/** As the machine has it: whom it left out still waits, in front of all who came later. */
function lockAsSaid({ model, differences }: Misdeed, name: string): { lock?: ModelLock; queue: ModelAcquire[] } {
  const lock = model.locks.get(name);
  if (lock === undefined) return { queue: [] };
  const leftOut = lock.holders.filter(({ session, number }) => {
    return differences.some(({ said, due }) => {
      const isDue = due !== null && isGrant(due) && due.session === session.id && due.request === number;
      return isDue && (said === null || !isGrant(said));
    });
  });
  const holders = lock.holders.filter((holder) => !leftOut.includes(holder));
  return { lock: { ...lock, holders }, queue: [...leftOut, ...lock.queue].sort((a, b) => a.index - b.index) };
}

function isHeldPlace(lock: ModelLock | undefined, slot: number | null): boolean {
  return slot !== null && (lock?.holders ?? []).some((holder) => grantAt(holder, lock?.name ?? "")?.slot === slot);
}

function isDelayedPlace(lock: ModelLock | undefined, slot: number | null): boolean {
  return slot !== null && (lock?.delays ?? []).some(({ places }) => places.includes(slot));
}

function isWait(effect: Effect): boolean {
  return effect.kind === "outcome" && effect.outcome.kind === "waiting";
}

function isAboutDelay(effect: Effect | null): boolean {
  return effect?.kind === "lockDelayBegan" || effect?.kind === "lockDelayEnded";
}

function isGrant(effect: Effect): effect is Extract<Effect, { readonly kind: "outcome" }> & {
  readonly outcome: { readonly kind: "granted" };
} {
  return effect.kind === "outcome" && effect.outcome.kind === "granted";
}
