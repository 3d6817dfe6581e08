/** What a client may ask for, checked by the client's library before it sends, and by the node before it proposes. */
import type { Command, Mode, SessionRequest } from "@holdfast/lock";
import { limits } from "./limits.js";
import { integerProblem, keyProblem, textProblem } from "./problems.js";
import type { Refusal } from "./refusals.js";

type InvalidArgument = Extract<Refusal, { code: "invalid_argument" }>;

function invalid(argument: string, problem: string): InvalidArgument {
  return { code: "invalid_argument", argument, problem };
}

function checkInteger(value: unknown, min: number, max: number, argument: string): InvalidArgument | null {
  const problem = integerProblem(value, min, max);
  return problem === null ? null : invalid(argument, problem);
}

function checkText(value: unknown, bytesMin: number, bytesMax: number, argument: string): InvalidArgument | null {
  const problem = textProblem(value, bytesMin, bytesMax);
  return problem === null ? null : invalid(argument, problem);
}

/** One lock name, of any source. `argument` is what the caller calls it. */
export function checkName(name: unknown, argument: string = "name"): Refusal | null {
  return checkText(name, 1, limits.nameBytesMax, argument);
}

/**
 * Names of one acquire, in any order: from 1 to 64. To be called before they are sorted and freed of duplicates, so
 * that a list of millions is refused before anything is made of it, and "names[2]" is the caller's third.
 */
export function checkNames(names: unknown): Refusal | null {
  if (!Array.isArray(names)) return invalid("names", "is no list");
  if (names.length === 0) return invalid("names", "is empty");
  if (names.length > limits.namesMax) return invalid("names", `has more than ${limits.namesMax} names`);
  for (let at = 0; at < names.length; at++) {
    const problem = textProblem(names[at], 1, limits.nameBytesMax);
    if (problem !== null) return invalid(`names[${at}]`, problem);
  }
  return null;
}

/**
 * Null when a client may send this command: a known one of the six, with every value in its range (limits.ts). Else the
 * first argument that is wrong. Total: it takes whatever an untyped caller hands over.
 */
export function checkClientCommand(command: Command): Refusal | null {
  if (typeof command !== "object" || command === null) return invalid("command", "is no command");
  switch (command.kind) {
    case "openSession":
      return checkOpenSession(command);
    case "acquire":
      return checkRequest(command) ?? checkNames(command.names) ?? checkOrder(command.names) ?? checkAcquire(command);
    case "release":
      return (
        checkRequest(command) ??
        checkInteger(command.of, 1, Number.MAX_SAFE_INTEGER, "of") ??
        checkInteger(command.afterMs, 0, limits.afterMsMax, "afterMs")
      );
    case "cancel":
      return checkRequest(command) ?? checkInteger(command.of, 1, Number.MAX_SAFE_INTEGER, "of");
    case "setInfo":
      return (
        checkRequest(command) ??
        checkInteger(command.of, 1, Number.MAX_SAFE_INTEGER, "of") ??
        checkText(command.info, 0, limits.infoBytesMax, "info")
      );
    case "closeSession":
      return checkRequest(command);
    default:
      return invalid("kind", "is no command of a client");
  }
}

function checkOpenSession(command: Extract<Command, { kind: "openSession" }>): InvalidArgument | null {
  const problem = keyProblem(command.key, limits.keyDigits);
  if (problem !== null) return invalid("key", problem);
  return (
    checkInteger(command.ttlMs, limits.ttlMsMin, limits.ttlMsMax, "ttlMs") ??
    checkText(command.info, 0, limits.infoBytesMax, "info")
  );
}

function checkRequest(request: SessionRequest): InvalidArgument | null {
  return (
    checkInteger(request.session, 1, Number.MAX_SAFE_INTEGER, "session") ??
    checkInteger(request.request, 1, Number.MAX_SAFE_INTEGER, "request") ??
    checkInteger(request.settled, 0, Number.MAX_SAFE_INTEGER, "settled") ??
    checkSeen(request.seen)
  );
}

function checkSeen(seen: unknown): InvalidArgument | null {
  if (!Array.isArray(seen)) return invalid("seen", "is no list");
  if (seen.length > limits.seenMax) return invalid("seen", `has more than ${limits.seenMax} numbers`);
  for (let at = 0; at < seen.length; at++) {
    const problem = integerProblem(seen[at], 1, Number.MAX_SAFE_INTEGER);
    if (problem !== null) return invalid(`seen[${at}]`, problem);
  }
  return null;
}

/** Sorted by code unit, without duplicates: the caller's library does that after checkNames. */
function checkOrder(names: readonly string[]): InvalidArgument | null {
  for (let at = 1; at < names.length; at++) {
    if (!((names[at - 1] as string) < (names[at] as string)))
      return invalid(`names[${at}]`, "is not sorted, or a duplicate");
  }
  return null;
}

const modes: readonly unknown[] = ["exclusive", "shared", "slot"] satisfies readonly Mode[];

function checkAcquire(command: Extract<Command, { kind: "acquire" }>): InvalidArgument | null {
  if (!modes.includes(command.mode)) return invalid("mode", "is none of exclusive, shared, slot");
  const isSlot = command.mode === "slot";
  if (isSlot && command.names.length !== 1) return invalid("names", "has more than one name, and a semaphore has one");
  if (typeof command.wait !== "boolean") return invalid("wait", "is neither true nor false");
  return (
    checkInteger(command.slots, isSlot ? 1 : 0, isSlot ? limits.slotsMax : 0, "slots") ??
    checkInteger(command.lockDelayMs, 0, limits.lockDelayMsMax, "lockDelayMs") ??
    checkInteger(command.maxHoldMs, 0, limits.maxHoldMsMax, "maxHoldMs") ??
    checkText(command.info, 0, limits.infoBytesMax, "info")
  );
}
