/** Rule 23: nothing grows without bound. The limits are the run's; what has none is not looked at. */
import type { HostProbe } from "./host-probe.js";
import { InvariantError } from "./invariant-error.js";

export interface Bounds {
  readonly sessions?: number;
  readonly waiters?: number;
  /** Entries in memory, behind the snapshot and after it. */
  readonly logEntries?: number;
  readonly queuedEvents?: number;
  readonly queuedFrames?: number;
  readonly queuedWrites?: number;
  readonly openRounds?: number;
}

export function checkBounds(id: string, probe: HostProbe, bounds: Bounds): void {
  const { raft, machine } = probe;
  check(id, "sessions", machine.sessionCount, bounds.sessions);
  check(id, "waiters", machine.waiterCount, bounds.waiters);
  check(id, "log entries", raft.lastIndex - raft.logBase.position.index, bounds.logEntries);
  check(id, "queued events", probe.queuedEvents, bounds.queuedEvents);
  check(id, "queued frames", probe.queuedFrames, bounds.queuedFrames);
  check(id, "queued writes", probe.queuedWrites, bounds.queuedWrites);
  check(id, "open quorum rounds", probe.openRounds, bounds.openRounds);
}

function check(id: string, what: string, count: number, max: number | undefined): void {
  if (max !== undefined && count > max)
    throw new InvariantError("bounds", `${id} has ${count} ${what}, at most ${max} are due`);
}
