/**
 * What the lock machine says, as JSON for HTTP. The machine's numbers of requests are told to nobody but their own session, and there as its
 * client gave them.
 */
import type { HolderView, LockView, Outcome, ResumeView, WaiterView } from "@holdfast/lock";
import type { LockChange } from "@holdfast/wire";
import { invalidArgument, problem, sessionGone } from "./answers.js";
import type { Answer } from "./answers.js";
import { clientNumber } from "./request-numbers.js";

function holderBody({ session, token, slot, mode, info }: HolderView): object {
  return { session, token, slot, mode, info };
}

function waiterBody({ session, mode, info, names, reserves }: WaiterView): object {
  return { session, mode, info, names, reserves };
}

export function lockBody({ holders, waiters, ...rest }: LockView): object {
  return { ...rest, holders: holders.map(holderBody), waiters: waiters.map(waiterBody) };
}

export function changeBody({ change, name, token, slot }: LockChange): object {
  if (change === "delayEnded") return { type: "delay_ended", name, token: null, slot };
  return { type: change, name, token, slot };
}

/** What an answer to a request of the session was, or would be. */
export function sessionBody({ session, ttlMs, holds, waiting, outcomes }: ResumeView): object {
  return {
    session,
    ttlMs,
    holds: holds.flatMap(({ request, grants, maxHoldMs }) =>
      ofClient(request, (own) => ({ request: own, grants, maxHoldMs })),
    ),
    waiting: waiting.flatMap((request) => ofClient(request, (own) => own)),
    outcomes: outcomes.flatMap(({ request, outcome }) =>
      ofClient(request, (own) => ({ request: own, outcome: outcomeWords[outcome.kind] })),
    ),
  };
}

function ofClient<T>(number: number, make: (request: number) => T): T[] {
  const request = clientNumber(number);
  return request === null ? [] : [make(request)];
}

const outcomeWords: Readonly<Record<Outcome["kind"], string>> = {
  waiting: "waiting",
  granted: "granted",
  lost: "lost",
  released: "released",
  cancelled: "cancelled",
  alreadyGranted: "already_granted",
  notHeld: "not_held",
  infoSet: "info_set",
  sessionClosed: "session_closed",
  lockHeld: "lock_held",
  lockDelayed: "lock_delayed",
  slotsDiffer: "slots_differ",
};

type Final<Kind extends Outcome["kind"]> = Extract<Outcome, { readonly kind: Kind }>;

/** What its client heard last while it waited. */
export interface WaitNews {
  readonly ahead: number | null;
  readonly holder: HolderView | null;
}

/** The end of an acquire. Null: it waits. The same for whoever asks again. */
export function acquireAnswer(request: number, outcome: Outcome, news: WaitNews): Answer | null {
  switch (outcome.kind) {
    case "waiting":
      return null;
    case "granted": {
      const { grants, maxHoldMs } = outcome;
      return { status: 200, body: { request, outcome: "granted", grants, maxHoldMs } };
    }
    case "cancelled":
      return waitOver(request, news);
    case "lost":
      return lossAnswer(request, outcome);
    case "released":
      return problem(
        409,
        "already_released",
        `request ${request} was granted and released: ask anew, with a new number`,
      );
    case "lockHeld": {
      const holder = outcome.holder === null ? null : holderBody(outcome.holder);
      return problem(409, "lock_held", `${JSON.stringify(outcome.name)} is not free`, { name: outcome.name, holder });
    }
    case "lockDelayed": {
      const { name, delayMs } = outcome;
      const detail = `${JSON.stringify(name)} is free, but closed by a lock-delay of ${delayMs} ms`;
      return problem(409, "lock_delayed", detail, { name, delayMs });
    }
    case "slotsDiffer": {
      const { name, slots } = outcome;
      return problem(409, "slots_differ", `${JSON.stringify(name)} is a semaphore of ${slots} slots`, { name, slots });
    }
    case "alreadyGranted":
    case "notHeld":
    case "infoSet":
    case "sessionClosed":
      return otherRequest();
    default:
      return assertNever(outcome);
  }
}

/** It was taken out of its queues: its time was over, or its connection was closed, or a cancel said so. */
export function waitOver(request: number, { ahead, holder }: WaitNews): Answer {
  const detail = `request ${request} waits no more: its time was over, or its connection was closed; ask anew, with a new number`;
  return problem(409, "wait_timeout", detail, { ahead, holder: holder === null ? null : holderBody(holder) });
}

/** A session that is gone has taken all of its holds and waits with it. */
function lossAnswer(request: number, { reason }: Final<"lost">): Answer {
  if (reason === "expired" || reason === "closed" || reason === "restored") return sessionGone(reason);
  return problem(409, "lock_lost", `request ${request} was granted and is lost: ${reason}`, { reason });
}

export function releaseAnswer(request: number, outcome: Outcome): Answer {
  if (outcome.kind === "released") return { status: 200, body: { request, outcome: "released" } };
  if (outcome.kind === "notHeld") return notHeld(request, outcome);
  return otherRequest();
}

export function cancelAnswer(request: number, outcome: Outcome): Answer {
  if (outcome.kind === "cancelled") return { status: 200, body: { request, outcome: "cancelled" } };
  if (outcome.kind === "notHeld") return notHeld(request, outcome);
  if (outcome.kind !== "alreadyGranted") return otherRequest();
  return { status: 200, body: { request, outcome: "already_granted", grants: outcome.grants } };
}

export function infoAnswer(request: number, outcome: Outcome): Answer {
  if (outcome.kind === "infoSet") return { status: 200, body: { request, outcome: "info_set" } };
  return outcome.kind === "notHeld" ? notHeld(request, outcome) : otherRequest();
}

function notHeld(request: number, { holders }: Final<"notHeld">): Answer {
  return { status: 200, body: { request, outcome: "not_held", holders: holders.map(holderBody) } };
}

function otherRequest(): Answer {
  return invalidArgument("request", "is the number of another request of this session");
}

function assertNever(value: never): never {
  throw new Error(`unexpected value ${JSON.stringify(value)}`);
}
