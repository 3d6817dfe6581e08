/**
 * What a restored cluster begins with (docs/operations.md, "Restore"): the settings of the backup and nothing else. Every session, hold,
 * wait and lock-delay is over, and nothing is granted until `closingMs` have passed at a leader: until then a holder of the old cluster
 * may still believe in its lease, or a lock-delay that somebody relied on would still run.
 *
 * That closing is a lock-delay of all names at once. The leader counts it, a new leader anew, and an endLockDelay of the name that no lock
 * can have ends it: so it needs no command of its own, and holds over restarts and changes of leader like any other delay.
 */
import type { Entry } from "./entry.js";
import type { State } from "./state.js";

/** No lock has the empty name: requests bear names of at least one byte (packages/wire/src/limits.ts). */
export const everyName = "";

/**
 * For how long a restore of this state closes. A holder that hears nothing more believes in its lease for a TTL at most, and the
 * lock-delay that it asked for is to come after that; a delay that runs, or the closing of an earlier restore, counts in full, for how
 * much of it is over is known to the old leader alone.
 */
export function closingMs({ ttls, holdDelays, runningDelays, closedMs }: State): number {
  const afterDeathMs = Math.min(ttls.longestMs + holdDelays.longestMs, Number.MAX_SAFE_INTEGER);
  return Math.max(afterDeathMs, runningDelays.longestMs, closedMs);
}

/** `index`: the restored cluster's entries come after it; above every index that the old cluster can have reached. */
export function restoreState(state: State, index: number): void {
  const closedMs = closingMs(state);
  state.endEverything();
  state.lastIndex = index;
  state.restoredIndex = index;
  state.closedMs = closedMs;
}

/** Ends exactly the closing that began with the restore at `index`. Whoever waits is examined: no waiter was granted meanwhile. */
export function endClosing(state: State, entry: Entry, index: number): void {
  if (state.closedMs === 0 || state.restoredIndex !== index) return;
  state.closedMs = 0;
  entry.tell({ kind: "lockDelayEnded", name: everyName, index });
  for (const { byName } of state.lockShards) {
    for (const lock of byName.values()) entry.touch(lock);
  }
}
