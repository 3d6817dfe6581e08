/**
 * Lock-delays: after an expiry, a maxHold end or a forced release (and after a release that asks for it) a lock stays closed to what
 * would conflict with the ended hold. An exclusive hold's delay closes it for all, a shared one's for exclusive requests, a slot's that
 * place. The leader counts the time; the machine knows only that a delay runs.
 */
import type { Entry } from "./entry.js";
import { freePlace, takePlace } from "./places.js";
import { Delay, noPlace } from "./records.js";
import type { Claim } from "./records.js";
import type { State } from "./state.js";
import type { Mode } from "./types.js";

/** Whether a lock that is no semaphore is closed to `mode`. (A semaphore's delays close places.) */
export function closesFor(delays: readonly Delay[] | null, mode: Mode): boolean {
  if (delays === null) return false;
  // No hold begins while an exclusive one's delay runs, so nothing is added behind it: if there is one, it is the first.
  return mode === "exclusive" || delays[0]?.mode === "exclusive";
}

/** How long a lock is closed that delays alone close: all of them do (an exclusive one runs alone). */
export function longestDelayMs(delays: readonly Delay[] | null): number {
  return (delays ?? []).reduce((longest, { delayMs }) => Math.max(longest, delayMs), 0);
}

/** `claim`'s hold has just ended. Holds of one lock that end in one entry share a delay, the longest of theirs. */
export function beginDelay(state: State, entry: Entry, claim: Claim, delayMs: number): void {
  const { lock, place } = claim;
  if (place !== noPlace) lock.places = takePlace(lock.places, place);
  lock.delays ??= [];
  let delay = lock.delays[lock.delays.length - 1];
  if (delay === undefined || delay.index !== entry.index) {
    delay = new Delay(entry.index, delayMs, claim.acquire.mode, [], state.cow.epoch);
    lock.delays.push(delay);
    state.noteDelays(lock);
    state.runningDelays.add(delayMs);
    entry.begun ??= [];
    entry.begun.push({ lock, delay });
  } else if (delayMs > delay.delayMs) {
    state.runningDelays.remove(delay.delayMs);
    state.runningDelays.add(delayMs);
    delay.delayMs = delayMs;
  }
  if (place !== noPlace) delay.places.push(place);
}

export function tellBegunDelays(entry: Entry): void {
  for (const { lock, delay } of entry.begun ?? []) {
    entry.tell({ kind: "lockDelayBegan", name: lock.name, index: delay.index, delayMs: delay.delayMs });
  }
}

/** Ends exactly the delay that began with the entry `index`; changes nothing if it runs no more. */
export function endDelay(state: State, entry: Entry, name: string, index: number): void {
  const lock = state.lockFor(name);
  const delay = lock?.delays?.find((each) => each.index === index);
  if (lock === null || lock.delays === null || delay === undefined) return;
  state.cow.saveDelay(lock, delay);
  lock.delays.splice(lock.delays.indexOf(delay), 1);
  if (lock.delays.length === 0) lock.delays = null;
  state.noteDelays(lock);
  state.runningDelays.remove(delay.delayMs);
  for (const place of delay.places) lock.places = freePlace(lock.places, place);
  entry.tell({ kind: "lockDelayEnded", name, index });
  const slots = delay.places.length === 0 ? [null] : delay.places;
  for (const slot of slots) entry.tell({ kind: "changed", name, change: "delayEnded", token: index, slot });
  entry.touch(lock);
}
