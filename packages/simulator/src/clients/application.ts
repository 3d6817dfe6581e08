/** What the applications of one client process share: their library, its calls and locks, and the clock by which they sleep. */
import type { CallResult, Operation } from "@holdfast/checker";
import type { Holdfast, Lock } from "@holdfast/client";
import type { Token } from "@holdfast/lock";
import type { SimulatedProcess } from "../process.js";
import type { Scheduler } from "../scheduler.js";
import type { CallBook } from "./call-book.js";
import type { ClientTap } from "./client-tap.js";
import type { Counts } from "./counts.js";
import { HeldLock } from "./held-lock.js";
import type { Resource } from "./resource.js";
import type { HistorySink } from "./sink.js";
import type { Workload } from "./workload.js";

export interface ApplicationParts {
  readonly process: SimulatedProcess;
  readonly scheduler: Scheduler;
  readonly sink: HistorySink;
  readonly counts: Counts;
  readonly resource: Resource;
  readonly calls: CallBook;
  readonly tap: ClientTap;
  readonly workload: Workload;
}

export class Application {
  readonly id: string;
  readonly holdfast: Holdfast;
  readonly parts: ApplicationParts;
  /** By call: what is held, and what is not given back. */
  readonly held: Map<number, HeldLock> = new Map();
  /** What was seen of others' locks: for forced releases. */
  readonly seenTokens: Map<string, Token> = new Map();
  readonly #sleepers = new Set<() => void>();
  #isDraining = false;

  constructor(id: string, holdfast: Holdfast, parts: ApplicationParts) {
    this.id = id;
    this.holdfast = holdfast;
    this.parts = parts;
  }

  /** No new work, and no more sleep. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  drain(): void {
    this.#isDraining = true;
    const sleepers = [...this.#sleepers];
    for (const wake of sleepers) wake();
  }

  /** By the process's clock. Ends early when work is to end, or `lock` is over. */
  sleep(ms: number, lock: HeldLock | null = null): Promise<void> {
    if (this.#isDraining || lock?.isLost === true) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#sleepers.delete(wake);
        timer.cancel();
        stop();
        resolve();
      };
      const timer = this.parts.process.setTimer(ms, wake);
      const stop = lock === null ? (): void => undefined : lock.whenOver(wake);
      this.#sleepers.add(wake);
    });
  }

  begin(op: Operation): number {
    return this.parts.calls.begin(op);
  }

  end(call: number, result: CallResult): void {
    this.parts.counts.add(`${result.kind}${"code" in result ? `: ${result.code}` : ""}`);
    this.parts.calls.end(call, result);
  }

  /** An acquire has brought a lock: the history is told, and the lock looked after. */
  take(call: number, lock: Lock, maxHoldMs: number): HeldLock {
    const { tap, process, scheduler, sink, counts } = this.parts;
    const hold = tap.holdOf(call, lock.grants);
    const { session = null, request = null } = hold ?? {};
    const { grants } = lock;
    this.end(call, { kind: "acquired", grants, session, request });
    const held = new HeldLock(call, session, lock, maxHoldMs, { process, scheduler, sink, counts });
    this.held.set(call, held);
    return held;
  }

  giveBack(held: HeldLock): void {
    held.onRelease();
    this.held.delete(held.call);
  }

  lossesOf(session: number): readonly HeldLock[] {
    return [...this.held.values()].filter((held) => held.session === session);
  }
}
