/**
 * The records of a snapshot: plain arrays of numbers, texts, booleans, null and arrays, which any codec can carry. The first field says
 * what a record is. Reading them back checks everything: they come from a disk or another node.
 */
import { assertNever } from "./assert.js";
import { Acquire } from "./records.js";
import type { Claim, Delay, EndedSession, KeptRequest, Lock, Session } from "./records.js";
import type { Grant, HolderView, Outcome, PublicKey, SessionId, SigningKey } from "./types.js";
import { firstVersion } from "./versions.js";

export type SnapshotValue = number | string | boolean | null | readonly SnapshotValue[];
export type SnapshotRecord = readonly SnapshotValue[];
/** What a cursor hands out at a time. */
export type SnapshotPiece = readonly SnapshotRecord[];

/** Rises when an older loader couldn't read the records of a cluster version that it runs. */
export const snapshotFormat = 1;

/**
 * Format 1 has 0 to 6 since the first release. A further one is written only above the cluster version that brings it, which the
 * header bears: an older loader stops there, and would take an unknown kind for damage (docs/decisions/003-finalizing-an-upgrade.md).
 */
export const recordKind = {
  header: 0,
  session: 1,
  acquire: 2,
  past: 3,
  delay: 4,
  end: 5,
  restored: 6,
  // From cluster version 2 on.
  signingKeys: 7,
} as const;

/** The first cluster version is not written: a snapshot of it is the same as those of releases that knew of none. */
export function headerRecord(
  lastIndex: number,
  ended: readonly EndedSession[],
  clusterVersion: number,
): SnapshotRecord {
  const endings = ended.map(({ id, reason, request }) => [id, reason, request]);
  const header = [recordKind.header, snapshotFormat, lastIndex, endings];
  return clusterVersion === firstVersion ? header : [...header, clusterVersion];
}

/** Right after the header, of a cluster that a restore began. */
export function restoredRecord(restoredIndex: number, closedMs: number): SnapshotRecord {
  return [recordKind.restored, restoredIndex, closedMs];
}

/** Before all sessions, of a cluster that has a key. */
export function signingKeysRecord(current: SigningKey, former: readonly PublicKey[]): SnapshotRecord {
  const { id, publicKey, since, seed } = current;
  return [recordKind.signingKeys, id, publicKey, since, seed, former.map((key) => [key.id, key.publicKey, key.since])];
}

export function sessionRecord(session: Session): SnapshotRecord {
  const { id, key, ttlMs, info, silence, settled, seen } = session;
  return [recordKind.session, id, key, ttlMs, info, silence, settled, [...seen]];
}

export function requestRecord(session: SessionId, request: KeptRequest): SnapshotRecord {
  if (request instanceof Acquire) return acquireRecord(session, request);
  const { number, outcome, names } = request;
  return [recordKind.past, session, number, encodeOutcome(outcome), names];
}

function acquireRecord(session: SessionId, acquire: Acquire): SnapshotRecord {
  const { number, index, mode, lockDelayMs, maxHoldMs, info, isGranted } = acquire;
  const names: string[] = [];
  const tokens: number[] = [];
  const places: number[] = [];
  for (let claim: Claim | null = acquire.first; claim !== null; claim = claim.sibling) {
    names.push(claim.lock.name);
    if (!isGranted) continue;
    tokens.push(claim.token);
    places.push(claim.place);
  }
  const { slots } = acquire.first.lock;
  const terms = [index, mode, slots, lockDelayMs, maxHoldMs, info];
  return [recordKind.acquire, session, number, ...terms, isGranted, names, tokens, places];
}

export function delayRecord(lock: Lock, delay: Delay): SnapshotRecord {
  return [recordKind.delay, lock.name, lock.slots, delay.index, delay.delayMs, delay.mode, [...delay.places]];
}

/** The number of records of each kind before it: a snapshot that lost some is refused. */
export function endRecord(sessions: number, requests: number, delays: number): SnapshotRecord {
  return [recordKind.end, sessions, requests, delays];
}

/** Only outcomes of requests that are over are ever stored. */
function encodeOutcome(outcome: Outcome): SnapshotRecord {
  switch (outcome.kind) {
    case "lost":
      return [outcome.kind, outcome.reason, outcome.index];
    case "released":
    case "cancelled":
    case "infoSet":
    case "sessionClosed":
      return [outcome.kind];
    case "alreadyGranted":
      return [outcome.kind, outcome.grants.map(encodeGrant)];
    case "notHeld":
      return [outcome.kind, outcome.holders.map(encodeHolder)];
    case "lockHeld":
      return [outcome.kind, outcome.name, outcome.holder === null ? null : encodeHolder(outcome.holder)];
    case "lockDelayed":
      return [outcome.kind, outcome.name, outcome.delayMs];
    case "slotsDiffer":
      return [outcome.kind, outcome.name, outcome.slots];
    case "granted":
      return [outcome.kind, outcome.grants.map(encodeGrant), outcome.maxHoldMs];
    case "waiting":
      return [outcome.kind, outcome.ahead, outcome.holder === null ? null : encodeHolder(outcome.holder)];
    default:
      return assertNever(outcome);
  }
}

function encodeGrant(grant: Grant): SnapshotRecord {
  return [grant.name, grant.token, grant.slot];
}

function encodeHolder(holder: HolderView): SnapshotRecord {
  return [holder.session, holder.request, holder.token, holder.slot, holder.mode, holder.info];
}

/** Bytes that a record takes in a codec, estimated from above: 9 for a number or header, 3 for a code unit. */
export function estimateBytes(value: SnapshotValue): number {
  if (typeof value === "string") return 9 + 3 * value.length;
  if (!Array.isArray(value)) return 9;
  let bytes = 9;
  for (const item of value as SnapshotRecord) bytes += estimateBytes(item);
  return bytes;
}
