/**
 * The real lock machine as a table: which state comes of which command. A state is its shortest history; each command is applied to each
 * state once, by a machine that replays that history. What the machine can't tell apart (its own hash) is one state.
 */
import { LockMachine } from "@holdfast/lock";
import type { Command, Effect, SessionId } from "@holdfast/lock";
import type { LeaseSource } from "@holdfast/server/parts";

export interface MachineState {
  readonly id: number;
  /** As it is: nothing more is applied to it. */
  readonly machine: Machine;
  /** What a new leader takes from it. */
  readonly source: LeaseSource;
  /** The one session's count of silence; null when it has ended. */
  readonly silence: number | null;
}

export interface Applied {
  readonly next: MachineState;
  readonly effects: readonly Effect[];
}

export type Machine = Pick<LockMachine, "apply" | "stateHash" | "sessions" | "delays" | "timedHolds" | "lockView">;

interface Known extends MachineState {
  readonly history: readonly Command[];
  readonly steps: Map<string, Applied>;
}

export const lockName = "lock";
const waitersShown = 1;

export class MachineTable {
  readonly #make: () => Machine;
  readonly #byHash = new Map<string, Known>();
  readonly #known: Known[] = [];

  constructor(make: () => Machine = () => new LockMachine()) {
    this.#make = make;
  }

  get size(): number {
    return this.#known.length;
  }

  /** Nothing is applied yet. */
  empty(): MachineState {
    return this.#intern([], this.#make());
  }

  apply(state: MachineState, command: Command): Applied {
    const from = this.#known[state.id] as Known;
    const label = labelOf(command);
    const before = from.steps.get(label);
    if (before !== undefined) return before;
    const machine = this.#make();
    for (const [at, past] of from.history.entries()) machine.apply(at + 1, past);
    const history = [...from.history, command];
    const effects = machine.apply(history.length, command);
    const applied = { next: this.#intern(history, machine), effects };
    from.steps.set(label, applied);
    return applied;
  }

  #intern(history: readonly Command[], machine: Machine): MachineState {
    const hash = String(machine.stateHash());
    const before = this.#byHash.get(hash);
    if (before !== undefined) return before;
    const [session] = machine.sessions();
    const silence = session?.silence ?? null;
    const known: Known = {
      id: this.#known.length,
      machine,
      source: sourceOf(machine),
      silence,
      history,
      steps: new Map(),
    };
    this.#byHash.set(hash, known);
    this.#known.push(known);
    return known;
  }
}

function labelOf(command: Command): string {
  return command.kind === "suspectSessions" ? `${command.kind} ${command.eighths}` : command.kind;
}

/** Read once: a replayed leader starts from it again and again. */
function sourceOf(machine: Machine): LeaseSource {
  const sessions = [...machine.sessions()];
  const delays = [...machine.delays()];
  const holds = [...machine.timedHolds()];
  // No hold in these scopes has a maxHold that could be over.
  const sessionView = (id: SessionId): (typeof sessions)[number] | null =>
    sessions.find((each) => each.id === id) ?? null;
  return { sessions: () => sessions, delays: () => delays, timedHolds: () => holds, hasHold: () => true, sessionView };
}

/** Whether somebody holds the lock. */
export function isHeld(state: MachineState): boolean {
  return (state.machine.lockView(lockName, waitersShown)?.holders.length ?? 0) > 0;
}

export function onlySession(state: MachineState): SessionId {
  const [session] = state.machine.sessions();
  if (session === undefined) throw new Error("the session has ended");
  return session.id;
}
