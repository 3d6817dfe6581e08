/** Outcomes and effects in words: to compare them, and to show them. Two are alike exactly if their texts are. */
import { assertNever } from "./assert.js";
import type { Effect, Grant, Outcome, Rejection } from "./log-words.js";

export function grantText({ name, token, slot }: Grant): string {
  return `${placeText(name, slot)}@${token}`;
}

/** A lock, or one place of a semaphore: what has generations of its own. */
export function placeText(name: string, slot: number | null): string {
  return slot === null ? name : `${name}#${slot}`;
}

export function requestText(session: number, request: number): string {
  return `s${session}#${request}`;
}

export function outcomeText(outcome: Outcome): string {
  switch (outcome.kind) {
    case "granted":
      return `granted ${outcome.grants.map(grantText).join(" ")} max=${outcome.maxHoldMs}`;
    case "alreadyGranted":
      return `alreadyGranted ${outcome.grants.map(grantText).join(" ")}`;
    case "lost":
      return `lost ${outcome.reason} at ${outcome.index}`;
    case "lockHeld":
    case "lockDelayed":
      return `${outcome.kind} ${outcome.name}`;
    case "slotsDiffer":
      return `slotsDiffer ${outcome.name} has ${outcome.slots}`;
    case "waiting":
    case "released":
    case "cancelled":
    case "notHeld":
    case "infoSet":
    case "sessionClosed":
      return outcome.kind;
    default:
      return assertNever(outcome);
  }
}

function rejectionText(rejection: Rejection): string {
  return rejection.kind === "sessionGone" ? `sessionGone ${rejection.reason}` : rejection.kind;
}

/** What the effect speaks of. An entry has at most one effect for a subject. Null: it isn't judged. */
export function subjectOf(effect: Effect): string | null {
  switch (effect.kind) {
    case "sessionOpened":
      return `opening ${effect.key}`;
    case "outcome":
    case "rejected":
      return `answer ${requestText(effect.session, effect.request)}`;
    case "sessionEnded":
    case "expiryRefused":
      return `end s${effect.session}`;
    case "silence":
      return `silence s${effect.session}`;
    case "holdBegan":
      return `hold ${requestText(effect.session, effect.of)}`;
    case "lockDelayBegan":
      return `delay ${effect.name} begins`;
    case "lockDelayEnded":
      return `delay ${effect.name} ends`;
    case "forced":
      return `force ${effect.name}`;
    case "clusterVersion":
      return "cluster version";
    case "signingKeySet":
      return `key ${effect.id}`;
    case "changed":
      return null;
    default:
      return assertNever(effect);
  }
}

export function effectText(effect: Effect): string {
  switch (effect.kind) {
    case "sessionOpened":
      return `${effect.isNew ? "new" : "known"} s${effect.session} ttl=${effect.ttlMs}`;
    case "outcome":
      return outcomeText(effect.outcome);
    case "rejected":
      return rejectionText(effect.rejection);
    case "sessionEnded":
      return effect.reason;
    case "expiryRefused":
      return "refused";
    case "silence":
      return `${effect.count} ${effect.renewed ? "renewed" : "suspected"}`;
    case "holdBegan":
      return `token=${effect.token} max=${effect.maxHoldMs}`;
    case "lockDelayBegan":
      return `from ${effect.index} for ${effect.delayMs}`;
    case "lockDelayEnded":
      return `from ${effect.index}`;
    case "forced":
      return `token=${effect.token} ended=${effect.ended}`;
    case "clusterVersion":
      return `${effect.version}`;
    case "signingKeySet":
      return `for ${effect.replaces} ${effect.isSet ? "set" : "not set"}`;
    case "changed":
      return "";
    default:
      return assertNever(effect);
  }
}
