/**
 * What nodes say to clients (client-messages.ts) as frames: `[[kind, field, ...], ...]`. Fields that a later release
 * adds are ignored.
 */
import type { ServerMessage } from "./client-messages.js";
import type { Refusal } from "./refusals.js";
import { assertNever } from "./assert.js";
import {
  anyText,
  badValue,
  count,
  fieldsOf,
  flag,
  id,
  integer,
  key,
  list,
  listUpTo,
  mapList,
  nullable,
  positive,
  signingKeyId,
} from "./fields.js";
import type { Fields } from "./fields.js";
import { decodeFrame, encodeFrame, encodeFrames } from "./frames.js";
import { limits } from "./limits.js";
import { outcomeFields, outcomeFrom, rejectionFields, rejectionFrom } from "./outcome-codec.js";
import {
  addressesFrom,
  addressFields,
  addressFrom,
  addressOrNull,
  lockChangeFields,
  lockChangeFrom,
  resultFields,
  resultFrom,
  resumeFields,
  resumeFrom,
} from "./view-codec.js";
import { WireError } from "./wire-error.js";
import { changeRefusals, lossReasons } from "./words.js";

const kinds = {
  welcome: 1,
  leader: 2,
  sessionOpened: 3,
  resumed: 4,
  acknowledged: 5,
  outcome: 6,
  rejected: 7,
  sessionEnded: 8,
  superseded: 9,
  answer: 10,
  forced: 11,
  transferred: 12,
  refused: 13,
  finalized: 14,
  nodes: 15,
  membersChanged: 16,
  watching: 17,
  changes: 18,
  keyRotated: 19,
  refusedRun: 20,
} as const satisfies Record<ServerMessage["kind"], number>;

const refusalKinds = {
  not_leader: 1,
  no_quorum: 2,
  overloaded: 3,
  unknown_outcome: 4,
  session_gone: 5,
  invalid_argument: 6,
  incompatible: 7,
  unauthorized: 8,
  change_refused: 9,
} as const satisfies Record<Refusal["code"], number>;

/** Throws a WireError "too_large" when the messages don't fit in one frame. */
export function encodeServerFrame(messages: readonly ServerMessage[]): Uint8Array {
  return encodeFrame(messages, limits.serverFrameBytesMax, messageFields);
}

/**
 * As many frames as the messages need, in their order. Throws a WireError "too_large" when a single one doesn't fit.
 */
export function encodeServerFrames(messages: readonly ServerMessage[]): Uint8Array[] {
  return encodeFrames(messages, limits.serverFrameBytesMax, messageFields);
}

/** Throws a WireError; all messages are good, or none is returned. */
export function decodeServerFrame(bytes: Uint8Array): ServerMessage[] {
  return decodeFrame(bytes, limits.serverFrameBytesMax, limits.serverFrameItemsMax, messageFrom);
}

function messageFields(message: ServerMessage): unknown[] {
  switch (message.kind) {
    case "outcome":
      return [
        kinds.outcome,
        positive(message.session, "session"),
        positive(message.request, "request"),
        count(message.index, "index"),
        outcomeFields(message.outcome),
      ];
    case "acknowledged":
      return [kinds.acknowledged, positive(message.session, "session"), count(message.number, "number")];
    case "refused":
      return refusedFields(message);
    case "refusedRun":
      return refusedRunFields(message);
    case "rejected":
      return [
        kinds.rejected,
        positive(message.session, "session"),
        positive(message.request, "request"),
        rejectionFields(message.rejection),
      ];
    case "welcome":
      return welcomeFields(message);
    case "leader":
      return [kinds.leader, addressOrNull(message.leader)];
    case "nodes":
      return [kinds.nodes, message.nodes.map(addressFields)];
    case "sessionOpened":
      return [
        kinds.sessionOpened,
        key(message.key, "key"),
        positive(message.session, "session"),
        positive(message.ttlMs, "ttlMs"),
      ];
    case "resumed":
      return [kinds.resumed, ...resumeFields(message)];
    case "sessionEnded":
      return [
        kinds.sessionEnded,
        positive(message.session, "session"),
        message.reason === null ? null : lossReasons.numberFor(message.reason, "reason"),
      ];
    case "superseded":
      return [kinds.superseded, positive(message.session, "session")];
    case "answer":
      return [kinds.answer, count(message.id, "id"), resultFields(message.result)];
    case "forced":
    case "transferred":
    case "finalized":
    case "keyRotated":
    case "membersChanged":
      return [kinds[message.kind], count(message.id, "id"), ...orderFields(message)];
    case "watching":
    case "changes":
      return watchFields(message);
    default:
      return assertNever(message, "server message");
  }
}

function welcomeFields(message: Extract<ServerMessage, { readonly kind: "welcome" }>): unknown[] {
  return [
    kinds.welcome,
    count(message.protocol, "protocol"),
    mapList(listUpTo(message.features, limits.featuresMax, "features"), "features", id),
    id(message.node, "node"),
    id(message.clusterId, "clusterId"),
    addressOrNull(message.leader),
    message.nodes.map(addressFields),
  ];
}

function watchFields(message: Extract<ServerMessage, { readonly kind: "watching" | "changes" }>): unknown[] {
  if (message.kind === "watching")
    return [kinds.watching, count(message.id, "id"), count(message.index, "index"), flag(message.isGap, "isGap")];
  const changes = message.changes.map(lockChangeFields);
  return [kinds.changes, count(message.id, "id"), positive(message.index, "index"), changes];
}

type DoneOrder = Extract<
  ServerMessage,
  { readonly kind: "forced" | "transferred" | "finalized" | "keyRotated" | "membersChanged" }
>;

/** What an order has led to. */
function orderFields(message: DoneOrder): unknown[] {
  switch (message.kind) {
    case "forced":
      return [count(message.ended, "ended"), count(message.holders, "holders")];
    case "transferred":
      return [addressOrNull(message.leader)];
    case "finalized":
      return [positive(message.version, "version")];
    case "keyRotated":
      return [signingKeyId(message.key, "key")];
    case "membersChanged":
      return [positive(message.index, "index")];
    default:
      return assertNever(message, "answer to an order");
  }
}

function messageFrom(value: unknown): ServerMessage {
  const fields = fieldsOf(value, 1, "message");
  switch (fields[0]) {
    case kinds.outcome:
      fieldsOf(fields, 5, "outcome");
      return {
        kind: "outcome",
        session: positive(fields[1], "session"),
        request: positive(fields[2], "request"),
        index: count(fields[3], "index"),
        outcome: outcomeFrom(fields[4]),
      };
    case kinds.acknowledged:
      fieldsOf(fields, 3, "acknowledged");
      return { kind: "acknowledged", session: positive(fields[1], "session"), number: count(fields[2], "number") };
    case kinds.refused:
      return refusedFrom(fields);
    case kinds.refusedRun:
      return refusedRunFrom(fields);
    case kinds.rejected:
      fieldsOf(fields, 4, "rejected");
      return {
        kind: "rejected",
        session: positive(fields[1], "session"),
        request: positive(fields[2], "request"),
        rejection: rejectionFrom(fields[3]),
      };
    case kinds.resumed:
      return { kind: "resumed", ...resumeFrom(fields) };
    case kinds.answer:
      fieldsOf(fields, 3, "answer");
      return { kind: "answer", id: count(fields[1], "id"), result: resultFrom(fields[2]) };
    case kinds.forced:
      fieldsOf(fields, 4, "forced");
      return {
        kind: "forced",
        id: count(fields[1], "id"),
        ended: count(fields[2], "ended"),
        holders: count(fields[3], "holders"),
      };
    case kinds.transferred:
      fieldsOf(fields, 3, "transferred");
      return { kind: "transferred", id: count(fields[1], "id"), leader: nullable(fields[2], "leader", addressFrom) };
    case kinds.finalized:
      return { kind: "finalized", id: count(fields[1], "id"), version: positive(fields[2], "version") };
    case kinds.keyRotated:
      return { kind: "keyRotated", id: count(fields[1], "id"), key: signingKeyId(fields[2], "key") };
    case kinds.membersChanged:
      return { kind: "membersChanged", id: count(fields[1], "id"), index: positive(fields[2], "index") };
    case kinds.watching:
      fieldsOf(fields, 4, "watching");
      return {
        kind: "watching",
        id: count(fields[1], "id"),
        index: count(fields[2], "index"),
        isGap: flag(fields[3], "isGap"),
      };
    case kinds.changes:
      fieldsOf(fields, 4, "changes");
      return {
        kind: "changes",
        id: count(fields[1], "id"),
        index: positive(fields[2], "index"),
        changes: mapList(list(fields[3], "changes"), "changes", lockChangeFrom),
      };
    default:
      return connectionMessageFrom(fields);
  }
}

/** What is said about the connection, the leader and sessions as a whole. */
function connectionMessageFrom(fields: Fields): ServerMessage {
  switch (fields[0]) {
    case kinds.welcome:
      fieldsOf(fields, 7, "welcome");
      return {
        kind: "welcome",
        protocol: count(fields[1], "protocol"),
        features: mapList(listUpTo(fields[2], limits.featuresMax, "features"), "features", id),
        node: id(fields[3], "node"),
        clusterId: id(fields[4], "clusterId"),
        leader: nullable(fields[5], "leader", addressFrom),
        nodes: addressesFrom(fields[6]),
      };
    case kinds.leader:
      return { kind: "leader", leader: nullable(fields[1], "leader", addressFrom) };
    case kinds.nodes:
      return { kind: "nodes", nodes: addressesFrom(fields[1]) };
    case kinds.sessionOpened:
      fieldsOf(fields, 4, "sessionOpened");
      return {
        kind: "sessionOpened",
        key: key(fields[1], "key"),
        session: positive(fields[2], "session"),
        ttlMs: positive(fields[3], "ttlMs"),
      };
    case kinds.sessionEnded:
      fieldsOf(fields, 3, "sessionEnded");
      return {
        kind: "sessionEnded",
        session: positive(fields[1], "session"),
        reason: nullable(fields[2], "reason", lossReasons.wordFor),
      };
    case kinds.superseded:
      return { kind: "superseded", session: positive(fields[1], "session") };
    default:
      throw new WireError("unknown_message", null, "has a message of a kind that this release doesn't know");
  }
}

function refusedFrom(value: unknown): ServerMessage {
  const fields = fieldsOf(value, 6, "refused");
  return {
    kind: "refused",
    session: nullable(fields[1], "session", positive),
    request: nullable(fields[2], "request", positive),
    id: nullable(fields[3], "id", count),
    key: nullable(fields[4], "key", key),
    refusal: refusalFrom(fields[5]),
  };
}

function refusedFields(message: Extract<ServerMessage, { readonly kind: "refused" }>): unknown[] {
  return [
    kinds.refused,
    nullable(message.session, "session", positive),
    nullable(message.request, "request", positive),
    nullable(message.id, "id", count),
    nullable(message.key, "key", key),
    refusalFields(message.refusal),
  ];
}

function refusedRunFields(message: Extract<ServerMessage, { readonly kind: "refusedRun" }>): unknown[] {
  return [
    kinds.refusedRun,
    positive(message.session, "session"),
    positive(message.from, "from"),
    lastOfRun(message.to, message.from),
    refusalFields(message.refusal),
  ];
}

function refusedRunFrom(value: unknown): ServerMessage {
  const fields = fieldsOf(value, 5, "refusedRun");
  const from = positive(fields[2], "from");
  return {
    kind: "refusedRun",
    session: positive(fields[1], "session"),
    from,
    to: lastOfRun(fields[3], from),
    refusal: refusalFrom(fields[4]),
  };
}

/** Whoever walks a run must not be kept busy by it. */
function lastOfRun(value: unknown, from: number): number {
  return integer(value, from, from + limits.messagesPerFrameMax - 1, "to");
}

function refusalFields(refusal: Refusal): unknown[] {
  const kind = refusalKinds[refusal.code];
  switch (refusal.code) {
    case "not_leader":
      return [kind, addressOrNull(refusal.leader)];
    case "session_gone":
      return [kind, nullable(refusal.reason, "reason", anyText)];
    case "invalid_argument":
      return [kind, anyText(refusal.argument, "argument"), anyText(refusal.problem, "problem")];
    case "incompatible":
      return [kind, anyText(refusal.problem, "problem")];
    case "change_refused":
      return [kind, changeRefusals.numberFor(refusal.reason, "reason"), mapList(refusal.members, "members", anyText)];
    case "no_quorum":
    case "overloaded":
    case "unknown_outcome":
    case "unauthorized":
      return [kind];
    default:
      return assertNever(refusal, "refusal");
  }
}

function refusalFrom(value: unknown): Refusal {
  const fields = fieldsOf(value, 1, "refusal");
  switch (fields[0]) {
    case refusalKinds.not_leader:
      return { code: "not_leader", leader: nullable(fields[1], "leader", addressFrom) };
    case refusalKinds.no_quorum:
      return { code: "no_quorum" };
    case refusalKinds.overloaded:
      return { code: "overloaded" };
    case refusalKinds.unknown_outcome:
      return { code: "unknown_outcome" };
    case refusalKinds.session_gone:
      return { code: "session_gone", reason: nullable(fields[1], "reason", anyText) };
    case refusalKinds.invalid_argument:
      return {
        code: "invalid_argument",
        argument: anyText(fields[1], "argument"),
        problem: anyText(fields[2], "problem"),
      };
    case refusalKinds.incompatible:
      return { code: "incompatible", problem: anyText(fields[1], "problem") };
    case refusalKinds.unauthorized:
      return { code: "unauthorized" };
    case refusalKinds.change_refused:
      return {
        code: "change_refused",
        reason: changeRefusals.wordFor(fields[1], "reason"),
        members: mapList(list(fields[2], "members"), "members", anyText),
      };
    default:
      throw badValue("refusal", "is of a kind that this release doesn't know");
  }
}
