/**
 * What a request over HTTP asks for, checked once: JSON bodies, parameters of the query, the session's header. Unknown names are refused, for
 * a misspelt lockDelayMs must not be a lock without one. An answer instead of the value says what is wrong with the first that is.
 */
import type { Command } from "@holdfast/lock";
import { checkClientCommand, checkName, checkNames, integerProblem, limits, textProblem } from "@holdfast/wire";
import type { Query } from "@holdfast/wire";
import { invalidArgument, refusalAnswer } from "./answers.js";
import type { Answer } from "./answers.js";
import { apiLimits } from "./limits.js";
import { cancelNumber, closeNumber, requestMax, requestNumber, seenMax, seenNumbers } from "./request-numbers.js";

/** Who speaks: the session's id and its key. */
export interface Credential {
  readonly session: number;
  readonly key: string;
}

export const sessionHeader = "holdfast-session";

/** A request of a session, as its client numbered it. */
export interface SessionCall {
  readonly request: number;
  readonly command: Command;
}

export interface AcquireCall extends SessionCall {
  /** 0: what can't be granted at once is refused. */
  readonly waitMs: number;
}

/** A release or cancel, and the acquire that it speaks of. */
export interface EndingCall extends SessionCall {
  readonly of: number;
}

export type OpenCall = Extract<Command, { readonly kind: "openSession" }>;

export interface WatchCall {
  readonly name: string;
  readonly isPrefix: boolean;
  readonly after: number | null;
}

/** No call has a status, nor does any body or query know a field of that name. */
export function isAnswer(value: object): value is Answer {
  return "status" in value;
}

export function parseCredential(header: string | undefined): Credential | Answer {
  const title = "Holdfast-Session";
  if (header === undefined)
    return invalidArgument(title, "is missing: a header with the session's id, a dot and its key");
  const [, id = "", key = ""] = /^([1-9][0-9]{0,15})\.([0-9a-f]{32})$/.exec(header) ?? [];
  const session = Number(id);
  if (key === "" || !Number.isSafeInteger(session)) {
    return invalidArgument(title, "is not a session's id, a dot and its key of 32 lower-case hex digits");
  }
  return { session, key };
}

/** `drawKey`: for a client that brings none. It can't repeat its request then, and may leave a session behind that nobody knows. */
export function parseOpen(body: unknown, drawKey: () => string): OpenCall | Answer {
  const fields = fieldsOf(body, ["ttlMs", "info", "key"]);
  if (isAnswer(fields)) return fields;
  const { ttlMs = apiLimits.ttlMsDefault, info = "", key = drawKey() } = fields;
  const command = { kind: "openSession", key, ttlMs, info } as OpenCall;
  return checkedCommand(command) ?? command;
}

const numberFields = ["request", "settled", "seen"];

export function parseAcquire(session: number, body: unknown): AcquireCall | Answer {
  const known = ["names", "mode", "slots", "waitMs", "lockDelayMs", "maxHoldMs", "info"];
  const fields = fieldsOf(body, [...numberFields, ...known]);
  if (isAnswer(fields)) return fields;
  const numbers = numbersIn(session, fields);
  if (isAnswer(numbers)) return numbers;
  const { names, mode = "exclusive", slots = 0, waitMs = apiLimits.waitMsDefault } = fields;
  const refusal = checkNames(names);
  if (refusal !== null) return refusalAnswer(refusal, null);
  const waitProblem = integerProblem(waitMs, 0, apiLimits.waitMsMax);
  if (waitProblem !== null) return invalidArgument("waitMs", waitProblem);
  const { lockDelayMs = 0, maxHoldMs = 0, info = "" } = fields;
  // By code unit, as everything compares names here.
  const sorted = [...new Set(names as readonly string[])].sort();
  const wait = (waitMs as number) > 0;
  const asked = { names: sorted, mode, slots, wait, lockDelayMs, maxHoldMs, info };
  const command = { kind: "acquire", ...numbers.carried, ...asked } as Command;
  return checkedCommand(command) ?? { request: numbers.request, command, waitMs: waitMs as number };
}

export function parseRelease(session: number, body: unknown): EndingCall | Answer {
  return parseEnding(session, body, ["afterMs"], ({ carried, of, fields }) => {
    const { afterMs = 0 } = fields;
    return { kind: "release", ...carried, of: requestNumber(of), afterMs } as Command;
  });
}

export function parseCancel(session: number, body: unknown): EndingCall | Answer {
  return parseEnding(session, body, [], ({ carried, of }) => ({ kind: "cancel", ...carried, of: requestNumber(of) }));
}

export function parseSetInfo(session: number, body: unknown): EndingCall | Answer {
  return parseEnding(session, body, ["info"], ({ carried, of, fields: { info } }) => {
    return { kind: "setInfo", ...carried, of: requestNumber(of), info } as Command;
  });
}

export function closeCommand(session: number): Command {
  return { kind: "closeSession", session, request: closeNumber, settled: 0, seen: [] };
}

/** The node's own cancel of a client's request. */
export function cancelCommand(session: number, request: number): Command {
  const of = requestNumber(request);
  return { kind: "cancel", session, request: cancelNumber(request), settled: 0, seen: [], of };
}

/** One lock, by its name in the path as it came. */
export function parseInspect(encoded: string): Query | Answer {
  const name = decoded(encoded);
  if (name === null) return invalidArgument("name", "is not percent-encoded UTF-8");
  const refusal = checkName(name);
  return refusal === null ? { kind: "inspect", name } : refusalAnswer(refusal, null);
}

/** Of what an acquire of this session holds. */
export function parseSequencer({ session, key }: Credential, body: unknown): Query | Answer {
  const fields = fieldsOf(body, ["of", "name"]);
  if (isAnswer(fields)) return fields;
  const { of, name } = fields;
  const trouble = integerProblem(of, 1, requestMax);
  if (trouble !== null) return invalidArgument("of", trouble);
  const refusal = checkName(name);
  if (refusal !== null) return refusalAnswer(refusal, null);
  return { kind: "sequencer", session, key, of: requestNumber(of as number), name: name as string };
}

export function parseCheck(body: unknown): Query | Answer {
  const fields = fieldsOf(body, ["sequencer"]);
  if (isAnswer(fields)) return fields;
  const { sequencer } = fields;
  const trouble = textProblem(sequencer, 1, limits.sequencerBytesMax);
  return trouble === null ? { kind: "check", sequencer: sequencer as string } : invalidArgument("sequencer", trouble);
}

export function parseList(query: string): Query | Answer {
  const parameters = parametersOf(query, ["prefix", "after", "limit"]);
  if (isAnswer(parameters)) return parameters;
  const { prefix = "", after = "", limit = String(apiLimits.pageLocks) } = parameters;
  for (const [argument, text] of Object.entries({ prefix, after })) {
    const trouble = textProblem(text, 0, limits.nameBytesMax);
    if (trouble !== null) return invalidArgument(argument, trouble);
  }
  const count = wholeNumber(limit, 1, limits.queryLimitMax);
  if (typeof count === "string") return invalidArgument("limit", count);
  return { kind: "list", prefix, after, limit: count };
}

/** `lastEventId`: the header with which an EventSource comes back. It is newer than what its address says. */
export function parseWatch(query: string, lastEventId: string | undefined): WatchCall | Answer {
  const parameters = parametersOf(query, ["name", "prefix", "after"]);
  if (isAnswer(parameters)) return parameters;
  const { name, prefix, after } = parameters;
  if ((name === undefined) === (prefix === undefined))
    return invalidArgument("name", "or prefix is needed, and not both");
  const trouble = textProblem(name ?? prefix, name === undefined ? 0 : 1, limits.nameBytesMax);
  if (trouble !== null) return invalidArgument(name === undefined ? "prefix" : "name", trouble);
  const [argument, text] = lastEventId === undefined ? ["after", after] : ["Last-Event-ID", lastEventId];
  const index = text === undefined ? null : wholeNumber(text, 0, Number.MAX_SAFE_INTEGER);
  if (typeof index === "string") return invalidArgument(argument, index);
  return { name: name ?? prefix ?? "", isPrefix: name === undefined, after: index };
}

interface Numbers {
  readonly request: number;
  /** As the command carries it. */
  readonly carried: {
    readonly session: number;
    readonly request: number;
    readonly settled: number;
    readonly seen: number[];
  };
}

function numbersIn(session: number, { request, settled = 0, seen = [] }: Fields): Numbers | Answer {
  const trouble = integerProblem(request, 1, requestMax);
  if (trouble !== null) return invalidArgument("request", trouble);
  const settledProblem = integerProblem(settled, 0, requestMax);
  if (settledProblem !== null) return invalidArgument("settled", settledProblem);
  if (!Array.isArray(seen)) return invalidArgument("seen", "is no list");
  if (seen.length > seenMax) return invalidArgument("seen", `has more than ${seenMax} numbers`);
  for (const [at, number] of seen.entries()) {
    const seenProblem = integerProblem(number, 1, requestMax);
    if (seenProblem !== null) return invalidArgument(`seen[${at}]`, seenProblem);
  }
  const own = request as number;
  const told = { settled: requestNumber(settled as number), seen: seenNumbers(seen as readonly number[]) };
  return { request: own, carried: { session, request: requestNumber(own), ...told } };
}

function parseEnding(
  session: number,
  body: unknown,
  known: readonly string[],
  make: (parts: { carried: Numbers["carried"]; of: number; fields: Fields }) => Command,
): EndingCall | Answer {
  const fields = fieldsOf(body, [...numberFields, "of", ...known]);
  if (isAnswer(fields)) return fields;
  const numbers = numbersIn(session, fields);
  if (isAnswer(numbers)) return numbers;
  const { of } = fields;
  const trouble = integerProblem(of, 1, requestMax);
  if (trouble !== null) return invalidArgument("of", trouble);
  const command = make({ carried: numbers.carried, of: of as number, fields });
  return checkedCommand(command) ?? { request: numbers.request, command, of: of as number };
}

/** Null: it may be sent. */
function checkedCommand(command: Command): Answer | null {
  const refusal = checkClientCommand(command);
  return refusal === null ? null : refusalAnswer(refusal, null);
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(body: unknown, known: readonly string[]): Fields | Answer {
  if (typeof body !== "object" || body === null || Array.isArray(body))
    return invalidArgument("body", "is no JSON object");
  const fields: Record<string, unknown> = Object.create(null);
  for (const [name, value] of Object.entries(body)) {
    if (!known.includes(name)) return unknownName(name, known);
    fields[name] = value;
  }
  return fields;
}

function parametersOf(query: string, known: readonly string[]): Readonly<Record<string, string>> | Answer {
  const found: Record<string, string> = Object.create(null);
  for (const part of query === "" ? [] : query.split("&")) {
    const at = part.indexOf("=");
    const [rawName, rawValue] = at < 0 ? [part, ""] : [part.slice(0, at), part.slice(at + 1)];
    const name = decoded(rawName.replaceAll("+", " "));
    const value = decoded(rawValue.replaceAll("+", " "));
    if (name === null || value === null) return invalidArgument("query", "is not percent-encoded UTF-8");
    if (!known.includes(name)) return unknownName(name, known);
    if (name in found) return invalidArgument(name, "is there twice");
    found[name] = value;
  }
  return found;
}

function unknownName(name: string, known: readonly string[]): Answer {
  const shown = name.length > 64 ? `${name.slice(0, 64)}...` : name;
  return invalidArgument(shown, `is unknown; known here: ${known.join(", ")}`);
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** A text: what is wrong with it. */
function wholeNumber(text: string, min: number, max: number): number | string {
  if (!/^[0-9]{1,16}$/.test(text)) return "is no whole number";
  return integerProblem(Number(text), min, max) ?? Number(text);
}
