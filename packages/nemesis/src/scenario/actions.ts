/** The `do` of a step. */
import type { Damage, MachineFault } from "../machine/machine.js";
import type { Shape } from "../network/network.js";
import type { Fields } from "./fields.js";
import type { Action, Role, WayRoles } from "./scenario.js";

const kinds = [
  "cut",
  "split",
  "flap",
  "shape",
  "reset",
  "halfClose",
  "kill",
  "terminate",
  "stop",
  "roll",
  "crashLoop",
  "pause",
  "machine",
] as const satisfies readonly Action["kind"][];

const damages = [
  "logBit",
  "tableBit",
  "currentMissing",
  "manifestTorn",
  "directoryEmpty",
] as const satisfies readonly Damage[];
const minuteMs = 60_000;
const hourMs = 3_600_000;

export function readAction(fields: Fields): Action {
  const action = readKind(fields.oneOf("kind", kinds), fields);
  fields.noMore();
  return action;
}

function readKind(kind: Action["kind"], fields: Fields): Action {
  switch (kind) {
    case "cut":
    case "reset":
    case "halfClose":
      return { kind, ways: ways(fields) };
    case "split":
      return { kind, groups: fields.list("groups", 2, (each, path) => roles(each, path, fields)) };
    case "flap":
      return { kind, ways: ways(fields), upMs: duration(fields, "upMs"), downMs: duration(fields, "downMs") };
    case "shape":
      return { kind, ways: ways(fields), shape: shape(fields.fields("shape")) };
    case "kill":
      return { kind, who: who(fields), damage: fields.has("damage") ? fields.oneOf("damage", damages) : null };
    case "terminate":
    case "stop":
      return { kind, who: who(fields) };
    case "roll":
      return { kind, signal: fields.oneOf("signal", ["SIGTERM", "SIGKILL"]) };
    case "crashLoop":
      return { kind, who: who(fields), everyMs: duration(fields, "everyMs") };
    case "pause":
      return { kind, how: fields.oneOf("how", ["stop", "freeze", "burn", "store"]) };
    case "machine":
      return { kind, who: who(fields), fault: machineFault(fields.fields("fault")) };
    default:
      return kind satisfies never;
  }
}

function machineFault(fields: Fields): MachineFault {
  const kind = fields.oneOf("kind", ["diskFull", "slowSync", "failSync", "frozen", "wallJump", "clockRate"]);
  const fault = ((): MachineFault => {
    switch (kind) {
      case "slowSync":
        return { kind, ms: fields.number("ms", 1, minuteMs) };
      case "wallJump":
        return { kind, ms: fields.number("ms", -24 * hourMs, 24 * hourMs) };
      case "clockRate":
        return { kind, rate: fields.number("rate", 0.5, 2) };
      case "diskFull":
      case "failSync":
      case "frozen":
        return { kind };
      default:
        return kind satisfies never;
    }
  })();
  fields.noMore();
  return fault;
}

function shape(fields: Fields): Shape {
  const read: { -readonly [Name in keyof Shape]: Shape[Name] } = {};
  if (fields.has("delayMs")) read.delayMs = fields.number("delayMs", 0, minuteMs);
  if (fields.has("jitterMs")) read.jitterMs = fields.number("jitterMs", 0, minuteMs);
  if (fields.has("lossFraction")) read.lossFraction = fields.number("lossFraction", 0, 0.9);
  if (fields.has("bytesPerSecond")) read.bytesPerSecond = fields.number("bytesPerSecond", 1_000, 1_000_000_000);
  if (Object.keys(read).length === 0) fields.note("", "shapes nothing");
  fields.noMore();
  return read;
}

function ways(fields: Fields): readonly WayRoles[] {
  return fields.list("ways", 1, (each, path) => {
    const way = fields.inside(each, path);
    const read = { from: way.text("from"), to: way.text("to"), both: way.flag("both", false) };
    way.noMore();
    return read;
  });
}

function who(fields: Fields): readonly Role[] {
  return roles(fields.any("who"), `${fields.path}.who`, fields);
}

function roles(value: unknown, path: string, fields: Fields): readonly Role[] {
  if (Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === "string")) return value;
  fields.noteAt(path, "must be a list of roles");
  return [];
}

function duration(fields: Fields, name: string): number {
  return fields.number(name, 10, minuteMs);
}
