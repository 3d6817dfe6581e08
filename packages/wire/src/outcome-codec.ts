/** Outcomes and rejections of requests, inside of server messages. A kind's number never changes. */
import type { Grant, HolderView, Outcome, Rejection } from "@holdfast/lock";
import { assertNever } from "./assert.js";
import { anyText, badValue, count, fieldsOf, list, mapList, nullable, positive } from "./fields.js";
import { lossReasons, modes } from "./words.js";

const kinds = {
  waiting: 1,
  granted: 2,
  lost: 3,
  released: 4,
  cancelled: 5,
  alreadyGranted: 6,
  notHeld: 7,
  infoSet: 8,
  sessionClosed: 9,
  lockHeld: 10,
  lockDelayed: 11,
  slotsDiffer: 12,
} as const satisfies Record<Outcome["kind"], number>;

const rejectionKinds = { sessionGone: 1, settled: 2, tooManyRequests: 3 } as const satisfies Record<
  Rejection["kind"],
  number
>;

export function outcomeFields(outcome: Outcome): unknown[] {
  switch (outcome.kind) {
    case "granted":
      return [kinds.granted, grantList(outcome.grants), count(outcome.maxHoldMs, "maxHoldMs")];
    case "released":
      return [kinds.released];
    case "waiting":
      return [kinds.waiting, count(outcome.ahead, "ahead"), holderOrNull(outcome.holder)];
    case "lost":
      return [kinds.lost, lossReasons.numberFor(outcome.reason, "reason"), count(outcome.index, "index")];
    case "cancelled":
      return [kinds.cancelled];
    case "alreadyGranted":
      return [kinds.alreadyGranted, grantList(outcome.grants)];
    case "notHeld":
      return [kinds.notHeld, outcome.holders.map(holderFields)];
    case "infoSet":
      return [kinds.infoSet];
    case "sessionClosed":
      return [kinds.sessionClosed];
    case "lockHeld":
      return [kinds.lockHeld, anyText(outcome.name, "name"), holderOrNull(outcome.holder)];
    case "lockDelayed":
      return [kinds.lockDelayed, anyText(outcome.name, "name"), count(outcome.delayMs, "delayMs")];
    case "slotsDiffer":
      return [kinds.slotsDiffer, anyText(outcome.name, "name"), count(outcome.slots, "slots")];
    default:
      return assertNever(outcome, "outcome");
  }
}

export function outcomeFrom(value: unknown): Outcome {
  const fields = fieldsOf(value, 1, "outcome");
  switch (fields[0]) {
    case kinds.granted:
      return { kind: "granted", grants: grantsFrom(fields[1]), maxHoldMs: count(fields[2], "maxHoldMs") };
    case kinds.released:
      return { kind: "released" };
    case kinds.waiting:
      return { kind: "waiting", ahead: count(fields[1], "ahead"), holder: nullable(fields[2], "holder", holderFrom) };
    case kinds.lost:
      return { kind: "lost", reason: lossReasons.wordFor(fields[1], "reason"), index: count(fields[2], "index") };
    case kinds.cancelled:
      return { kind: "cancelled" };
    case kinds.alreadyGranted:
      return { kind: "alreadyGranted", grants: grantsFrom(fields[1]) };
    case kinds.notHeld:
      return { kind: "notHeld", holders: holdersFrom(fields[1]) };
    case kinds.infoSet:
      return { kind: "infoSet" };
    case kinds.sessionClosed:
      return { kind: "sessionClosed" };
    case kinds.lockHeld:
      return { kind: "lockHeld", name: anyText(fields[1], "name"), holder: nullable(fields[2], "holder", holderFrom) };
    case kinds.lockDelayed:
      return { kind: "lockDelayed", name: anyText(fields[1], "name"), delayMs: count(fields[2], "delayMs") };
    case kinds.slotsDiffer:
      return { kind: "slotsDiffer", name: anyText(fields[1], "name"), slots: count(fields[2], "slots") };
    default:
      throw badValue("outcome", "is of a kind that this release doesn't know");
  }
}

export function rejectionFields(rejection: Rejection): unknown[] {
  switch (rejection.kind) {
    case "sessionGone":
      return [
        rejectionKinds.sessionGone,
        rejection.reason === null ? null : lossReasons.numberFor(rejection.reason, "reason"),
      ];
    case "settled":
      return [rejectionKinds.settled];
    case "tooManyRequests":
      return [rejectionKinds.tooManyRequests];
    default:
      return assertNever(rejection, "rejection");
  }
}

export function rejectionFrom(value: unknown): Rejection {
  const fields = fieldsOf(value, 1, "rejection");
  switch (fields[0]) {
    case rejectionKinds.sessionGone:
      return { kind: "sessionGone", reason: nullable(fields[1], "reason", lossReasons.wordFor) };
    case rejectionKinds.settled:
      return { kind: "settled" };
    case rejectionKinds.tooManyRequests:
      return { kind: "tooManyRequests" };
    default:
      throw badValue("rejection", "is of a kind that this release doesn't know");
  }
}

export function grantList(grants: readonly Grant[]): unknown[] {
  return grants.map(grantFields);
}

function grantFields(grant: Grant): unknown[] {
  return [anyText(grant.name, "name"), positive(grant.token, "token"), nullable(grant.slot, "slot", count)];
}

export function grantsFrom(value: unknown): Grant[] {
  return mapList(list(value, "grants"), "grants", grantFrom);
}

function grantFrom(value: unknown): Grant {
  const fields = fieldsOf(value, 3, "grant");
  return {
    name: anyText(fields[0], "name"),
    token: positive(fields[1], "token"),
    slot: nullable(fields[2], "slot", count),
  };
}

export function holderFields(holder: HolderView): unknown[] {
  return [
    positive(holder.session, "session"),
    positive(holder.request, "request"),
    positive(holder.token, "token"),
    nullable(holder.slot, "slot", count),
    modes.numberFor(holder.mode, "mode"),
    anyText(holder.info, "info"),
  ];
}

export function holdersFrom(value: unknown): HolderView[] {
  return mapList(list(value, "holders"), "holders", holderFrom);
}

function holderFrom(value: unknown): HolderView {
  const fields = fieldsOf(value, 6, "holder");
  return {
    session: positive(fields[0], "session"),
    request: positive(fields[1], "request"),
    token: positive(fields[2], "token"),
    slot: nullable(fields[3], "slot", count),
    mode: modes.wordFor(fields[4], "mode"),
    info: anyText(fields[5], "info"),
  };
}

function holderOrNull(holder: HolderView | null): unknown[] | null {
  return holder === null ? null : holderFields(holder);
}
