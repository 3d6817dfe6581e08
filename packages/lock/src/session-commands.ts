/**
 * Commands of a session. Each has a request number and is executed once (P7): a retry gets the answer of the first time, or what has
 * become of it. In order of precedence: the session is gone; the number is settled; it has an outcome; for an acquire, too many are kept.
 *
 * release, cancel, setInfo and closeSession have room of their own in the records (limits.ts) and are never refused for their number.
 */
import { assertNever } from "./assert.js";
import { longestDelayMs } from "./delays.js";
import { cancelWait, endSession, releaseHold } from "./ending.js";
import type { Entry } from "./entry.js";
import { hasRoom } from "./grantable.js";
import { enterQueues, grant } from "./granting.js";
import { unseenMax } from "./limits.js";
import { wholeNumber } from "./numbers.js";
import { firstHolderView, grantsOf, holdersOf, outcomeOf, slotOf, waitingOutcome } from "./outcomes.js";
import { Acquire, namesOf } from "./records.js";
import type { Claim, KeptRequest, Lock, Session } from "./records.js";
import { findRequest, isSettled, keep, keepPast, settle } from "./requests.js";
import type { State } from "./state.js";
import type { Command, Mode, Outcome, Rejection, SessionRequest } from "./types.js";

type SessionCommand = Extract<Command, SessionRequest>;
type CommandOf<Kind extends SessionCommand["kind"]> = Extract<SessionCommand, { kind: Kind }>;

export function applySessionCommand(state: State, entry: Entry, command: SessionCommand): void {
  const session = state.sessionFor(command.session);
  if (session === null) {
    answerForEnded(state, entry, command);
    return;
  }
  settle(state, session, wholeNumber(command.settled), command.seen);
  const number = wholeNumber(command.request);
  if (isSettled(session, number)) {
    reject(entry, command, { kind: "settled" });
    return;
  }
  const known = findRequest(session, number);
  if (known === null) execute(state, entry, session, command);
  else answer(entry, command, outcomeOf(known));
}

function execute(state: State, entry: Entry, session: Session, command: SessionCommand): void {
  switch (command.kind) {
    case "closeSession":
      answer(entry, command, { kind: "sessionClosed" });
      return endSession(state, entry, session, "closed", command.request);
    case "acquire":
      return acquire(state, entry, session, command);
    case "release":
      return release(state, entry, session, command);
    case "cancel":
      return cancel(state, entry, session, command);
    case "setInfo":
      return setInfo(state, entry, session, command);
    default:
      return assertNever(command);
  }
}

/** The retry of a closeSession that did its work gets its answer again. */
function answerForEnded(state: State, entry: Entry, command: SessionCommand): void {
  const ended = state.ended.find(command.session);
  const isRetryOfClose = command.kind === "closeSession" && ended !== null && ended.request === command.request;
  if (isRetryOfClose && ended.reason === "closed") answer(entry, command, { kind: "sessionClosed" });
  else reject(entry, command, { kind: "sessionGone", reason: state.endReason(command.session) });
}

function acquire(state: State, entry: Entry, session: Session, command: CommandOf<"acquire">): void {
  if (session.requests.length >= unseenMax) {
    reject(entry, command, { kind: "tooManyRequests" });
    return;
  }
  const names = sortedNames(command.names);
  const slots = command.mode === "slot" ? Math.max(1, wholeNumber(command.slots)) : 0;
  const existing = names.map((name) => state.lockFor(name));
  const obstacle = existing.find((lock) => lock !== null && !isOpen(lock, command.mode)) ?? null;
  const refusal = refusalOf(state, existing, slots, command, obstacle);
  if (refusal !== null) {
    keepPast(state, session, command.request, refusal);
    answer(entry, command, refusal);
    return;
  }
  const locks = names.map((name, at) => existing[at] ?? state.addLock(name, slots));
  const terms = {
    index: entry.index,
    mode: command.mode,
    lockDelayMs: wholeNumber(command.lockDelayMs),
    maxHoldMs: wholeNumber(command.maxHoldMs),
    info: command.info,
  };
  const request = new Acquire(session, command.request, terms, locks, state.cow.epoch);
  keep(state, session, request);
  if (obstacle === null && state.closedMs === 0) {
    grant(state, entry, request);
    return;
  }
  enterQueues(state, request);
  answer(entry, command, waitingOutcome(request));
}

/** Nothing would stand before a new request for it. */
function isOpen(lock: Lock, mode: Mode): boolean {
  return lock.queue === null && hasRoom(lock, mode);
}

/** Another kind or number of places is refused whether or not the request would wait. Who asks for no name gets nothing. */
function refusalOf(
  state: State,
  locks: readonly (Lock | null)[],
  slots: number,
  command: CommandOf<"acquire">,
  obstacle: Lock | null,
): Outcome | null {
  if (locks.length === 0) return { kind: "cancelled" };
  const other = locks.find((lock) => lock !== null && lock.slots !== slots) ?? null;
  if (other !== null) return { kind: "slotsDiffer", name: other.name, slots: other.slots };
  if (command.wait) return null;
  if (state.closedMs > 0)
    return { kind: "lockDelayed", name: sortedNames(command.names)[0] ?? "", delayMs: state.closedMs };
  if (obstacle === null) return null;
  const { name } = obstacle;
  const isHeld = obstacle.queue !== null || isClosedByHolders(obstacle, command.mode);
  if (isHeld) return { kind: "lockHeld", name, holder: firstHolderView(obstacle) };
  return { kind: "lockDelayed", name, delayMs: longestDelayMs(obstacle.delays) };
}

/** Of a lock without room. */
function isClosedByHolders(lock: Lock, mode: Mode): boolean {
  return lock.firstHolder !== null && (mode !== "shared" || lock.firstHolder.acquire.mode === "exclusive");
}

/** Only of what is held: a waiting acquire is cancelled instead, and one that hasn't come yet can be cancelled ahead. */
function release(state: State, entry: Entry, session: Session, command: CommandOf<"release">): void {
  const target = findRequest(session, command.of);
  if (!(target instanceof Acquire) || !target.isGranted) {
    settleAsNotHeld(state, entry, session, command, target);
    return;
  }
  const outcome: Outcome = { kind: "released" };
  answer(entry, command, outcome);
  releaseHold(state, entry, target, wholeNumber(command.afterMs));
  keepPast(state, session, command.request, outcome);
}

function cancel(state: State, entry: Entry, session: Session, command: CommandOf<"cancel">): void {
  const { request, of } = command;
  const target = findRequest(session, of);
  const isUnseen = target === null && Number.isSafeInteger(of) && !isSettled(session, of) && of !== request;
  if (target instanceof Acquire && target.isGranted) {
    const outcome: Outcome = { kind: "alreadyGranted", grants: grantsOf(target) };
    answer(entry, command, outcome);
    keepPast(state, session, request, outcome);
    return;
  }
  if (!isUnseen && !(target instanceof Acquire)) {
    settleAsNotHeld(state, entry, session, command, target);
    return;
  }
  const outcome: Outcome = { kind: "cancelled" };
  answer(entry, command, outcome);
  if (target instanceof Acquire) {
    cancelWait(state, entry, target);
  } else {
    keepPast(state, session, of, outcome);
    entry.tell({ kind: "outcome", session: session.id, request: of, outcome });
  }
  keepPast(state, session, request, outcome);
}

/** Of a hold or a wait. */
function setInfo(state: State, entry: Entry, session: Session, command: CommandOf<"setInfo">): void {
  const target = findRequest(session, command.of);
  if (!(target instanceof Acquire)) {
    settleAsNotHeld(state, entry, session, command, target);
    return;
  }
  state.cow.saveRequest(session, target);
  target.info = command.info;
  const outcome: Outcome = { kind: "infoSet" };
  answer(entry, command, outcome);
  keepPast(state, session, command.request, outcome);
  for (let claim: Claim | null = target.first; claim !== null && target.isGranted; claim = claim.sibling) {
    entry.tell({ kind: "changed", name: claim.lock.name, change: "info", token: claim.token, slot: slotOf(claim) });
  }
}

/** Nothing changed. Whoever asked learns who holds the names now, if the request it spoke of is still known. */
function settleAsNotHeld(
  state: State,
  entry: Entry,
  session: Session,
  command: SessionCommand,
  target: KeptRequest | null,
): void {
  const names = target instanceof Acquire ? namesOf(target) : (target?.names ?? []);
  const outcome: Outcome = { kind: "notHeld", holders: holdersOf(state, names) };
  keepPast(state, session, command.request, outcome);
  answer(entry, command, outcome);
}

/** Sorted by code unit and without duplicates, as they should come. */
function sortedNames(names: readonly string[]): readonly string[] {
  for (let at = 1; at < names.length; at += 1) {
    if ((names[at - 1] as string) >= (names[at] as string)) return [...new Set(names)].sort();
  }
  return names;
}

function answer(entry: Entry, command: SessionCommand, outcome: Outcome): void {
  entry.tell({ kind: "outcome", session: command.session, request: command.request, outcome });
}

function reject(entry: Entry, command: SessionCommand, rejection: Rejection): void {
  entry.tell({ kind: "rejected", session: command.session, request: command.request, rejection });
}
