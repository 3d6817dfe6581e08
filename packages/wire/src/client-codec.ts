/**
 * What clients say (client-messages.ts) as frames: `[[kind, field, ...], ...]`. Fields that a later release adds at the
 * end are ignored.
 */
import type { Member } from "@holdfast/raft";
import type { ClientMessage, Query } from "./client-messages.js";
import { assertNever } from "./assert.js";
import { memberFields, memberFrom } from "./configuration-codec.js";
import {
  badValue,
  byteString,
  count,
  fieldsOf,
  flag,
  id,
  integer,
  key,
  listUpTo,
  mapList,
  name,
  nullable,
  positive,
  text,
} from "./fields.js";
import { decodeFrame, encodeFrame, encodeFrames } from "./frames.js";
import { limits } from "./limits.js";
import type { Refusal } from "./refusals.js";
import { commandKind, payloadsIn } from "./command-frames.js";
import { isTraceparent } from "./traceparent.js";
import { WireError } from "./wire-error.js";

const kinds = {
  hello: 1,
  command: commandKind,
  resume: 3,
  keepalive: 4,
  query: 5,
  forceRelease: 6,
  transfer: 7,
  finalize: 8,
  changeMembers: 9,
  watch: 10,
  unwatch: 11,
  rotateKey: 12,
} as const satisfies Record<ClientMessage["kind"], number>;

const queryKinds = {
  inspect: 1,
  list: 2,
  sessions: 3,
  status: 4,
  members: 5,
  sequencer: 6,
  check: 7,
  keys: 8,
} as const satisfies Record<Query["kind"], number>;

type ChangeMembers = Extract<ClientMessage, { readonly kind: "changeMembers" }>;

/**
 * Throws a WireError that names the field of a wrong value, or "too_large" when the messages don't fit in one frame.
 */
export function encodeClientFrame(messages: readonly ClientMessage[]): Uint8Array {
  return encodeFrame(messages, limits.clientFrameBytesMax, messageFields);
}

/** As many frames as the messages need, in their order. */
export function encodeClientFrames(messages: readonly ClientMessage[]): Uint8Array[] {
  return encodeFrames(messages, limits.clientFrameBytesMax, messageFields);
}

/** Throws a WireError; all messages are good, or none is returned. The payload of a command is not looked into. */
export function decodeClientFrame(bytes: Uint8Array): ClientMessage[] {
  const payloads = bytes.length <= limits.clientFrameBytesMax ? payloadsIn(bytes) : null;
  if (payloads !== null) return payloads.map((each) => ({ kind: "command", payload: each }));
  return decodeFrame(bytes, limits.clientFrameBytesMax, limits.frameItemsMax, messageFrom);
}

/** Null when the message can be sent, else which argument is wrong. For commands see checkClientCommand. */
export function checkClientMessage(message: ClientMessage): Refusal | null {
  try {
    messageFields(message);
    return null;
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    return { code: "invalid_argument", argument: error.field ?? "message", problem: error.problem };
  }
}

function messageFields(message: ClientMessage): unknown[] {
  switch (message.kind) {
    case "keepalive":
      return [kinds.keepalive, positive(message.session, "session"), count(message.number, "number")];
    case "command":
      return [kinds.command, payload(message.payload), ...traceFields(message.traceparent)];
    case "hello":
      return [
        kinds.hello,
        count(message.protocol, "protocol"),
        mapList(listUpTo(message.features, limits.featuresMax, "features"), "features", id),
        nullable(message.clusterId, "clusterId", id),
        count(message.seenIndex, "seenIndex"),
        text(message.info, 0, limits.infoBytesMax, "info"),
      ];
    case "resume":
      return [kinds.resume, positive(message.session, "session"), key(message.key, "key")];
    case "query":
      return [kinds.query, count(message.id, "id"), queryFields(message.query)];
    case "forceRelease":
      return [
        kinds.forceRelease,
        count(message.id, "id"),
        name(message.name, "name"),
        positive(message.token, "token"),
        principal(message.principal),
        integer(message.lockDelayMs, 0, limits.lockDelayMsMax, "lockDelayMs"),
      ];
    case "transfer":
      return [kinds.transfer, count(message.id, "id"), nullable(message.to, "to", id)];
    case "finalize":
      return [kinds.finalize, count(message.id, "id")];
    case "rotateKey":
      return [kinds.rotateKey, count(message.id, "id"), principal(message.principal)];
    case "changeMembers":
      return [kinds.changeMembers, ...changeFields(message)];
    case "watch":
      return [
        kinds.watch,
        count(message.id, "id"),
        watchedName(message.name, message.isPrefix),
        flag(message.isPrefix, "isPrefix"),
        nullable(message.after, "after", count),
      ];
    case "unwatch":
      return [kinds.unwatch, count(message.id, "id")];
    default:
      return assertNever(message, "client message");
  }
}

function messageFrom(value: unknown): ClientMessage {
  const fields = fieldsOf(value, 1, "message");
  switch (fields[0]) {
    case kinds.keepalive:
      fieldsOf(fields, 3, "keepalive");
      return { kind: "keepalive", session: positive(fields[1], "session"), number: count(fields[2], "number") };
    case kinds.command:
      return { kind: "command", payload: payload(fields[1]), ...traceFrom(fields[2]) };
    case kinds.hello:
      fieldsOf(fields, 6, "hello");
      return {
        kind: "hello",
        protocol: count(fields[1], "protocol"),
        features: mapList(listUpTo(fields[2], limits.featuresMax, "features"), "features", id),
        clusterId: nullable(fields[3], "clusterId", id),
        seenIndex: count(fields[4], "seenIndex"),
        info: text(fields[5], 0, limits.infoBytesMax, "info"),
      };
    case kinds.resume:
      fieldsOf(fields, 3, "resume");
      return { kind: "resume", session: positive(fields[1], "session"), key: key(fields[2], "key") };
    case kinds.query:
      fieldsOf(fields, 3, "query");
      return { kind: "query", id: count(fields[1], "id"), query: queryFrom(fields[2]) };
    case kinds.forceRelease:
      fieldsOf(fields, 6, "forceRelease");
      return {
        kind: "forceRelease",
        id: count(fields[1], "id"),
        name: name(fields[2], "name"),
        token: positive(fields[3], "token"),
        principal: principal(fields[4]),
        lockDelayMs: integer(fields[5], 0, limits.lockDelayMsMax, "lockDelayMs"),
      };
    case kinds.transfer:
      fieldsOf(fields, 3, "transfer");
      return { kind: "transfer", id: count(fields[1], "id"), to: nullable(fields[2], "to", id) };
    case kinds.finalize:
      return { kind: "finalize", id: count(fields[1], "id") };
    case kinds.rotateKey:
      fieldsOf(fields, 3, "rotateKey");
      return { kind: "rotateKey", id: count(fields[1], "id"), principal: principal(fields[2]) };
    case kinds.changeMembers:
      return changeFrom(fields);
    case kinds.watch:
      return watchFrom(fields);
    case kinds.unwatch:
      return { kind: "unwatch", id: count(fields[1], "id") };
    default:
      throw new WireError("unknown_message", null, "has a message of a kind that this release doesn't know");
  }
}

const noFields: string[] = [];

function traceFields(traceparent: string | undefined): string[] {
  return isTraceparent(traceparent) ? [traceparent] : noFields;
}

function traceFrom(value: unknown): { readonly traceparent?: string } | null {
  return isTraceparent(value) ? { traceparent: value } : null;
}

function changeFields(change: ChangeMembers): unknown[] {
  return [
    count(change.id, "id"),
    mapList(listUpTo(change.add, limits.membersMax, "add"), "add", (member) => memberFields(member as Member)),
    ids(change.promote, "promote"),
    ids(change.remove, "remove"),
    flag(change.isForced, "isForced"),
  ];
}

function changeFrom(value: unknown): ChangeMembers {
  const fields = fieldsOf(value, 6, "changeMembers");
  return {
    kind: "changeMembers",
    id: count(fields[1], "id"),
    add: mapList(listUpTo(fields[2], limits.membersMax, "add"), "add", memberFrom),
    promote: ids(fields[3], "promote"),
    remove: ids(fields[4], "remove"),
    isForced: flag(fields[5], "isForced"),
  };
}

function watchFrom(value: unknown): Extract<ClientMessage, { readonly kind: "watch" }> {
  const fields = fieldsOf(value, 5, "watch");
  const isPrefix = flag(fields[3], "isPrefix");
  return {
    kind: "watch",
    id: count(fields[1], "id"),
    name: watchedName(fields[2], isPrefix),
    isPrefix,
    after: nullable(fields[4], "after", count),
  };
}

function watchedName(value: unknown, isPrefix: boolean): string {
  return isPrefix ? prefix(value, "name") : name(value, "name");
}

function ids(value: unknown, field: string): string[] {
  return mapList(listUpTo(value, limits.membersMax, field), field, id);
}

function payload(value: unknown): Uint8Array {
  const bytes = byteString(value, "payload");
  if (bytes.length > limits.commandBytesMax)
    throw new WireError("too_large", "payload", `is longer than ${limits.commandBytesMax} bytes`);
  return bytes;
}

function queryFields(query: Query): unknown[] {
  switch (query.kind) {
    case "inspect":
      return [queryKinds.inspect, name(query.name, "name")];
    case "list":
      return [queryKinds.list, prefix(query.prefix, "prefix"), prefix(query.after, "after"), queryLimit(query.limit)];
    case "sessions":
      return [queryKinds.sessions, queryLimit(query.limit)];
    case "status":
      return [queryKinds.status];
    case "members":
      return [queryKinds.members];
    case "sequencer":
      return [
        queryKinds.sequencer,
        positive(query.session, "session"),
        key(query.key, "key"),
        positive(query.of, "of"),
        name(query.name, "name"),
      ];
    case "check":
      return [queryKinds.check, sequencer(query.sequencer)];
    case "keys":
      return [queryKinds.keys];
    default:
      return assertNever(query, "query");
  }
}

function queryFrom(value: unknown): Query {
  const fields = fieldsOf(value, 1, "query");
  switch (fields[0]) {
    case queryKinds.inspect:
      return { kind: "inspect", name: name(fields[1], "name") };
    case queryKinds.list:
      fieldsOf(fields, 4, "list");
      return {
        kind: "list",
        prefix: prefix(fields[1], "prefix"),
        after: prefix(fields[2], "after"),
        limit: queryLimit(fields[3]),
      };
    case queryKinds.sessions:
      return { kind: "sessions", limit: queryLimit(fields[1]) };
    case queryKinds.status:
      return { kind: "status" };
    case queryKinds.members:
      return { kind: "members" };
    case queryKinds.sequencer:
      fieldsOf(fields, 5, "sequencer");
      return {
        kind: "sequencer",
        session: positive(fields[1], "session"),
        key: key(fields[2], "key"),
        of: positive(fields[3], "of"),
        name: name(fields[4], "name"),
      };
    case queryKinds.check:
      return { kind: "check", sequencer: sequencer(fields[1]) };
    case queryKinds.keys:
      return { kind: "keys" };
    default:
      throw badValue("query", "is of a kind that this release doesn't know");
  }
}

/** A part of a name; empty: all, or from the first. */
function prefix(value: unknown, field: string): string {
  return text(value, 0, limits.nameBytesMax, field);
}

function principal(value: unknown): string {
  return text(value, 0, limits.principalBytesMax, "principal");
}

/** Whatever it is: what comes of it is an answer. */
function sequencer(value: unknown): string {
  return text(value, 0, limits.sequencerBytesMax, "sequencer");
}

function queryLimit(value: unknown): number {
  return integer(value, 1, limits.queryLimitMax, "limit");
}
