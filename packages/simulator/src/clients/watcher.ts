/** A task that watches locks, mostly fast enough, and hands what it is told to a judge. */
import type { WatchEvent } from "@holdfast/client";
import { InvariantError } from "../invariants/invariant-error.js";
import type { Random } from "../random.js";
import type { Application } from "./application.js";
import { codeOf } from "./results.js";

/** A judge of one watch; it throws at what may not be. */
export type JudgeWatch = (name: string, isPrefix: boolean) => (event: WatchEvent) => void;

export interface WatcherParts {
  readonly judgeWatch: JudgeWatch;
  /** Told at once: a watch's end is awaited only later. */
  readonly onDefect: (error: unknown) => void;
}

export class Watcher {
  readonly #application: Application;
  readonly #random: Random;
  readonly #parts: WatcherParts;
  #controller: AbortController | null = null;
  #isStopped = false;

  constructor(application: Application, random: Random, parts: WatcherParts) {
    this.#application = application;
    this.#random = random;
    this.#parts = parts;
  }

  /** Watches anew each time it has had enough. */
  async run(): Promise<void> {
    const { pauseMsMax } = this.#application.parts.workload;
    while (!this.#isStopped && !this.#application.isDraining) {
      const controller = new AbortController();
      this.#controller = controller;
      const watching = this.#watch(controller.signal);
      await this.#application.sleep(this.#random.logUniform(1, 100 * pauseMsMax));
      controller.abort();
      await watching;
    }
  }

  stop(): void {
    this.#isStopped = true;
    this.#controller?.abort();
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { holdfast, parts } = this.#application;
    const { names } = parts.workload;
    const isPrefix = this.#random.chance(0.6);
    const name = isPrefix ? this.#random.pick(["", "lock", "lock 1"]) : this.#random.pick(names);
    const isSlow = this.#random.chance(0.2);
    const judge = this.#parts.judgeWatch(name, isPrefix);
    let count = 0;
    try {
      for await (const event of holdfast.watch(name, { prefix: isPrefix, signal })) {
        judge(event);
        parts.counts.add(event.type === "gap" && count > 0 ? "watch: later gap" : `watch: ${event.type}`);
        count += 1;
        if (isSlow) await this.#application.sleep(this.#random.logUniform(1, 50));
      }
    } catch (error) {
      if (error instanceof InvariantError) this.#parts.onDefect(error);
      else if (!signal.aborted) parts.counts.add(`watch: ${codeOf(error)}`);
    }
  }
}
