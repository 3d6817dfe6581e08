/**
 * A fingerprint of the state: sessions by id with their requests by number, then locks by name with holders, queue and delays, in their
 * order. Nothing depends on how the tables happen to be laid out in memory, so replay and snapshot give the same.
 */
import { Hasher } from "./hash.js";
import type { Claim, Lock } from "./records.js";
import { delayRecord, requestRecord, sessionRecord, signingKeysRecord } from "./snapshot-records.js";
import type { SnapshotValue } from "./snapshot-records.js";
import type { State } from "./state.js";

export function stateHash(state: State): string {
  const hasher = new Hasher();
  for (const { id, reason, request } of state.ended.list()) hasher.add([id, reason, request]);
  const sessions = state.sessionShards.flatMap(({ byId }) => [...byId.values()]);
  sessions.sort((a, b) => a.id - b.id);
  for (const session of sessions) {
    hasher.add(sessionRecord(session));
    for (const request of session.requests) hasher.add(requestRecord(session.id, request));
  }
  const locks = state.lockShards.flatMap(({ byName }) => [...byName.values()]);
  locks.sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const lock of locks) addLock(hasher, lock);
  hasher.add([state.sessionCount, state.lockCount, state.holdCount, state.waiterCount, state.clusterVersion]);
  if (state.restoredIndex > 0) hasher.add([state.restoredIndex, state.closedMs]);
  if (state.signingKey !== null) hasher.add(signingKeysRecord(state.signingKey, state.formerKeys));
  return hasher.digest();
}

function addLock(hasher: Hasher, lock: Lock): void {
  hasher.add([lock.name, lock.slots, claimValues(lock.firstHolder), claimValues(lock.queue?.first ?? null)]);
  for (const delay of lock.delays ?? []) hasher.add(delayRecord(lock, delay));
}

function claimValues(first: Claim | null): SnapshotValue[] {
  const values: SnapshotValue[] = [];
  for (let claim = first; claim !== null; claim = claim.next) {
    values.push(claim.acquire.session.id, claim.acquire.number, claim.token, claim.place);
  }
  return values;
}
