/**
 * Commands as log entries carry them: `[kind, field, ...]`, each kind with a fixed number of fields in a fixed order,
 * so that an entry's bytes mean the same on every node. A kind's number and fields never change; a new meaning gets a
 * new number.
 *
 * What is checked here is what the lock machine's types promise, whoever proposed the command. The limits of what
 * clients may ask for are checked once, before the proposal (command-checks.ts): entries that are in the log stay
 * readable when a limit changes.
 */
import type { Command, Mode, RequestNumber, SessionId, SessionRequest } from "@holdfast/lock";
import { assertNever } from "./assert.js";
import {
  anyText,
  badValue,
  count,
  exactFieldsOf,
  flag,
  integer,
  key,
  list,
  nullable,
  positive,
  signingKey,
  signingKeyId,
} from "./fields.js";
import type { Fields } from "./fields.js";
import { limits } from "./limits.js";
import { copyOf, pack, unpack } from "./msgpack.js";
import { encodingProblem, integerProblem } from "./problems.js";
import { UnknownCommandError, WireError } from "./wire-error.js";
import { modes } from "./words.js";

const kinds = {
  openSession: 1,
  closeSession: 2,
  acquire: 3,
  release: 4,
  cancel: 5,
  setInfo: 6,
  expireSessions: 7,
  suspectSessions: 8,
  renewSuspects: 9,
  forceRelease: 10,
  endLockDelay: 11,
  endHold: 12,
  setClusterVersion: 13,
  setSigningKey: 14,
} as const satisfies Record<Command["kind"], number>;

/** Kind, session, request, settled, seen. */
const requestFieldCount = 5;

/**
 * The bytes of a log entry's payload; a copy that holds on to nothing else. Throws a WireError that names the field
 * when a value is not what its type says (a client's user input has passed checkClientCommand before).
 */
export function encodeCommand(command: Command): Uint8Array {
  const bytes = pack(commandFields(command));
  if (bytes.length > limits.commandBytesMax) throw tooLarge();
  return copyOf(bytes);
}

/** Throws an UnknownCommandError for a kind of a newer release, and a WireError for bytes that are no command. */
export function decodeCommand(payload: Uint8Array): Command {
  if (payload.length > limits.commandBytesMax) throw tooLarge();
  const fields = unpack(payload, 0, limits.frameItemsMax);
  const kind = integer(fields[0], 0, Number.MAX_SAFE_INTEGER, "kind");
  switch (kind) {
    case kinds.acquire:
      return acquireFrom(fields);
    case kinds.release:
      exactFieldsOf(fields, requestFieldCount + 2, "release");
      return {
        kind: "release",
        ...requestFrom(fields),
        of: positive(fields[5], "of"),
        afterMs: count(fields[6], "afterMs"),
      };
    case kinds.cancel:
      exactFieldsOf(fields, requestFieldCount + 1, "cancel");
      return { kind: "cancel", ...requestFrom(fields), of: positive(fields[5], "of") };
    case kinds.setInfo:
      exactFieldsOf(fields, requestFieldCount + 2, "setInfo");
      return {
        kind: "setInfo",
        ...requestFrom(fields),
        of: positive(fields[5], "of"),
        info: anyText(fields[6], "info"),
      };
    case kinds.openSession:
      exactFieldsOf(fields, 4, "openSession");
      return {
        kind: "openSession",
        key: key(fields[1], "key"),
        ttlMs: positive(fields[2], "ttlMs"),
        info: anyText(fields[3], "info"),
      };
    case kinds.closeSession:
      exactFieldsOf(fields, requestFieldCount, "closeSession");
      return { kind: "closeSession", ...requestFrom(fields) };
    default:
      return leaderCommandFrom(kind, fields);
  }
}

/** Commands that only a leader or an administrator proposes. */
function leaderCommandFrom(kind: number, fields: Fields): Command {
  switch (kind) {
    case kinds.expireSessions:
      exactFieldsOf(fields, 2, "expireSessions");
      return { kind: "expireSessions", ids: numbers(fields[1], "ids") };
    case kinds.suspectSessions:
      exactFieldsOf(fields, 3, "suspectSessions");
      return {
        kind: "suspectSessions",
        ids: numbers(fields[1], "ids"),
        eighths: integer(fields[2], 1, limits.eighthsMax, "eighths"),
      };
    case kinds.renewSuspects:
      exactFieldsOf(fields, 2, "renewSuspects");
      return { kind: "renewSuspects", ids: numbers(fields[1], "ids") };
    case kinds.forceRelease:
      exactFieldsOf(fields, 5, "forceRelease");
      return {
        kind: "forceRelease",
        name: anyText(fields[1], "name"),
        token: positive(fields[2], "token"),
        principal: anyText(fields[3], "principal"),
        lockDelayMs: count(fields[4], "lockDelayMs"),
      };
    case kinds.endLockDelay:
      exactFieldsOf(fields, 3, "endLockDelay");
      return { kind: "endLockDelay", name: anyText(fields[1], "name"), index: positive(fields[2], "index") };
    case kinds.endHold:
      exactFieldsOf(fields, 4, "endHold");
      return {
        kind: "endHold",
        session: positive(fields[1], "session"),
        of: positive(fields[2], "of"),
        token: positive(fields[3], "token"),
      };
    case kinds.setClusterVersion:
      exactFieldsOf(fields, 2, "setClusterVersion");
      return { kind: "setClusterVersion", version: positive(fields[1], "version") };
    case kinds.setSigningKey:
      exactFieldsOf(fields, 6, "setSigningKey");
      return {
        kind: "setSigningKey",
        id: signingKeyId(fields[1], "id"),
        publicKey: signingKey(fields[2], "publicKey"),
        seed: signingKey(fields[3], "seed"),
        replaces: nullable(fields[4], "replaces", signingKeyId),
        principal: anyText(fields[5], "principal"),
      };
    default:
      throw new UnknownCommandError(kind, requestIn(fields));
  }
}

function commandFields(command: Command): unknown[] {
  switch (command.kind) {
    case "acquire":
      return acquireFields(command);
    case "release":
      return [...requestFields(kinds.release, command), positive(command.of, "of"), count(command.afterMs, "afterMs")];
    case "cancel":
      return [...requestFields(kinds.cancel, command), positive(command.of, "of")];
    case "setInfo":
      return [...requestFields(kinds.setInfo, command), positive(command.of, "of"), anyText(command.info, "info")];
    case "openSession":
      return [
        kinds.openSession,
        key(command.key, "key"),
        positive(command.ttlMs, "ttlMs"),
        anyText(command.info, "info"),
      ];
    case "closeSession":
      return requestFields(kinds.closeSession, command);
    case "expireSessions":
      return [kinds.expireSessions, numbers(command.ids, "ids")];
    case "suspectSessions":
      return [
        kinds.suspectSessions,
        numbers(command.ids, "ids"),
        integer(command.eighths, 1, limits.eighthsMax, "eighths"),
      ];
    case "renewSuspects":
      return [kinds.renewSuspects, numbers(command.ids, "ids")];
    case "forceRelease":
      return [
        kinds.forceRelease,
        anyText(command.name, "name"),
        positive(command.token, "token"),
        anyText(command.principal, "principal"),
        count(command.lockDelayMs, "lockDelayMs"),
      ];
    case "endLockDelay":
      return [kinds.endLockDelay, anyText(command.name, "name"), positive(command.index, "index")];
    case "endHold":
      return [
        kinds.endHold,
        positive(command.session, "session"),
        positive(command.of, "of"),
        positive(command.token, "token"),
      ];
    case "setClusterVersion":
      return [kinds.setClusterVersion, positive(command.version, "version")];
    case "setSigningKey":
      return [
        kinds.setSigningKey,
        signingKeyId(command.id, "id"),
        signingKey(command.publicKey, "publicKey"),
        signingKey(command.seed, "seed"),
        nullable(command.replaces, "replaces", signingKeyId),
        anyText(command.principal, "principal"),
      ];
    default:
      return assertNever(command, "command");
  }
}

/** Every command of a session has these two in the same places, in later releases too. */
function requestIn(fields: Fields): UnknownCommandError["request"] {
  const [, session, request] = fields;
  const problem =
    integerProblem(session, 1, Number.MAX_SAFE_INTEGER) ?? integerProblem(request, 1, Number.MAX_SAFE_INTEGER);
  return problem === null ? { session: session as number, request: request as number } : null;
}

function requestFields(kind: number, request: SessionRequest): unknown[] {
  return [
    kind,
    positive(request.session, "session"),
    positive(request.request, "request"),
    count(request.settled, "settled"),
    numbers(request.seen, "seen"),
  ];
}

function requestFrom(fields: Fields): SessionRequest {
  return {
    session: positive(fields[1], "session"),
    request: positive(fields[2], "request"),
    settled: count(fields[3], "settled"),
    seen: numbers(fields[4], "seen"),
  };
}

type Acquire = Extract<Command, { kind: "acquire" }>;

function acquireFields(command: Acquire): unknown[] {
  return [
    kinds.acquire,
    positive(command.session, "session"),
    positive(command.request, "request"),
    count(command.settled, "settled"),
    numbers(command.seen, "seen"),
    sortedNames(command.names),
    modes.numberFor(command.mode, "mode"),
    slotsFor(command.slots, command.mode, command.names.length),
    flag(command.wait, "wait"),
    count(command.lockDelayMs, "lockDelayMs"),
    count(command.maxHoldMs, "maxHoldMs"),
    anyText(command.info, "info"),
  ];
}

function acquireFrom(fields: Fields): Acquire {
  exactFieldsOf(fields, requestFieldCount + 7, "acquire");
  const names = sortedNames(fields[5]);
  const mode = modes.wordFor(fields[6], "mode");
  return {
    kind: "acquire",
    session: positive(fields[1], "session"),
    request: positive(fields[2], "request"),
    settled: count(fields[3], "settled"),
    seen: numbers(fields[4], "seen"),
    names,
    mode,
    slots: slotsFor(fields[7], mode, names.length),
    wait: flag(fields[8], "wait"),
    lockDelayMs: count(fields[9], "lockDelayMs"),
    maxHoldMs: count(fields[10], "maxHoldMs"),
    info: anyText(fields[11], "info"),
  };
}

/** The very array, when each member is a number from 1. */
function numbers(value: unknown, field: string): readonly RequestNumber[] {
  const items = list(value, field);
  for (let at = 0; at < items.length; at++) positive(items[at], field);
  return items as readonly number[];
}

/** The very array. All queues of an acquire are entered in one order: by name, by code unit. */
function sortedNames(value: unknown): readonly string[] {
  const names = list(value, "names") as readonly string[];
  if (names.length === 0) throw badValue("names", "is empty");
  for (let at = 0; at < names.length; at++) {
    const problem = encodingProblem(names[at]);
    if (problem !== null) throw badValue(`names[${at}]`, problem);
    if (at > 0 && !((names[at - 1] as string) < (names[at] as string)))
      throw badValue(`names[${at}]`, "is not sorted, or a duplicate");
  }
  return names;
}

function slotsFor(value: unknown, mode: Mode, nameCount: number): number {
  if (mode !== "slot") return integer(value, 0, 0, "slots");
  if (nameCount !== 1) throw badValue("names", "has more than one name, and a semaphore has one");
  return positive(value, "slots");
}

function tooLarge(): WireError {
  return new WireError("too_large", null, `is longer than ${limits.commandBytesMax} bytes`);
}

/** First bytes of an acquire: an array of so many fields, and its kind. */
const acquireHead = [0x90 | (requestFieldCount + 7), kinds.acquire] as const;

/**
 * Whose acquire it is, without looking at what it asks for: for whoever refuses it anyhow. Null for whatever else there may be, well-formed
 * or not.
 */
export function acquireIn(
  payload: Uint8Array,
): { readonly session: SessionId; readonly request: RequestNumber } | null {
  if (payload[0] !== acquireHead[0] || payload[1] !== acquireHead[1]) return null;
  const session = numberAt(payload, acquireHead.length);
  if (session === null) return null;
  const request = numberAt(payload, session.end);
  if (request === null || session.value === 0 || request.value === 0) return null;
  return { session: session.value, request: request.value };
}

/** A whole number from 0, of up to 8 bytes, as msgpack writes it. */
function numberAt(bytes: Uint8Array, at: number): { readonly value: number; readonly end: number } | null {
  const head = bytes[at];
  if (head === undefined) return null;
  if (head <= 0x7f) return { value: head, end: at + 1 };
  if (head < 0xcc || head > 0xcf) return null;
  const end = at + 1 + 2 ** (head - 0xcc);
  if (end > bytes.length) return null;
  let value = 0;
  for (let each = at + 1; each < end; each += 1) value = value * 256 + (bytes[each] as number);
  return Number.isSafeInteger(value) ? { value, end } : null;
}
