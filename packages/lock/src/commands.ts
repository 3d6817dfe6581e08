/** Commands of no session: opening one, and what leader and administrator decide. A session's own are in session-commands.ts. */
import { assertNever } from "./assert.js";
import { endDelay } from "./delays.js";
import { endSession, loseHold } from "./ending.js";
import type { Entry } from "./entry.js";
import { eighthsMax } from "./limits.js";
import { wholeNumber } from "./numbers.js";
import { holdersOf } from "./outcomes.js";
import { Session } from "./records.js";
import type { Claim } from "./records.js";
import { findHold } from "./requests.js";
import { endClosing, everyName } from "./restoring.js";
import { applySessionCommand } from "./session-commands.js";
import { setSigningKey } from "./signing-keys.js";
import type { State } from "./state.js";
import type { Command, SessionId } from "./types.js";

type CommandOf<Kind extends Command["kind"]> = Extract<Command, { kind: Kind }>;

export function applyCommand(state: State, entry: Entry, command: Command): void {
  switch (command.kind) {
    case "openSession":
      return openSession(state, entry, command);
    case "closeSession":
    case "acquire":
    case "release":
    case "cancel":
    case "setInfo":
      return applySessionCommand(state, entry, command);
    case "expireSessions":
      return expireSessions(state, entry, command.ids);
    case "suspectSessions":
      return suspectSessions(state, entry, command.ids, wholeNumber(command.eighths));
    case "renewSuspects":
      return renewSuspects(state, entry, command.ids);
    case "forceRelease":
      return forceRelease(state, entry, command);
    case "endLockDelay":
      if (command.name === everyName) return endClosing(state, entry, command.index);
      return endDelay(state, entry, command.name, command.index);
    case "endHold":
      return endHold(state, entry, command);
    case "setClusterVersion":
      return setClusterVersion(state, entry, command.version);
    case "setSigningKey":
      return setSigningKey(state, entry, command);
    default:
      return assertNever(command);
  }
}

/**
 * A retry returns the same session, as it was opened. A key whose session has ended opens a new one: a late duplicate makes an orphan that
 * holds nothing and expires.
 */
function openSession(state: State, entry: Entry, command: CommandOf<"openSession">): void {
  const { key, info } = command;
  const existing = state.sessionWithKey(key);
  const session = existing ?? new Session(entry.index, key, wholeNumber(command.ttlMs), info, state.cow.epoch);
  if (existing === null) state.addSession(session);
  const { id, ttlMs } = session;
  entry.tell({ kind: "sessionOpened", key, session: id, ttlMs, isNew: existing === null });
}

/**
 * A session without a counted silence stays: a renewal came between the decision and this entry. All that die are taken out before
 * anything is granted, so no grant goes to one of them.
 */
function expireSessions(state: State, entry: Entry, ids: readonly SessionId[]): void {
  for (const id of new Set(ids)) {
    const session = state.sessionFor(id);
    if (session === null || session.silence === 0) entry.tell({ kind: "expiryRefused", session: id });
    else endSession(state, entry, session, "expired", 0);
  }
}

/** A session that is named twice is counted once. Nothing is told of one that has ended: its end was. */
function suspectSessions(state: State, entry: Entry, ids: readonly SessionId[], eighths: number): void {
  for (const id of new Set(ids)) {
    const session = state.sessionFor(id);
    if (session === null) continue;
    setSilence(state, session, Math.min(eighthsMax, session.silence + eighths));
    entry.tell({ kind: "silence", session: id, count: session.silence, renewed: false });
  }
}

function renewSuspects(state: State, entry: Entry, ids: readonly SessionId[]): void {
  for (const id of new Set(ids)) {
    const session = state.sessionFor(id);
    if (session === null) continue;
    setSilence(state, session, 0);
    entry.tell({ kind: "silence", session: id, count: 0, renewed: true });
  }
}

function setSilence(state: State, session: Session, count: number): void {
  if (session.silence === count) return;
  state.cow.saveSession(session);
  session.silence = count;
}

/**
 * Ends every hold that bears `token` at `name`, with all of its names: an acquire is held as a whole or not at all. Each lock stays closed
 * for the longer of what its holder and what the administrator chose. Two places of a semaphore whose generations began with one entry
 * have one token, and both end.
 */
function forceRelease(state: State, entry: Entry, command: CommandOf<"forceRelease">): void {
  const { name, token, principal } = command;
  const claims: Claim[] = [];
  for (let claim = state.lockFor(name)?.firstHolder ?? null; claim !== null; claim = claim.next) {
    if (claim.token === token) claims.push(claim);
  }
  const holders = claims.length > 0 ? [] : holdersOf(state, [name], Number.POSITIVE_INFINITY);
  entry.tell({ kind: "forced", name, token, principal, ended: claims.length, holders });
  for (const { acquire } of claims) {
    const delayMs = Math.max(acquire.lockDelayMs, wholeNumber(command.lockDelayMs));
    loseHold(state, entry, acquire, "forced", delayMs);
  }
}

/** It never falls: a late duplicate of a lower raise changes nothing. */
function setClusterVersion(state: State, entry: Entry, version: number): void {
  state.clusterVersion = Math.max(state.clusterVersion, wholeNumber(version));
  entry.tell({ kind: "clusterVersion", version: state.clusterVersion });
}

/** maxHold is over. Nothing happens unless exactly that hold is still there; its token is that of its first name. */
function endHold(state: State, entry: Entry, command: CommandOf<"endHold">): void {
  const acquire = findHold(state, command.session, command.of, command.token);
  if (acquire !== null) loseHold(state, entry, acquire, "max_hold", acquire.lockDelayMs);
}
