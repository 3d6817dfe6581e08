/**
 * A text that tells two states of a core apart exactly when their futures can differ. It walks every own property of the opened core, so
 * a new field is part of it at once, and a new time stops the search until somebody has decided what it means. What is left out, and why:
 *
 * - options, codec, random: constant (the random draws too).
 * - reasons: texts for people; nothing depends on them.
 * - nowMs: only differences count. What differences can still do in the explored scopes:
 *   - A follower's heardMs decides whether it is sticky: written as that, and as nothing when it has no leader.
 *   - electionDeadlineMs: the timeout may come at any time; it moves the clock, which only ends stickiness, and the role ends as well.
 *   - A peer's heardMs at a leader: the loss of the quorum may come at any time; no number of heartbeats reaches it (see codec.ts).
 *   - heartbeatDueMs: it is never more than two heartbeats ahead, and the clock moves by that much for each heartbeat.
 *   - waitingSinceMs: after a heartbeat's time the patience with a peer is over; before, it isn't: nobody waits, waits, or waits too long.
 *   - takenMs: no disk is ever overdue in the explored scopes.
 * - Numbers of outputs: written as places among those that wait for the disk, since they are only compared with each other.
 * - The leader's heartbeatAnswer rounds stay at 0: the explored scopes ask for no quorum round (they would be written).
 */
import { electionTimeoutMs, heartbeatMs } from "./codec.js";
import { openedPrefix } from "./opened-core.js";

type Fields = Readonly<Record<string, unknown>>;

/** The longest patience of a leader with an answer that is owed, and how far a heartbeat moves its clock. */
export const patienceMs: number = 2 * heartbeatMs;

const leftOut = new Set([
  "options",
  "codec",
  "random",
  "reason",
  "electionReason",
  "nowMs",
  "electionDeadlineMs",
  "heartbeatDueMs",
  "takenMs",
]);

interface Walk {
  readonly nowMs: number;
  readonly outputs: readonly number[];
  readonly constants: ReadonlyMap<unknown, string>;
  text: string;
}

/** The opened core of a Raft. */
export function coreOf(raft: object): Fields {
  return fieldsOf(fieldsOf(raft)[`${openedPrefix}core`]);
}

export function isSticky(core: Fields): boolean {
  const role = fieldsOf(core["role"]);
  return role["kind"] === "leader" || (role["kind"] === "follower" && isFresh(role, numberOf(core["nowMs"])));
}

/** When a follower last heard its leader; null for other roles and without a leader. */
export function heardMsOf(core: Fields): number | null {
  const role = fieldsOf(core["role"]);
  return role["kind"] === "follower" && role["leader"] !== null ? numberOf(role["heardMs"]) : null;
}

export function canonicalText(
  raft: object,
  outputs: readonly number[],
  constants: ReadonlyMap<unknown, string>,
): string {
  const core = coreOf(raft);
  const walk: Walk = { nowMs: numberOf(core["nowMs"]), outputs, constants, text: "" };
  writeFields(walk, core);
  return walk.text;
}

/** For what is not a core: messages, outputs and entries. */
export function plainText(value: unknown, outputs: readonly number[], constants: ReadonlyMap<unknown, string>): string {
  const walk: Walk = { nowMs: 0, outputs, constants, text: "" };
  write(walk, value);
  return walk.text;
}

function write(walk: Walk, value: unknown): void {
  if (value === null || typeof value !== "object") {
    walk.text += `${String(value)},`;
    return;
  }
  const constant = walk.constants.get(value);
  if (constant !== undefined) {
    walk.text += `${constant},`;
  } else if (value instanceof Uint8Array) {
    walk.text += `x${value.join(".")},`;
  } else if (Array.isArray(value)) {
    walk.text += "[";
    for (const each of value) write(walk, each);
    walk.text += "]";
  } else if (value instanceof Map) {
    // In no order: only texts and the order of sending follow it, and messages may overtake each other anyway.
    const texts = [...value].map(([key, each]) => `${String(key)}:${nested(walk, each)}`);
    walk.text += `<${texts.sort().join("")}>`;
  } else {
    walk.text += "{";
    writeFields(walk, fieldsOf(value));
    walk.text += "}";
  }
}

function writeFields(walk: Walk, fields: Fields): void {
  for (const name of Object.keys(fields)) {
    const value = fields[name];
    const plain = name.startsWith(openedPrefix) ? name.slice(openedPrefix.length) : name;
    if (leftOut.has(plain) || typeof value === "function") continue;
    if (plain === "number") walk.text += name === plain ? `#${walk.outputs.indexOf(numberOf(value))},` : "";
    else if (plain.endsWith("Ms")) writeTime(walk, plain, fields);
    else write(walk, value);
  }
}

function writeTime(walk: Walk, name: string, fields: Fields): void {
  if (name === "heardMs") {
    // Without a role it is a peer's.
    if (fields["kind"] === "follower") walk.text += isFresh(fields, walk.nowMs) ? "sticky," : "free,";
  } else if (name === "waitingSinceMs") {
    const ageMs = walk.nowMs - numberOf(fields[`${openedPrefix}${name}`]);
    if (ageMs === Number.NEGATIVE_INFINITY) walk.text += "none,";
    else walk.text += ageMs < patienceMs ? "waits," : "overdue,";
  } else {
    throw new Error(`the explorer does not know what the time ${name} means`);
  }
}

function isFresh(follower: Fields, nowMs: number): boolean {
  return follower["leader"] !== null && nowMs - numberOf(follower["heardMs"]) < electionTimeoutMs;
}

function nested(walk: Walk, value: unknown): string {
  const inner: Walk = { ...walk, text: "" };
  write(inner, value);
  return inner.text;
}

function fieldsOf(value: unknown): Fields {
  if (value === null || typeof value !== "object")
    throw new Error("the opened core has another shape than the explorer expects");
  return value as Fields;
}

function numberOf(value: unknown): number {
  if (typeof value !== "number") throw new Error("the opened core has another shape than the explorer expects");
  return value;
}
