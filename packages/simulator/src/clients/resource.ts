/**
 * What locks protect: one register per lock, or place of a semaphore, behind a guard that takes no older token than the newest it has
 * accepted; and beside each an unguarded twin, which takes everything. The twin is the control: with paused holders and late writes it has
 * to lose updates, or the faults are too weak.
 */
import type { SimulatedProcess } from "../process.js";
import type { Random } from "../random.js";
import type { Scheduler } from "../scheduler.js";
import type { Counts } from "./counts.js";
import type { HistorySink } from "./sink.js";

export interface ResourceOptions {
  /** The way there, and the way back, take so long at most ... */
  readonly wayMsMax: number;
  /** ... but for so many of the ways there ... */
  readonly lateChance: number;
  /** ... which take up to this: what left in time arrives late. */
  readonly lateMsMax: number;
}

export interface ResourceParts {
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly sink: HistorySink;
  readonly counts: Counts;
}

/** Reads under a lock raise the register as writes do: else a late writer slips in under live readers. */
export interface GuardedOperation {
  readonly client: string;
  readonly resource: string;
  readonly name: string;
  readonly slot: number | null;
  readonly token: number;
}

interface Twin {
  version: number;
  highestToken: number;
}

const wayMsMin = 0.1;

export class Resource {
  readonly #options: ResourceOptions;
  readonly #parts: ResourceParts;
  readonly #registers = new Map<string, number>();
  readonly #twins = new Map<string, Twin>();

  constructor(options: ResourceOptions, parts: ResourceParts) {
    this.#options = options;
    this.#parts = parts;
  }

  /** `done` runs in the client, if that still lives when the answer comes. */
  operate(process: SimulatedProcess, operation: GuardedOperation, done: (isAccepted: boolean) => void): void {
    this.#arrive(`guard ${operation.resource}`, () => {
      const isAccepted = this.#decide(operation);
      this.#answer(process, () => done(isAccepted));
    });
  }

  readTwin(process: SimulatedProcess, resource: string, done: (version: number) => void): void {
    this.#arrive(`read ${resource}`, () => {
      const { version } = this.#twinOf(resource);
      this.#answer(process, () => done(version));
    });
  }

  /** Of what was read as `base`. */
  writeTwin(process: SimulatedProcess, resource: string, base: number, token: number, done: () => void): void {
    this.#arrive(`write ${resource}`, () => {
      const { counts } = this.#parts;
      const twin = this.#twinOf(resource);
      counts.add("twin: written");
      if (twin.version !== base) counts.add("twin: update lost");
      if (token < twin.highestToken) counts.add("twin: overwritten with an old token");
      twin.version += 1;
      twin.highestToken = Math.max(twin.highestToken, token);
      this.#answer(process, done);
    });
  }

  #decide({ client, resource, name, slot, token }: GuardedOperation): boolean {
    const { counts, sink } = this.#parts;
    const isAccepted = token >= (this.#registers.get(resource) ?? 0);
    if (isAccepted) this.#registers.set(resource, token);
    counts.add(isAccepted ? "guard: accepted" : "guard: refused");
    sink.emit({ kind: "guardWrite", client, resource, name, slot, token, accepted: isAccepted });
    return isAccepted;
  }

  #twinOf(resource: string): Twin {
    let twin = this.#twins.get(resource);
    if (twin === undefined) {
      twin = { version: 0, highestToken: 0 };
      this.#twins.set(resource, twin);
    }
    return twin;
  }

  #arrive(label: string, run: () => void): void {
    const { random, scheduler, counts } = this.#parts;
    const { lateChance, lateMsMax, wayMsMax } = this.#options;
    const isLate = random.chance(lateChance);
    if (isLate) counts.add("resource: late arrival");
    scheduler.after(isLate ? random.logUniform(wayMsMax, lateMsMax) : this.#wayMs(), label, run);
  }

  #answer(process: SimulatedProcess, run: () => void): void {
    process.deliverIn(this.#wayMs(), "resource answers", run);
  }

  #wayMs(): number {
    return this.#parts.random.logUniform(wayMsMin, this.#options.wayMsMax);
  }
}
