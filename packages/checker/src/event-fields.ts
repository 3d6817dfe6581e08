/** The fields of every kind of event: the types of history.ts once more, for values that come from a file. */
import { finite, flag, listOf, notNegative, oneOf, orNull, positive, record, text, variants, whole } from "./fields.js";
import type { Check, Fields } from "./fields.js";
import { historyVersion } from "./history.js";
import type { CallResult, HistoryEvent, HistoryHeader, Operation } from "./history.js";
import type { Effect, LogCommand, LogEntry, NumberedRequest, Outcome, Rejection } from "./log-words.js";

/** A table that has a row for each kind, and a check for each field, of a union: the compiler sees to it. */
type TableOf<Union extends { readonly kind: string }> = {
  readonly [Kind in Union["kind"]]: FieldsOf<Extract<Union, { readonly kind: Kind }>>;
};
type FieldsOf<Item> = { readonly [Name in Exclude<keyof Item, "kind" | "at">]: Check };

const mode = oneOf("exclusive", "shared", "slot");
const lossReason = oneOf("expired", "forced", "max_hold", "closed", "restored");
const grant = record({ name: text, token: whole, slot: orNull(whole) });
const grants = listOf(grant, 1);
const numbers = listOf(whole);

const numbered: FieldsOf<NumberedRequest> = { session: whole, request: whole, settled: whole, seen: numbers };

const commands: TableOf<LogCommand> = {
  openSession: { key: text, ttlMs: whole },
  closeSession: numbered,
  acquire: {
    ...numbered,
    names: listOf(text, 1),
    mode,
    slots: whole,
    wait: flag,
    lockDelayMs: whole,
    maxHoldMs: whole,
  },
  release: { ...numbered, of: whole, afterMs: whole },
  cancel: { ...numbered, of: whole },
  setInfo: { ...numbered, of: whole },
  expireSessions: { ids: numbers },
  suspectSessions: { ids: numbers, eighths: whole },
  renewSuspects: { ids: numbers },
  forceRelease: { name: text, token: whole, lockDelayMs: whole },
  endLockDelay: { name: text, index: whole },
  endHold: { session: whole, of: whole, token: whole },
  setClusterVersion: { version: whole },
  setSigningKey: { id: text, replaces: orNull(text) },
};

const entries: TableOf<LogEntry> = { noop: {}, configuration: {}, command: { command: variants(commands) } };

const outcomes: TableOf<Outcome> = {
  waiting: {},
  granted: { grants, maxHoldMs: whole },
  lost: { reason: lossReason, index: whole },
  released: {},
  cancelled: {},
  alreadyGranted: { grants },
  notHeld: {},
  infoSet: {},
  sessionClosed: {},
  lockHeld: { name: text },
  lockDelayed: { name: text },
  slotsDiffer: { name: text, slots: whole },
};

const rejections: TableOf<Rejection> = {
  sessionGone: { reason: orNull(lossReason) },
  settled: {},
  tooManyRequests: {},
};

const effects: TableOf<Effect> = {
  sessionOpened: { key: text, session: whole, ttlMs: whole, isNew: flag },
  outcome: { session: whole, request: whole, outcome: variants(outcomes) },
  rejected: { session: whole, request: whole, rejection: variants(rejections) },
  sessionEnded: { session: whole, reason: lossReason },
  silence: { session: whole, count: whole, renewed: flag },
  expiryRefused: { session: whole },
  holdBegan: { session: whole, of: whole, token: whole, maxHoldMs: whole },
  lockDelayBegan: { name: text, index: whole, delayMs: whole },
  lockDelayEnded: { name: text, index: whole },
  forced: { name: text, token: whole, ended: whole },
  clusterVersion: { version: whole },
  signingKeySet: { id: text, replaces: orNull(text), isSet: flag },
  changed: {},
};

const operations: TableOf<Operation> = {
  acquire: { names: listOf(text, 1), mode, slots: whole, wait: flag, maxHoldMs: whole },
  release: { of: whole },
  close: {},
  forceRelease: { name: text, token: whole },
  inspect: { name: text },
};

const results: TableOf<CallResult> = {
  acquired: { grants, session: orNull(whole), request: orNull(whole) },
  refused: { code: oneOf("lock_held", "lock_delayed") },
  gaveUp: {},
  released: { how: oneOf("released", "alreadyReleased", "alreadyLost") },
  closed: {},
  forced: { ended: whole },
  inspected: { holders: listOf(record({ token: whole, slot: orNull(whole) })) },
  failed: { code: text },
  unknown: { code: text },
};

const keepaliveOfNode = { node: text, term: whole, session: whole, number: whole };
const keepaliveOfClient = { client: text, session: whole, number: whole };
const leadership = { node: text, term: whole };

const events: TableOf<HistoryEvent> = {
  call: { client: text, call: whole, op: variants(operations) },
  return: { call: whole, result: variants(results) },
  state: {
    call: whole,
    state: oneOf("held", "jeopardy", "lost", "released"),
    reason: orNull(text),
    since: orNull(finite),
  },
  openSent: { client: text, key: text },
  sessionOpened: { client: text, session: whole, key: text, ttlMs: whole },
  sessionEnded: { client: text, session: whole, reason: text, by: oneOf("cluster", "client") },
  sent: { client: text, session: whole, request: whole, call: orNull(whole) },
  told: { client: text, session: whole, request: whole, outcome: variants(outcomes) },
  keepaliveSent: keepaliveOfClient,
  keepaliveReceived: keepaliveOfNode,
  keepaliveAcknowledged: keepaliveOfNode,
  keepaliveTold: keepaliveOfClient,
  remaining: { client: text, call: whole, session: whole, ms: notNegative },
  committed: { index: whole, term: whole, hash: text, decidedInTerm: orNull(whole), entry: variants(entries) },
  applied: {
    node: text,
    index: whole,
    hash: text,
    stateHash: orNull(text),
    effects: orNull(listOf(variants(effects))),
  },
  installed: { node: text, index: whole, stateHash: orNull(text) },
  started: { node: text, index: whole },
  leader: leadership,
  serving: leadership,
  deposed: leadership,
  stall: { node: text, ms: positive },
  final: { node: text, commitIndex: whole, lastApplied: whole, stateHash: text, configuration: orNull(text) },
  crashed: { process: text },
  paused: { process: text },
  resumed: { process: text },
  clockRate: { process: text, rate: positive },
  quorum: { up: flag },
  guardWrite: {
    client: text,
    resource: text,
    name: text,
    slot: orNull(whole),
    token: whole,
    accepted: orNull(flag),
  },
  fault: { fault: text },
};

const timed: Readonly<Record<string, Fields>> = Object.fromEntries(
  Object.entries<Fields>(events).map(([kind, fields]) => [kind, { at: finite, ...fields }]),
);

export const checkEvent: Check = variants(timed);

const header: { readonly [Name in keyof HistoryHeader]: Check } = {
  version: oneOf(historyVersion),
  origin: text,
  nodes: listOf(text),
  electionTimeoutMs: orNull(positive),
  firstIndex: whole,
};

export const checkHeader: Check = record(header);
