/** One watch, as the loop of its caller sees it: changes in the order of the log, or word that some are missing. */
import type { LockChange } from "@holdfast/wire";
import type { ProcessHold } from "./process-hold.js";

export type WatchEvent =
  /**
   * Up to entry `index` changes may be missing: at the beginning, after a longer break, and when the loop is too slow. Whoever keeps a picture of
   * the locks looks anew, with inspect() or list(): what those see is no older than this.
   */
  | { readonly type: "gap"; readonly index: number }
  /** `token`: of the hold that began or ended, or whose info is another now. */
  | {
      readonly type: "granted" | "released" | "lost" | "info";
      readonly name: string;
      readonly token: number;
      /** The place of a semaphore, else null. */
      readonly slot: number | null;
      readonly index: number;
    }
  /** A lock-delay is over: of the whole lock, or of a place. */
  | { readonly type: "delay_ended"; readonly name: string; readonly slot: number | null; readonly index: number };

/** Events that a loop is behind by: what is more is told as a gap. Some 2 MB. */
const waitingMax = 10_000;

export interface WatchHost {
  readonly hold: ProcessHold;
  /** It is over: nothing more of it is wanted. */
  onEnded(watch: Watch): void;
}

type Result = IteratorResult<WatchEvent, undefined>;

interface Waiter {
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

export class Watch implements AsyncIterableIterator<WatchEvent, undefined, undefined> {
  readonly name: string;
  readonly isPrefix: boolean;
  /** Of its present request; null while none is out. */
  id: number | null = null;
  /** All changes up to this entry were told here, or were missing in a gap; null before the first word. */
  seenIndex: number | null = null;
  private readonly host: WatchHost;
  private events: WatchEvent[] = [];
  private readonly waiters: Waiter[] = [];
  private end: { readonly error: unknown } | "returned" | null = null;

  constructor(name: string, isPrefix: boolean, host: WatchHost) {
    this.name = name;
    this.isPrefix = isPrefix;
    this.host = host;
  }

  next(): Promise<Result> {
    const event = this.events.shift();
    if (event !== undefined) return Promise.resolve({ done: false, value: event });
    if (this.end === "returned") return Promise.resolve({ done: true, value: undefined });
    if (this.end !== null) {
      const { error } = this.end;
      // An iterator fails once, and is at its end then.
      this.end = "returned";
      return new Promise((_, reject) => reject(error));
    }
    this.host.hold.beginWatching();
    return new Promise((resolve, reject) => this.waiters.push({ resolve, reject }));
  }

  return(): Promise<Result> {
    this.finish("returned");
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** What is on its way to the loop is dropped. */
  fail(error: unknown): void {
    this.finish({ error });
  }

  /** Changes up to `index` may be missing. */
  onGap(index: number): void {
    if (this.seenIndex !== null && index <= this.seenIndex) return;
    this.seenIndex = index;
    this.push({ type: "gap", index });
  }

  /** All that an entry has changed; told twice it is told once. */
  onChanges(index: number, changes: readonly LockChange[]): void {
    if (this.seenIndex !== null && index <= this.seenIndex) return;
    this.seenIndex = index;
    for (const change of changes) if (!this.push(eventFor(index, change))) return;
  }

  /** False: it was too much, and what its entry has changed besides belongs to the gap. */
  private push(event: WatchEvent): boolean {
    if (this.end !== null) return false;
    const waiter = this.waiters.shift();
    if (waiter !== undefined) {
      this.host.hold.endWatching();
      waiter.resolve({ done: false, value: event });
      return true;
    }
    if (this.events.length < waitingMax) {
      this.events.push(event);
      return true;
    }
    // The newest that are to come stay: what a gap speaks of is looked up anyway.
    this.events = [{ type: "gap", index: event.index }];
    return false;
  }

  private finish(end: { readonly error: unknown } | "returned"): void {
    if (this.end !== null) return;
    this.end = end;
    this.events = [];
    const waiters = this.waiters.splice(0);
    for (const { resolve, reject } of waiters) {
      this.host.hold.endWatching();
      if (end === "returned") resolve({ done: true, value: undefined });
      else reject(end.error);
    }
    // Somebody has heard of it: the next call is told that it is over.
    if (waiters.length > 0) this.end = "returned";
    this.host.onEnded(this);
  }
}

function eventFor(index: number, { name, change, token, slot }: LockChange): WatchEvent {
  if (change === "delayEnded") return { type: "delay_ended", name, slot, index };
  return { type: change, name, token, slot, index };
}
