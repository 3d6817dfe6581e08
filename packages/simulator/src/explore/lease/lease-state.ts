/** One state of the lease model. All times are ages in eighths of the TTL, capped where more makes no difference. */
import type { Command } from "@holdfast/lock";
import type { LeaderState } from "./leader-table.js";
import type { MachineState } from "./machine-table.js";

export const noop = "noop";
export type TailEntry = Command | typeof noop;

export interface LeaseState {
  /** Null: elected, and its no-op not applied. */
  readonly leader: LeaderState | null;
  /** The leader before, as long as it doesn't know. */
  readonly deposed: LeaderState | null;
  /** 1: its round in flight began before its end. */
  readonly deposedRounds: number;
  /** As applied. */
  readonly machine: MachineState;
  /** What is in the leader's log and not applied. */
  readonly tail: readonly TailEntry[];
  /** Ages of the keepalives on their way, youngest first. */
  readonly flying: readonly number[];
  /** Age of the newest keepalive acknowledged: at 8, the client knows that its lease is over. */
  readonly renewed: number;
  /** Since the client has sent anything. */
  readonly sent: number;
  /** Since the last leader change. */
  readonly led: number;
  /** Since the client's death; -1: it lives. */
  readonly dead: number;
  /** Of the round in flight. */
  readonly roundAge: number;
  /** Since the last keepalive the deadline has passed; the round in flight began after it; one that did is confirmed. */
  readonly isDue: boolean;
  readonly isRoundDue: boolean;
  readonly isVouched: boolean;
}

export function keyFor(state: LeaseState): string {
  const { leader, deposed, machine, tail, flying } = state;
  const log = tail.map(codeFor).join("");
  const facts = `${state.renewed} ${state.sent} ${state.led} ${state.dead} ${state.roundAge}`;
  const flags =
    Number(state.isRoundDue) + 2 * Number(state.isVouched) + 4 * state.deposedRounds + 8 * Number(state.isDue);
  return `${leader?.id ?? "-"} ${deposed?.id ?? "-"} ${machine.id} ${log} ${flying.join()} ${facts} ${flags}`;
}

/** Eighths of silence once all of the log is applied. */
export function unitsOf({ machine, tail }: Pick<LeaseState, "machine" | "tail">): number {
  let count = machine.silence ?? 0;
  for (const entry of tail) {
    if (entry === noop) continue;
    if (entry.kind === "suspectSessions") count = Math.min(8, count + entry.eighths);
    else if (entry.kind === "renewSuspects") count = 0;
  }
  return count;
}

export function isSuspect(entry: TailEntry): boolean {
  return entry !== noop && (entry.kind === "suspectSessions" || entry.kind === "expireSessions");
}

function codeFor(entry: TailEntry): string {
  if (entry === noop) return "n";
  if (entry.kind === "suspectSessions") return `s${entry.eighths}`;
  return entry.kind === "renewSuspects" ? "r" : "x";
}
