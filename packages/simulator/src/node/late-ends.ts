/**
 * Timed ends that come too late: the session was heard since, the delay or the hold is another one by now. A leader decides by what it has
 * applied, so an end may be in the log behind what it doesn't fit any more; the machine must not act on it.
 */
import type { Command, LockMachine } from "@holdfast/lock";
import { encodeCommand } from "@holdfast/wire";
import type { Random } from "../random.js";
import type { ProbedHost } from "./host-access.js";

/** At most one of each kind. */
export function lateEndsFor(machine: LockMachine, random: Random): Command[] {
  const commands: Command[] = [];
  const heard = [...machine.sessions()].filter(({ silence }) => silence === 0);
  if (heard.length > 0) commands.push({ kind: "expireSessions", ids: [random.pick(heard).id] });
  const delays = [...machine.delays()];
  if (delays.length > 0) {
    const { name, index } = random.pick(delays);
    commands.push({ kind: "endLockDelay", name, index: index - 1 });
  }
  const holds = [...machine.timedHolds()];
  if (holds.length > 0) {
    const { session, of, token } = random.pick(holds);
    commands.push({ kind: "endHold", session, of, token: token - 1 });
  }
  return commands;
}

export function proposeTo(host: ProbedHost, command: Command): void {
  const payload = encodeCommand(command);
  // No number of its own: nobody waits for what becomes of it.
  const proposal = { id: 0, payload, reserved: true, decidedInTerm: null };
  host.enqueue({
    kind: "step",
    event: (nowMs) => {
      // What is in the log and not applied yet may count the session silent: then its end would not be too late.
      const isKnown = host.applier.lastApplied === host.raft.lastIndex;
      return isKnown ? { kind: "propose", nowMs, proposal } : { kind: "tick", nowMs };
    },
  });
}
