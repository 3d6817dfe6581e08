/** Clients that acquire and release locks of their own as fast as they can: the cost of a cycle, without contention. */
import { randomUUID } from "node:crypto";
import { HoldfastError } from "@holdfast/client";
import type { Holdfast } from "@holdfast/client";
import { Latencies } from "./latencies.js";
import type { LatencySummary } from "./latencies.js";

export interface BenchOptions {
  readonly clients: number;
  /** How many locks each client takes in turn. */
  readonly locks: number;
  /** How many connections (and sessions) the clients share. */
  readonly connections: number;
  readonly warmupMs: number;
  readonly measureMs: number;
}

export interface BenchResult {
  readonly clients: number;
  readonly connections: number;
  readonly locks: number;
  readonly seconds: number;
  readonly cycles: number;
  readonly cyclesPerSecond: number;
  readonly acquire: LatencySummary;
  readonly release: LatencySummary;
  readonly cycle: LatencySummary;
  /** Failed cycles by error code. */
  readonly errors: Readonly<Record<string, number>>;
}

/** After a failure a client waits so long: a cluster without a leader is not to be hammered. */
const pauseMs = 100;

export class Bench {
  readonly #options: BenchOptions;
  readonly #connect: () => Promise<Holdfast>;
  readonly #acquire = new Latencies();
  readonly #release = new Latencies();
  readonly #cycle = new Latencies();
  readonly #errors = new Map<string, number>();
  #fromMs = Number.POSITIVE_INFINITY;
  #untilMs = Number.POSITIVE_INFINITY;

  constructor(options: BenchOptions, connect: () => Promise<Holdfast>) {
    this.#options = options;
    this.#connect = connect;
  }

  /** An abort ends it early, with what was measured until then. */
  async run(stop: AbortSignal): Promise<BenchResult> {
    const { clients, connections, warmupMs, measureMs } = this.#options;
    const shared = await Promise.all(Array.from({ length: Math.min(connections, clients) }, () => this.#connect()));
    try {
      const prefix = `bench:${randomUUID()}`;
      this.#fromMs = performance.now() + warmupMs;
      this.#untilMs = this.#fromMs + measureMs;
      const loops = Array.from({ length: clients }, (_, client) => {
        const holdfast = shared[client % shared.length];
        return holdfast === undefined ? Promise.resolve() : this.#loop(holdfast, `${prefix}:${client}`, stop);
      });
      await Promise.all(loops);
      return this.#result(Math.min(performance.now(), this.#untilMs) - this.#fromMs);
    } finally {
      await Promise.all(shared.map((holdfast) => holdfast.close()));
    }
  }

  async #loop(holdfast: Holdfast, prefix: string, stop: AbortSignal): Promise<void> {
    for (let turn = 0; performance.now() < this.#untilMs && !stop.aborted; turn += 1) {
      try {
        await this.#oneCycle(holdfast, `${prefix}:${turn % this.#options.locks}`);
      } catch (error) {
        if (!(error instanceof HoldfastError)) throw error;
        this.#errors.set(error.code, (this.#errors.get(error.code) ?? 0) + 1);
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }

  async #oneCycle(holdfast: Holdfast, name: string): Promise<void> {
    const startMs = performance.now();
    const lock = await holdfast.acquire(name);
    const grantedMs = performance.now();
    const released = await lock.release();
    const endMs = performance.now();
    if (released !== "released") throw new HoldfastError("lock_lost", `the release of ${name} found it ${released}`);
    if (endMs < this.#fromMs || endMs > this.#untilMs) return;
    this.#acquire.add(grantedMs - startMs);
    this.#release.add(endMs - grantedMs);
    this.#cycle.add(endMs - startMs);
  }

  #result(measuredMs: number): BenchResult {
    const { clients, connections, locks } = this.#options;
    const seconds = Math.max(0, measuredMs) / 1_000;
    const cycles = this.#cycle.count;
    return {
      clients,
      connections: Math.min(connections, clients),
      locks,
      seconds: Math.round(seconds * 1_000) / 1_000,
      cycles,
      cyclesPerSecond: seconds === 0 ? 0 : Math.round((cycles / seconds) * 10) / 10,
      acquire: this.#acquire.summary(),
      release: this.#release.summary(),
      cycle: this.#cycle.summary(),
      errors: Object.fromEntries(this.#errors),
    };
  }
}
