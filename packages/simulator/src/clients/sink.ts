/** Where clients put what goes into the history. */
import type { HistoryEvent } from "@holdfast/checker";

type Untimed<Event> = Event extends unknown ? Omit<Event, "at"> : never;

/** Its time is the true time of the moment when it is emitted. */
export type UntimedEvent = Untimed<HistoryEvent>;

export interface HistorySink {
  emit(event: UntimedEvent): void;
}

/** Calls are numbered through the whole history. */
export class CallNumbers {
  #last = 0;

  next(): number {
    this.#last += 1;
    return this.#last;
  }
}
