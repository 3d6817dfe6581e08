/**
 * Request numbers of a session (P7): which were executed, and what came of those whose end the client has not seen.
 * A number is either below `settled`, or in a range of seen ones, or has a record, or was never executed.
 */
import { assert } from "./assert.js";
import { recordsMax, seenRangesMax } from "./limits.js";
import { addToRanges, closeLowestGap, raiseFloor, rangesInclude } from "./ranges.js";
import { Acquire, Past } from "./records.js";
import type { KeptRequest, Session } from "./records.js";
import type { State } from "./state.js";
import type { Outcome, RequestNumber, SessionId } from "./types.js";

export function findRequest(session: Session, number: RequestNumber): KeptRequest | null {
  const found = session.requests[firstFrom(session, number)];
  return found !== undefined && found.number === number ? found : null;
}

/** The granted acquire `of` of a live session, if its first token is this one. */
export function findHold(state: State, session: SessionId, of: number, token: number): Acquire | null {
  const owner = state.sessionFor(session);
  const acquire = owner === null ? null : findRequest(owner, of);
  return acquire instanceof Acquire && acquire.isGranted && acquire.first.token === token ? acquire : null;
}

/** The client knew the outcome once, or claimed so. It is never executed again. */
export function isSettled(session: Session, number: RequestNumber): boolean {
  return number < session.settled || rangesInclude(session.seen, number);
}

/**
 * Drops the outcomes that the client has seen, and remembers that they were executed. A client can't have seen the end of a live acquire:
 * `settled` counts up to the lowest of those only, and in `seen` they are passed over.
 */
export function settle(state: State, session: Session, settled: RequestNumber, seen: readonly RequestNumber[]): void {
  if (settled > session.settled) {
    state.cow.saveSession(session);
    const floor = dropBelow(state, session, settled);
    session.settled = raiseFloor(session.seen, floor);
  }
  for (const number of seen) {
    const isNumber = Number.isSafeInteger(number) && number < Number.MAX_SAFE_INTEGER;
    if (isNumber && !isSettled(session, number)) see(state, session, number);
  }
}

/** `record` is of a number that has no record and is not settled. */
export function keep(state: State, session: Session, record: KeptRequest): void {
  const { requests } = session;
  if (requests.length >= recordsMax) dropOldest(state, session);
  const last = requests[requests.length - 1];
  if (last === undefined || last.number < record.number) {
    requests.push(record);
    return;
  }
  const at = firstFrom(session, record.number);
  assert((requests[at] as KeptRequest).number !== record.number, "a request has one record");
  requests.splice(at, 0, record);
}

export function keepPast(state: State, session: Session, number: RequestNumber, outcome: Outcome): void {
  keep(state, session, new Past(number, outcome, null, state.cow.epoch));
}

/** The acquire is over: its outcome takes its place. */
export function replaceByPast(state: State, acquire: Acquire, outcome: Outcome, names: readonly string[]): void {
  const { session, number } = acquire;
  const at = firstFrom(session, number);
  assert(session.requests[at] === acquire, "a live acquire is kept by its session");
  session.requests[at] = new Past(number, outcome, names, state.cow.epoch);
}

/** Drops all records below `settled`, up to the lowest live one. Returns how far it came. */
function dropBelow(state: State, session: Session, settled: RequestNumber): RequestNumber {
  const { requests } = session;
  let floor = settled;
  let count = 0;
  for (const request of requests) {
    if (request.number >= settled) break;
    if (request instanceof Acquire) {
      floor = request.number;
      break;
    }
    state.cow.saveRequest(session, request);
    count += 1;
  }
  if (count > 0) requests.splice(0, count);
  return floor;
}

function see(state: State, session: Session, number: RequestNumber): void {
  const at = firstFrom(session, number);
  const request = session.requests[at];
  const isKept = request !== undefined && request.number === number;
  if (isKept && request instanceof Acquire) return;
  state.cow.saveSession(session);
  if (isKept) {
    state.cow.saveRequest(session, request);
    session.requests.splice(at, 1);
  }
  addToRanges(session.seen, number);
  session.settled = raiseFloor(session.seen, session.settled);
  if (session.seen.length > 2 * seenRangesMax) closeGap(state, session);
}

/** Only a client that never says what it has seen gets here. */
function dropOldest(state: State, session: Session): void {
  const oldest = session.requests.find((request) => request instanceof Past);
  assert(oldest !== undefined, "most records of a full session are over");
  see(state, session, oldest.number);
}

/** Only a client that skips numbers gets here: those of the lowest gap without a live acquire will never be executed. */
function closeGap(state: State, session: Session): void {
  const gap = closeLowestGap(session.seen, (from, to) => {
    for (let at = firstFrom(session, from); at < session.requests.length; at += 1) {
      const request = session.requests[at] as KeptRequest;
      if (request.number > to) return true;
      if (request instanceof Acquire) return false;
    }
    return true;
  });
  assert(gap !== null, "there are fewer live acquires than gaps");
  const start = firstFrom(session, gap.from);
  const end = firstFrom(session, gap.to + 1);
  for (let at = start; at < end; at += 1) state.cow.saveRequest(session, session.requests[at] as KeptRequest);
  session.requests.splice(start, end - start);
}

/** Where the first record stands whose number is not below `number`. */
function firstFrom(session: Session, number: RequestNumber): number {
  const { requests } = session;
  let low = 0;
  let high = requests.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((requests[middle] as KeptRequest).number < number) low = middle + 1;
    else high = middle;
  }
  return low;
}
