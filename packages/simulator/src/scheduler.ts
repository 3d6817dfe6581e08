/**
 * Virtual time: a heap of events. One event runs, the promises that it has settled run on, then comes the next. Of events at one moment
 * those of a later phase wait for the others; within a phase chance decides, so that no order is taken for granted.
 */
import type { Random } from "./random.js";
import type { TraceHash } from "./trace-hash.js";

export interface Cancellable {
  cancel(): void;
}

/** What runs last of all at its moment: setImmediate, which comes after the sockets that are readable. */
export type Phase = 0 | 1;

interface Scheduled {
  readonly atMs: number;
  readonly phase: Phase;
  readonly tie: number;
  readonly sequence: number;
  readonly label: string;
  run: (() => void) | null;
}

/** Immediates of Node's queue filled at once: promises settle between them, and the price of a turn of Node's loop is shared. */
const batchSize = 64;

export class Scheduler {
  /** True time, in milliseconds. */
  nowMs = 0;
  /** Events that have run. */
  ran = 0;
  readonly #random: Random;
  readonly #hash: TraceHash;
  #sequence = 0;
  /** A binary heap, the next one first. */
  readonly #events: Scheduled[] = [];

  constructor(random: Random, hash: TraceHash) {
    this.#random = random;
    this.#hash = hash;
  }

  /** `label` names the event in the trace hash. */
  at(atMs: number, label: string, run: () => void, phase: Phase = 0): Cancellable {
    this.#sequence += 1;
    const event: Scheduled = {
      atMs: Math.max(atMs, this.nowMs),
      phase,
      // Immediates of one process keep their order.
      tie: phase === 0 ? this.#random.bits() : 0,
      sequence: this.#sequence,
      label,
      run,
    };
    this.#push(event);
    return { cancel: () => void (event.run = null) };
  }

  after(delayMs: number, label: string, run: () => void, phase: Phase = 0): Cancellable {
    return this.at(this.nowMs + delayMs, label, run, phase);
  }

  /**
   * Runs what is due until then, and moves the time there; with `isDone` only until that holds (looked at after each event). Rejects with
   * what an event throws.
   */
  run(untilMs: number, isDone: () => boolean = () => false): Promise<void> {
    return new Promise((resolve, reject) => {
      let isOver = false;
      const end = (settle: () => void): void => {
        isOver = true;
        settle();
      };
      const step = (): void => {
        if (isOver) return;
        try {
          if (isDone()) return end(resolve);
          if (this.#runNext(untilMs)) return;
          this.nowMs = Math.max(this.nowMs, untilMs);
          end(resolve);
        } catch (error) {
          end(() => reject(error));
        }
      };
      const refill = (): void => {
        if (isOver) return;
        for (let count = 0; count < batchSize; count += 1) setImmediate(step);
        setImmediate(refill);
      };
      refill();
    });
  }

  #runNext(untilMs: number): boolean {
    for (;;) {
      const next = this.#popDue(untilMs);
      if (next === null) return false;
      const { run } = next;
      if (run === null) continue;
      this.nowMs = Math.max(this.nowMs, next.atMs);
      this.ran += 1;
      this.#hash.add(this.nowMs, next.label);
      run();
      return true;
    }
  }

  #push(event: Scheduled): void {
    const events = this.#events;
    let at = events.length;
    events.push(event);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = events[parent] as Scheduled;
      if (!isBefore(event, above)) break;
      events[at] = above;
      at = parent;
    }
    events[at] = event;
  }

  #popDue(untilMs: number): Scheduled | null {
    const events = this.#events;
    const first = events[0];
    if (first === undefined || first.atMs > untilMs) return null;
    const last = events.pop() as Scheduled;
    if (events.length > 0) this.#sink(last);
    return first;
  }

  #sink(event: Scheduled): void {
    const events = this.#events;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= events.length) break;
      if (child + 1 < events.length && isBefore(events[child + 1] as Scheduled, events[child] as Scheduled)) child += 1;
      const below = events[child] as Scheduled;
      if (!isBefore(below, event)) break;
      events[at] = below;
      at = child;
    }
    events[at] = event;
  }
}

function isBefore(a: Scheduled, b: Scheduled): boolean {
  if (a.atMs !== b.atMs) return a.atMs < b.atMs;
  if (a.phase !== b.phase) return a.phase < b.phase;
  if (a.tie !== b.tie) return a.tie < b.tie;
  return a.sequence < b.sequence;
}
