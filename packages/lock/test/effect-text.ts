/** Effects and views in short words, one line each, for tables. */
import type { Effect, Grant, HolderView, LockView, Outcome, ResumeView, SessionId, SessionView } from "../src/index.js";

type Name = (session: SessionId) => string;

export function effectText(effect: Effect, name: Name): string {
  switch (effect.kind) {
    case "sessionOpened":
      return `opened ${name(effect.session)} ttl=${effect.ttlMs}${effect.isNew ? "" : " again"}`;
    case "outcome":
      return `${name(effect.session)}#${effect.request} ${outcomeText(effect.outcome, name)}`;
    case "rejected": {
      const { rejection } = effect;
      const reason = rejection.kind === "sessionGone" ? ` ${rejection.reason ?? "unknown"}` : "";
      return `${name(effect.session)}#${effect.request} rejected: ${rejection.kind}${reason}`;
    }
    case "sessionEnded":
      return `ended ${name(effect.session)} ${effect.reason}`;
    case "silence":
      return `silence ${name(effect.session)} ${effect.count}${effect.renewed ? " renewed" : ""}`;
    case "expiryRefused":
      return `expiry refused ${name(effect.session)}`;
    case "holdBegan":
      return `hold ${name(effect.session)}#${effect.of} token=${effect.token}${effect.maxHoldMs > 0 ? ` max=${effect.maxHoldMs}` : ""}`;
    case "lockDelayBegan":
      return `delay began ${effect.name} index=${effect.index} ms=${effect.delayMs}`;
    case "lockDelayEnded":
      return `delay ended ${effect.name} index=${effect.index}`;
    case "clusterVersion":
      return `cluster version ${effect.version}`;
    case "signingKeySet": {
      const place = effect.replaces === null ? "" : ` for ${effect.replaces}`;
      return `key ${effect.id}${place} by "${effect.principal}" ${effect.isSet ? "set" : "not set"}`;
    }
    case "forced":
      return `forced ${effect.name}@${effect.token} by ${effect.principal}: ${effect.ended} ended${holdersText(effect.holders, name)}`;
    case "changed":
      return `changed ${effect.name} ${effect.change} ${effect.token}${slotText(effect.slot)}`;
    default:
      return effect satisfies never;
  }
}

export function outcomeText(outcome: Outcome, name: Name): string {
  switch (outcome.kind) {
    case "waiting":
      return `waiting ahead=${outcome.ahead}${outcome.holder === null ? "" : ` behind ${holderText(outcome.holder, name)}`}`;
    case "granted":
      return `granted ${grantsText(outcome.grants)}${outcome.maxHoldMs > 0 ? ` max=${outcome.maxHoldMs}` : ""}`;
    case "alreadyGranted":
      return `already granted ${grantsText(outcome.grants)}`;
    case "lost":
      return `lost ${outcome.reason} at ${outcome.index}`;
    case "released":
    case "cancelled":
      return outcome.kind;
    case "infoSet":
      return "info set";
    case "sessionClosed":
      return "session closed";
    case "notHeld":
      return `not held${holdersText(outcome.holders, name)}`;
    case "lockHeld":
      return `refused: ${outcome.name} is held${outcome.holder === null ? "" : ` by ${holderText(outcome.holder, name)}`}`;
    case "lockDelayed":
      return `refused: ${outcome.name} is delayed ${outcome.delayMs}`;
    case "slotsDiffer":
      return `refused: ${outcome.name} has slots=${outcome.slots}`;
    default:
      return outcome satisfies never;
  }
}

export function lockLines(view: LockView | null, name: Name): string[] {
  if (view === null) return ["nothing"];
  const kind = view.slots > 0 ? ` slots=${view.slots}` : "";
  const lines = [`${view.name} ${view.mode ?? "free"}${kind} waiters=${view.waiterCount}`];
  for (const holder of view.holders) lines.push(`held by ${holderText(holder, name)} ${holder.mode}`);
  for (const { session, request, mode, info, names, reserves } of view.waiters) {
    const said = info === "" ? "" : ` "${info}"`;
    lines.push(`waits ${name(session)}#${request}${said} ${mode} for ${names.join(",")}${reserves ? " reserves" : ""}`);
  }
  for (const { index, delayMs, slot } of view.delays) lines.push(`delay index=${index} ms=${delayMs}${slotText(slot)}`);
  return lines;
}

export function sessionText(view: SessionView | null, name: Name): string {
  if (view === null) return "nothing";
  const { id, ttlMs, info, silence, holds, waits } = view;
  return `${name(id)} ttl=${ttlMs} info="${info}" silence=${silence} holds=${holds} waits=${waits}`;
}

export function resumeLines(view: ResumeView | null, name: Name): string[] {
  if (view === null) return ["nothing"];
  const lines = [`${name(view.session)} ttl=${view.ttlMs} waiting=${view.waiting.join(",")}`];
  for (const { request, grants, maxHoldMs } of view.holds) {
    lines.push(`holds #${request} ${grantsText(grants)}${maxHoldMs > 0 ? ` max=${maxHoldMs}` : ""}`);
  }
  for (const { request, outcome } of view.outcomes) lines.push(`outcome #${request} ${outcomeText(outcome, name)}`);
  return lines;
}

function grantsText(grants: readonly Grant[]): string {
  return grants.map(({ name, token, slot }) => `${name}@${token}${slotText(slot)}`).join(" ");
}

function holderText({ session, request, token, slot, info }: HolderView, name: Name): string {
  return `${name(session)}#${request}@${token}${slotText(slot)}${info === "" ? "" : ` "${info}"`}`;
}

function holdersText(holders: readonly HolderView[], name: Name): string {
  return holders.length === 0 ? "" : `, now ${holders.map((holder) => holderText(holder, name)).join(" ")}`;
}

function slotText(slot: number | null): string {
  return slot === null ? "" : `/${slot}`;
}
