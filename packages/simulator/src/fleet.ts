/** Runs many seeds in several processes. Which one runs a seed makes no difference to it. */
import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { runSeed } from "./run/run-seed.js";
import type { Summary } from "./run/run-seed.js";

export interface FleetOptions {
  readonly first: number;
  readonly seeds: number;
  readonly workers: number;
  /** Whether to go on, after each run. Called in the order of the seeds, so the end doesn't depend on who was quicker. */
  readonly onRun: (summary: Summary, cpuMs: number) => boolean;
}

interface Told {
  readonly summary: Summary;
  /** CPU time that the run took, in milliseconds. */
  readonly cpuMs: number;
}

/** Resolves when all seeds have run, or when it was told to stop. Throws when a process ends by itself. One worker is this process. */
export async function runFleet(options: FleetOptions): Promise<void> {
  const workers = Math.min(options.workers, options.seeds);
  if (workers > 1) await runApart({ ...options, workers });
  else await runHere(options);
}

/** As runFleet, but each worker is a process of its own. */
export async function runApart(options: FleetOptions): Promise<void> {
  await new Fleet(options).run();
}

async function runHere({ first, seeds, onRun }: FleetOptions): Promise<void> {
  for (let seed = first; seed < first + seeds; seed += 1) {
    const { summary, cpuMs } = await runTold(seed);
    if (!onRun(summary, cpuMs)) return;
    // Lets the timers of whoever called run.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function runTold(seed: number): Promise<Told> {
  const before = process.cpuUsage();
  const summary = await runSeed(seed);
  const { user, system } = process.cpuUsage(before);
  return { summary, cpuMs: (user + system) / 1_000 };
}

/** Puts what comes in any order in the order of the seeds. */
export class InOrder<T> {
  #next: number;
  readonly #early = new Map<number, T>();

  constructor(first: number) {
    this.#next = first;
  }

  /** Those whose turn has come. */
  take(seed: number, item: T): T[] {
    this.#early.set(seed, item);
    const due: T[] = [];
    for (let next = this.#early.get(this.#next); next !== undefined; next = this.#early.get(this.#next)) {
      this.#early.delete(this.#next);
      this.#next += 1;
      due.push(next);
    }
    return due;
  }
}

class Fleet {
  readonly #options: FleetOptions;
  readonly #end: number;
  /** The next seed that nobody runs yet. */
  #nextToRun: number;
  readonly #inOrder: InOrder<Told>;
  readonly #children = new Set<ChildProcess>();
  readonly #ended: Promise<void>;
  #resolve: () => void = () => undefined;
  #reject: (error: Error) => void = () => undefined;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#ended = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#end = options.first + options.seeds;
    this.#nextToRun = options.first;
    this.#inOrder = new InOrder(options.first);
  }

  async run(): Promise<void> {
    const stops = (["SIGINT", "SIGTERM", "SIGHUP"] as const).map((signal) => {
      const stop = (): void => {
        this.#killAll();
        // Without a listener the signal does to this process what it does to any.
        process.removeListener(signal, stop);
        process.kill(process.pid, signal);
      };
      process.on(signal, stop);
      return { signal, stop };
    });
    try {
      for (let worker = 0; worker < this.#options.workers; worker += 1) this.#start();
      await this.#ended;
    } finally {
      this.#killAll();
      for (const { signal, stop } of stops) process.removeListener(signal, stop);
    }
  }

  #start(): void {
    const child = fork(fileURLToPath(import.meta.url), ["worker"]);
    let seed = this.#give(child);
    this.#children.add(child);
    child.on("message", (told: Told) => {
      if (!this.#children.has(child)) return;
      seed = this.#give(child);
      this.#take(told);
    });
    child.on("error", (error) => this.#reject(error));
    child.on("exit", (code, signal) => {
      if (!this.#children.delete(child)) return;
      this.#reject(new Error(`the process that ran seed ${seed} was ended by ${signal ?? `exit code ${code}`}`));
    });
  }

  /** Its next seed; the child waits when there is none. */
  #give(child: ChildProcess): number {
    const seed = this.#nextToRun;
    if (seed >= this.#end) return seed;
    this.#nextToRun += 1;
    child.send(seed);
    return seed;
  }

  #take(told: Told): void {
    for (const { summary, cpuMs } of this.#inOrder.take(told.summary.seed, told)) {
      if (this.#options.onRun(summary, cpuMs) && summary.seed + 1 < this.#end) continue;
      this.#resolve();
      return;
    }
  }

  #killAll(): void {
    const children = [...this.#children];
    this.#children.clear();
    for (const child of children) child.kill("SIGKILL");
  }
}

if (process.argv[2] === "worker" && process.send !== undefined) {
  const send = process.send.bind(process);
  process.on("message", (seed: number) => {
    void runTold(seed).then((told) => send(told));
  });
  // Nobody is there any more to be told.
  process.on("disconnect", () => process.exit());
}
