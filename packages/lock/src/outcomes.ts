/** What a request's state is in words for its client, and who stands in its way. */
import { holdersToldMax } from "./limits.js";
import { Acquire, noPlace } from "./records.js";
import type { Claim, KeptRequest, Lock } from "./records.js";
import { firstObstacle } from "./grantable.js";
import type { State } from "./state.js";
import type { Grant, HolderView, Outcome } from "./types.js";

export function outcomeOf(request: KeptRequest): Outcome {
  if (!(request instanceof Acquire)) return request.outcome;
  return request.isGranted ? grantedOutcome(request) : waitingOutcome(request);
}

export function grantedOutcome(acquire: Acquire): Outcome {
  return { kind: "granted", grants: grantsOf(acquire), maxHoldMs: acquire.maxHoldMs };
}

export function grantsOf(acquire: Acquire): Grant[] {
  const grants: Grant[] = [];
  for (let claim: Claim | null = acquire.first; claim !== null; claim = claim.sibling) {
    grants.push({ name: claim.lock.name, token: claim.token, slot: slotOf(claim) });
  }
  return grants;
}

export function slotOf(claim: Claim): number | null {
  return claim.place === noPlace ? null : claim.place;
}

export function waitingOutcome(acquire: Acquire): Outcome {
  let ahead = 0;
  for (let claim: Claim | null = acquire.first; claim !== null; claim = claim.sibling) {
    ahead = Math.max(ahead, claim.lock.queue?.countBefore(claim) ?? 0);
  }
  const obstacle = firstObstacle(acquire);
  return { kind: "waiting", ahead, holder: obstacle === null ? null : firstHolderView(obstacle.lock) };
}

export function holderView(claim: Claim): HolderView {
  const { session, number: request, mode, info } = claim.acquire;
  return { session: session.id, request, token: claim.token, slot: slotOf(claim), mode, info: info || session.info };
}

/** The holder that has been there longest. */
export function firstHolderView(lock: Lock): HolderView | null {
  return lock.firstHolder === null ? null : holderView(lock.firstHolder);
}

/** In the order of names, at most `max`. */
export function holdersOf(state: State, names: readonly string[], max: number = holdersToldMax): HolderView[] {
  const views: HolderView[] = [];
  for (const name of names) {
    let claim = state.lockFor(name)?.firstHolder ?? null;
    for (; claim !== null && views.length < max; claim = claim.next) views.push(holderView(claim));
  }
  return views;
}
