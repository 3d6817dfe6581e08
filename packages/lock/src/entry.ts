/** One log entry while it is applied: what it tells, what it touches, which delays it begins. */
import type { Delay, Lock } from "./records.js";
import type { Effect } from "./types.js";

export class Entry {
  readonly index: number;
  readonly effects: Effect[] = [];
  /** Locks at which a hold, a wait or a delay has ended: their waiters are to be examined. Null while there are none. */
  touched: Set<Lock> | null = null;
  /** Delays begun by this entry. They are told when it is known how long they are. */
  begun: { readonly lock: Lock; readonly delay: Delay }[] | null = null;

  constructor(index: number) {
    this.index = index;
  }

  touch(lock: Lock): void {
    this.touched ??= new Set();
    this.touched.add(lock);
  }

  tell(effect: Effect): void {
    this.effects.push(effect);
  }
}
