/**
 * The real lease keeper as a table: which state comes of what happens to it, and what it asks for then. A keeper can't be copied (its
 * callbacks hold it), so a state is its shortest history, replayed for each step that is made from it for the first time.
 */
import { LeaseKeeper } from "@holdfast/server/parts";
import type { LeaseKeeperHost } from "@holdfast/server/parts";
import type { Command, SessionId } from "@holdfast/lock";
import { LeaderRun } from "./leader-run.js";
import type { Keeper, LeaderAction } from "./leader-run.js";
import type { Applied, MachineState } from "./machine-table.js";
import { ttlUnits } from "./units.js";

export interface LeaderState {
  readonly id: number;
  readonly rounds: number;
  readonly silentUnits: number;
  readonly lateUnits: number;
  readonly hasHeard: boolean;
}

export interface LeaderStep {
  readonly next: LeaderState;
  readonly proposed: readonly Command[];
  readonly acknowledged: readonly number[];
}

type MakeKeeper = (host: LeaseKeeperHost) => Keeper;

export interface LeaderTableOptions {
  /** No keepalive that comes is older. */
  readonly comingUnitsMax: number;
  /** Each step is made from a second history of its state too, where there is one, and compared. */
  readonly hasTwins: boolean;
  readonly make: MakeKeeper | undefined;
}

interface Known extends LeaderState {
  readonly history: readonly LeaderAction[];
  readonly key: string;
  /** Another history that has led to it: what comes of each must be the same, or the key has overlooked something. */
  twin: readonly LeaderAction[] | null;
  readonly steps: Map<string, { readonly action: LeaderAction; readonly made: LeaderStep }>;
}

export class LeaderTable {
  readonly #make: MakeKeeper;
  readonly #session: SessionId;
  readonly #comingUnitsMax: number;
  readonly #hasTwins: boolean;
  readonly #byKey = new Map<string, Known>();
  readonly #known: Known[] = [];
  readonly #starts = new Map<number, LeaderState>();

  constructor(session: SessionId, { comingUnitsMax, hasTwins, make }: LeaderTableOptions) {
    this.#session = session;
    this.#comingUnitsMax = comingUnitsMax;
    this.#hasTwins = hasTwins;
    this.#make = make ?? ((host) => new LeaseKeeper(host));
  }

  get size(): number {
    return this.#known.length;
  }

  /** Its own no-op is applied: this is what the machine says then. */
  start(machine: MachineState): LeaderState {
    const before = this.#starts.get(machine.id);
    if (before !== undefined) return before;
    const label = `start ${machine.id}`;
    const { next } = this.#run([{ kind: "start", source: machine.source, label }]);
    this.#starts.set(machine.id, next);
    return next;
  }

  onApplied(state: LeaderState, applied: Applied, label: string): LeaderStep {
    return this.step(state, `effects of ${label}`, { kind: "effects", effects: applied.effects });
  }

  /** Actions with one label are one and the same. */
  step(state: LeaderState, label: string, action: LeaderAction): LeaderStep {
    const from = this.#known[state.id] as Known;
    const before = from.steps.get(label);
    if (before !== undefined) return before.made;
    const made = this.#run([...from.history, action]);
    from.steps.set(label, { action, made });
    if (from.twin !== null) this.#compare([...from.twin, action], made);
    return made;
  }

  #run(history: readonly LeaderAction[]): LeaderStep {
    const run = this.#replay(history);
    return { next: this.#intern(run, history), proposed: run.proposed, acknowledged: run.acknowledged };
  }

  #addTwin(known: Known, history: readonly LeaderAction[], lateUnits: number): void {
    known.twin = history;
    if (known.lateUnits !== lateUnits)
      throw new Error(`two lease keepers with one key have other deadlines: ${known.key}`);
    for (const { action, made } of known.steps.values()) this.#compare([...history, action], made);
  }

  #compare(history: readonly LeaderAction[], { next, proposed, acknowledged }: LeaderStep): void {
    const run = this.#replay(history);
    const isSame =
      run.key === this.#known[next.id]?.key &&
      JSON.stringify(run.proposed) === JSON.stringify(proposed) &&
      String(run.acknowledged.map(worthOf)) === String(acknowledged.map(worthOf));
    if (!isSame) throw new Error(`two lease keepers with one key differ after ${history.at(-1)?.kind}: ${run.key}`);
  }

  #replay(history: readonly LeaderAction[]): LeaderRun {
    const run = new LeaderRun(this.#make, this.#session, this.#comingUnitsMax);
    for (const action of history) run.perform(action);
    return run;
  }

  #intern(run: LeaderRun, history: readonly LeaderAction[]): LeaderState {
    const { key, rounds, silentUnits, lateUnits, hasHeard } = run;
    const before = this.#byKey.get(key);
    if (before !== undefined) {
      if (this.#hasTwins && before.twin === null) this.#addTwin(before, history, lateUnits);
      return before;
    }
    const facts = { rounds, silentUnits, lateUnits, hasHeard };
    const known: Known = { id: this.#known.length, ...facts, history, key, twin: null, steps: new Map() };
    this.#byKey.set(key, known);
    this.#known.push(known);
    return known;
  }
}

/** Beyond a TTL an acknowledgement is worth nothing to the client. */
function worthOf(age: number): number {
  return Math.min(age, ttlUnits);
}
